"""Encoders, methods for one text (extractors) and for two (aligners), predictors, and the models that join them."""

from rationalizer.nn.aligners import ALIGNERS, Aligner, Alignment
from rationalizer.nn.budget import check_budget, token_budget
from rationalizer.nn.encoder import ENCODERS, BiLSTM, Encoder
from rationalizer.nn.extractors import EXTRACTORS, Extraction, Extractor
from rationalizer.nn.highlight import HighlightModel
from rationalizer.nn.method import Method, Objective
from rationalizer.nn.model import Model, Output
from rationalizer.nn.pair import PairModel
from rationalizer.nn.predictor import Classification, Predictor, Regression

__all__ = [
    "ALIGNERS",
    "ENCODERS",
    "EXTRACTORS",
    "Aligner",
    "Alignment",
    "BiLSTM",
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
    "Predictor",
    "Regression",
    "check_budget",
    "methods_for",
    "token_budget",
]


def methods_for(pairs: bool) -> dict[str, type[Method]]:
    """The methods by name: of pairs of texts, or of single texts."""
    return dict(ALIGNERS if pairs else EXTRACTORS)
