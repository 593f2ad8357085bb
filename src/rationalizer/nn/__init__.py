"""Encoders, extractors (one per method), predictors, and the model that joins them."""

from rationalizer.nn.budget import check_budget, token_budget
from rationalizer.nn.encoder import ENCODERS, BiLSTM, Encoder
from rationalizer.nn.extractors import EXTRACTORS, Extraction, Extractor, Objective
from rationalizer.nn.highlight import HighlightModel, Output
from rationalizer.nn.predictor import Classification, Predictor, Regression

__all__ = [
    "ENCODERS",
    "EXTRACTORS",
    "BiLSTM",
    "Classification",
    "Encoder",
    "Extraction",
    "Extractor",
    "HighlightModel",
    "Objective",
    "Output",
    "Predictor",
    "Regression",
    "check_budget",
    "token_budget",
]
