"""Training and use of models: configuration, runs, checkpoints, predictions."""

from rationalizer.learn.attribution import Comparison, attributions, compare_with_attributions
from rationalizer.learn.config import Config, configure
from rationalizer.learn.inference import Predictions, beside_people, evaluate, predict, predict_from, survival
from rationalizer.learn.runs import Run, run, source_of, suspicions
from rationalizer.learn.trained import TrainedModel

__all__ = [
    "Comparison",
    "Config",
    "Predictions",
    "Run",
    "TrainedModel",
    "attributions",
    "beside_people",
    "compare_with_attributions",
    "configure",
    "evaluate",
    "predict",
    "predict_from",
    "run",
    "source_of",
    "survival",
    "suspicions",
    "train",
]


def __getattr__(name: str) -> object:
    # Lightning takes seconds to import and only training needs it.
    if name == "train":
        from rationalizer.learn.training import train

        return train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
