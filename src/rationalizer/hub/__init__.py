"""Find and share models: starter models, models on the Hugging Face Hub, and model cards."""

from typing import TYPE_CHECKING

from rationalizer.hub.lookup import locate
from rationalizer.hub.starters import STARTERS, Facts, Starter, starter

if TYPE_CHECKING:
    from rationalizer.hub.model_card import write_card

__all__ = ["STARTERS", "Facts", "Starter", "locate", "starter", "write_card"]


def __getattr__(name: str) -> object:
    if name == "write_card":  # lazy: it needs PyTorch, which exported models do without
        from rationalizer.hub.model_card import write_card

        return write_card
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
