"""Encoders, methods for one text (extractors) and for two (aligners), models that join them, and objectives."""

from rationalizer.nn.aligners import ALIGNERS, Aligner, Alignment
from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.encoders import ENCODERS, Encoder, Punctuation, TransformerEncoder, VectorEncoder, encoder_class
from rationalizer.nn.extractors import EXTRACTORS, Extraction, Extractor
from rationalizer.nn.heads import Classification, Pooling, Regression
from rationalizer.nn.highlight_model import HighlightModel, Rationales
from rationalizer.nn.method import Method, MethodLoss
from rationalizer.nn.objectives import OBJECTIVES, Objective, ObjectiveLoss, TrainingStep, make_objective
from rationalizer.nn.pair_model import PairModel, PremiseContext

__all__ = [
    "ALIGNERS",
    "ENCODERS",
    "EXTRACTORS",
    "OBJECTIVES",
    "Aligner",
    "Alignment",
    "Classification",
    "Encoder",
    "Extraction",
    "Extractor",
    "HighlightModel",
    "Method",
    "MethodLoss",
    "Model",
    "Objective",
    "ObjectiveLoss",
    "Output",
    "PairModel",
    "Pooling",
    "PremiseContext",
    "Punctuation",
    "Rationales",
    "Regression",
    "TrainingStep",
    "TransformerEncoder",
    "VectorEncoder",
    "encoder_class",
    "make_objective",
    "methods_for",
]


def methods_for(pairs: bool) -> dict[str, type[Method]]:
    """The methods for pairs of texts, or for single texts, by name."""
    return dict(ALIGNERS if pairs else EXTRACTORS)
