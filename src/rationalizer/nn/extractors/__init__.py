"""Methods for one text, from the encoder's states to a selection; `EXTRACTORS` has them by name.

A new method is one new module in this folder.
"""

from rationalizer.discovery import import_modules
from rationalizer.nn.extractors.base import EXTRACTORS, Extraction, Extractor

import_modules(__name__)

__all__ = ["EXTRACTORS", "Extraction", "Extractor"]
