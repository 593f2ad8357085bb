"""Methods for two texts, from the scores of word pairs to an alignment; `ALIGNERS` has them by name.

A new method is one new module in this folder.
"""

from rationalizer.discovery import import_modules
from rationalizer.nn.aligners.base import ALIGNERS, Aligner, Alignment

import_modules(__name__)

__all__ = ["ALIGNERS", "Aligner", "Alignment"]
