"""A model and its folder: configuration, files, batches, devices."""

from rationalizer.models.config import Config, configure
from rationalizer.models.trained_model import TrainedModel

__all__ = ["Config", "TrainedModel", "configure"]
