"""Models that come from elsewhere or go there: those of the package, those of the Hugging Face Hub, and their cards."""

from rationalizer.sharing.card import Facts, write_card
from rationalizer.sharing.places import locate
from rationalizer.sharing.starters import STARTERS, Starter, starter

__all__ = ["STARTERS", "Facts", "Starter", "locate", "starter", "write_card"]
