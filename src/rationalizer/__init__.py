"""Text classifiers that read only the words they show."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rationalizer import graph, ops
    from rationalizer.auditing import audit
    from rationalizer.drawing import Explanation, PairExplanation
    from rationalizer.export import ExportedModel
    from rationalizer.model import Rationalizer
    from rationalizer.records import DecisionRecord, verify

__all__ = [
    "DecisionRecord",
    "Explanation",
    "ExportedModel",
    "PairExplanation",
    "Rationalizer",
    "audit",
    "graph",
    "ops",
    "verify",
]
__version__ = "0.1.0"

_LAZY = {
    "DecisionRecord": "rationalizer.records",
    "Explanation": "rationalizer.drawing",
    "ExportedModel": "rationalizer.export",
    "PairExplanation": "rationalizer.drawing",
    "Rationalizer": "rationalizer.model",
    "audit": "rationalizer.auditing",
    "verify": "rationalizer.records",
}


def __getattr__(name: str) -> object:
    # Lazy, because importing PyTorch takes seconds and the help of the command line does not need it.
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in ("graph", "ops"):
        return importlib.import_module(f"rationalizer.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
