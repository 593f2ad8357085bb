"""Apply a trained model to examples: predict, evaluate, compare with annotators and attributions."""

from rationalizer.inference.attribution_comparison import AttributionComparison, compare_with_attributions
from rationalizer.inference.attributions import ATTRIBUTIONS, attribute
from rationalizer.inference.baselines import compare_with_baselines
from rationalizer.inference.corrections import open_corrections
from rationalizer.inference.evaluate import compare_with_annotators, evaluate, standalone_agreement
from rationalizer.inference.predict import Predictions, predict, predict_from
from rationalizer.inference.usefulness import annotation_usefulness
from rationalizer.inference.word_weights import word_weights

__all__ = [
    "ATTRIBUTIONS",
    "AttributionComparison",
    "Predictions",
    "annotation_usefulness",
    "attribute",
    "compare_with_annotators",
    "compare_with_attributions",
    "compare_with_baselines",
    "evaluate",
    "open_corrections",
    "predict",
    "predict_from",
    "standalone_agreement",
    "word_weights",
]
