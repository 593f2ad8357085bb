"""Post-hoc attributions: how much each word of the whole text contributes to a prediction.

A new attribution is one new file in this folder: a function that is registered in `ATTRIBUTIONS`.
"""

from rationalizer.discovery import import_modules
from rationalizer.inference.attributions.base import ATTRIBUTIONS, Attribution, attribute

import_modules(__name__)

__all__ = ["ATTRIBUTIONS", "Attribution", "attribute"]
