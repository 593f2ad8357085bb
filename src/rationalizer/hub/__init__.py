"""Models that come from elsewhere or go there: those of the package, those of the Hugging Face Hub, and their cards."""

from rationalizer.hub.lookup import locate
from rationalizer.hub.model_card import Facts, write_card
from rationalizer.hub.starters import STARTERS, Starter, starter

__all__ = ["STARTERS", "Facts", "Starter", "locate", "starter", "write_card"]
