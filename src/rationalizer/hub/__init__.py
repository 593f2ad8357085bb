"""Find and share models: starter models, models on the Hugging Face Hub, and model cards."""

from rationalizer.hub.lookup import locate
from rationalizer.hub.model_card import Facts, write_card
from rationalizer.hub.starters import STARTERS, Starter, starter

__all__ = ["STARTERS", "Facts", "Starter", "locate", "starter", "write_card"]
