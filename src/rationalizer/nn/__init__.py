"""Readers, methods for one text (extractors) and for two (aligners), and the models that join them."""

from rationalizer.nn.aligners import ALIGNERS, Aligner, Alignment
from rationalizer.nn.extractors import EXTRACTORS, Extraction, Extractor
from rationalizer.nn.heads import Classification, Pooling, Regression
from rationalizer.nn.highlight import HighlightModel
from rationalizer.nn.method import Method, Objective
from rationalizer.nn.model import Model, Output
from rationalizer.nn.pair import PairModel
from rationalizer.nn.readers import READERS, Punctuation, Reader, TransformerReader, VectorReader, reader_of

__all__ = [
    "ALIGNERS",
    "EXTRACTORS",
    "READERS",
    "Aligner",
    "Alignment",
    "Classification",
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
    "Reader",
    "Regression",
    "TransformerReader",
    "VectorReader",
    "methods_for",
    "reader_of",
]


def methods_for(pairs: bool) -> dict[str, type[Method]]:
    """The methods by name: of pairs of texts, or of single texts."""
    return dict(ALIGNERS if pairs else EXTRACTORS)
