"""A model and its folder: configuration, files, batches, devices."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rationalizer.models.config import Config, configure
    from rationalizer.models.trained_model import TrainedModel

__all__ = ["Config", "TrainedModel", "configure"]

# Lazy: they need PyTorch, and the modules that read and write files do not.
_LAZY = {"Config": "config", "TrainedModel": "trained_model", "configure": "config"}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"rationalizer.models.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
