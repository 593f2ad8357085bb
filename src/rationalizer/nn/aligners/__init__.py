"""The methods for two texts: from scores of word pairs to an alignment. One class each, found by name in `ALIGNERS`.

A new method is one new module in this folder: it is imported, and so registered, by being there.
"""

from importlib import import_module
from pkgutil import iter_modules

from rationalizer.nn.aligners.base import ALIGNERS, Aligner, Alignment

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["ALIGNERS", "Aligner", "Alignment"]
