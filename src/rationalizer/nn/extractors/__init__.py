"""The methods: from a text's states to a selection. One class each, found by name in `EXTRACTORS`.

A new method is one new module in this folder: it is imported, and so registered, by being there.
"""

from importlib import import_module
from pkgutil import iter_modules

from rationalizer.nn.extractors.base import EXTRACTORS, Extraction, Extractor

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["EXTRACTORS", "Extraction", "Extractor"]
