"""Apply a trained model to examples: predict, evaluate, compare with attributions."""

from rationalizer.inference.attribution import AttributionComparison, attributions, compare_with_attributions
from rationalizer.inference.predict import (
    Predictions,
    compare_with_annotators,
    evaluate,
    predict,
    predict_from,
    standalone_agreement,
)

__all__ = [
    "AttributionComparison",
    "Predictions",
    "attributions",
    "compare_with_annotators",
    "compare_with_attributions",
    "evaluate",
    "predict",
    "predict_from",
    "standalone_agreement",
]
