"""Readers, methods for one text (extractors) and for two (aligners), and the models that join them."""

from rationalizer.nn.aligners import ALIGNERS, Aligner, Alignment
from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.encoders import ENCODERS, Encoder, Punctuation, TransformerEncoder, VectorEncoder, encoder_class
from rationalizer.nn.extractors import EXTRACTORS, Extraction, Extractor
from rationalizer.nn.heads import Classification, Pooling, Regression
from rationalizer.nn.highlight_model import HighlightModel
from rationalizer.nn.method import Method, Objective
from rationalizer.nn.pair_model import PairModel

__all__ = [
    "ALIGNERS",
    "ENCODERS",
    "EXTRACTORS",
    "Aligner",
    "Alignment",
    "Classification",
    "Encoder",
    "Extraction",
    "Extractor",
    "HighlightModel",
    "Method",
    "Model",
    "Objective",
    "Output",
    "PairModel",
    "Pooling",
    "Punctuation",
    "Regression",
    "TransformerEncoder",
    "VectorEncoder",
    "encoder_class",
    "methods_for",
]


def methods_for(pairs: bool) -> dict[str, type[Method]]:
    """The methods by name: of pairs of texts, or of single texts."""
    return dict(ALIGNERS if pairs else EXTRACTORS)
