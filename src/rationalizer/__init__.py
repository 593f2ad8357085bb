"""Text classifiers that read only the words they show."""

import importlib
from typing import TYPE_CHECKING

from rationalizer import ops

if TYPE_CHECKING:
    from rationalizer import graph
    from rationalizer.rationalizer import Rationalizer
    from rationalizer.render import Explanation, PairExplanation

__all__ = ["Explanation", "PairExplanation", "Rationalizer", "graph", "ops"]
__version__ = "0.1.0"

_LAZY = {
    "Explanation": "rationalizer.render",
    "PairExplanation": "rationalizer.render",
    "Rationalizer": "rationalizer.rationalizer",
}


def __getattr__(name: str) -> object:
    # The layers are of use without the models, whose imports take longer.
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name == "graph":
        return importlib.import_module("rationalizer.graph")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
