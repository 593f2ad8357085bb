"""A budget: the largest share, or number, of words a rationale may contain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Self

import torch
from torch import Tensor

from rationalizer.text.errors import InputError, short_repr

_REMEDY = "write a share such as 20% or 0.2, or a count of words such as 5"


@dataclass(frozen=True)
class Budget:
    """`Budget.share(0.2)` is a fifth of the words, `Budget.count(5)` five words; for a pair of texts, pairs of words.

    Budgets of different kinds are never equal: all words (`Budget.share(1)`, "100%") are not one word
    (`Budget.count(1)`, "1"). The text form, which is stored, also distinguishes them.
    """

    kind: Literal["share", "count"]
    amount: float | int

    @classmethod
    def share(cls, amount: float) -> Self:
        amount = round(float(amount), 8) if math.isfinite(amount) else amount
        if not 0 < amount <= 1:
            raise InputError(f"a budget is a share above 0 and up to 1 (100%), got {amount!r}", _REMEDY)
        return cls("share", amount)

    @classmethod
    def count(cls, amount: int) -> Self:
        if amount < 1:
            raise InputError(f"a budget of words is at least 1, got {amount!r}", _REMEDY)
        return cls("count", int(amount))

    @classmethod
    def parse(cls, value: Any) -> Budget:
        """Make a budget from a value: "20%", 0.2 and "0.2" are shares, 5 and "5" are counts, 1.0 is the whole text."""
        if isinstance(value, Budget):
            return value
        if isinstance(value, str):
            return cls._from_text(value.strip())
        if isinstance(value, Integral) and not isinstance(value, bool):
            return cls.count(int(value))
        if isinstance(value, Real) and not isinstance(value, bool):
            share = float(value)
            if share > 1 and share.is_integer():
                raise InputError(f"the budget {value!r} is a float above 1", f"write {int(share)} for a count of words")
            return cls.share(share)
        raise InputError(f"a budget was expected, got {value!r}", _REMEDY)

    @classmethod
    def _from_text(cls, text: str) -> Budget:
        try:
            if text.endswith("%"):
                return cls.share(float(text[:-1]) / 100)
            return cls.count(int(text)) if text.isdecimal() else cls.share(float(text))
        except ValueError:
            raise InputError(f"a budget was expected, got {short_repr(text)}", _REMEDY) from None

    def __str__(self) -> str:
        """ "20%" or "5": the text that `parse` reads."""
        return f"{round(100 * self.amount, 6):.10g}%" if self.kind == "share" else str(self.amount)

    def describe(self, unit: str = "word") -> str:
        """ "20%", "1 word", "5 words"."""
        if self.kind == "share":
            return str(self)
        return f"{self.amount} {unit}{'' if self.amount == 1 else 's'}"

    def sort_key(self) -> tuple[str, float]:
        return self.kind, self.amount

    def word_limit(self, *selectable: Tensor) -> Tensor:
        """Return each text's limit in words: max(1, round(share · words)), or the count; at most the number of words.

        For two texts, the shorter one is used: no matching has more pairs.

        Args:
            selectable: one (batch, n) bool mask per text, True on the words that count towards the budget.

        Returns:
            (batch,) int64; 0 only if a text has no word.
        """
        lengths = torch.stack([mask.sum(-1) for mask in selectable]).amin(0)
        if self.kind == "count":
            return lengths.clamp(max=min(int(self.amount), torch.iinfo(torch.int64).max))
        # float64, as in Python's round(share * length): float32 would round some halves the other way.
        allowed = (lengths.to(torch.float64) * self.amount).round().long()
        return torch.minimum(allowed.clamp(min=1), lengths)
