"""Text classifiers that read only the words they show."""

import importlib
from typing import TYPE_CHECKING

from rationalizer import ops

if TYPE_CHECKING:
    from rationalizer import graph
    from rationalizer.rationalizer import Explanation, Rationalizer

__all__ = ["Explanation", "Rationalizer", "graph", "ops"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # The layers are of use without the models, whose imports take longer.
    if name in ("Explanation", "Rationalizer"):
        from rationalizer import rationalizer

        return getattr(rationalizer, name)
    if name == "graph":
        return importlib.import_module("rationalizer.graph")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
