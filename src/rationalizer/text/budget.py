"""A budget: the largest share, or number, of words a rationale may contain, a share on average, or what is enough."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from rationalizer.plurals import count_of
from rationalizer.text.errors import InputError, short_repr

if TYPE_CHECKING:  # PyTorch takes seconds to import, and exported models do without it
    from torch import Tensor

_REMEDY = (
    "write a share such as 20% or 0.2, a count of words such as 5, an average such as 18% on average, 8% to 35%, or "
    "enough, at most 40%, 90% certain"
)
_AVERAGE = re.compile(r"(?P<amount>\S+) on average(?:, *(?P<least>\S+) to (?P<most>\S+))?")
_ENOUGH = re.compile(r"enough(?:, *at most (?P<most>[^\s,]+))?(?:, *(?P<certainty>[^\s,]+) certain)?")
_ROUNDING = 1e-9  # of a product of a share and a number of words


class AverageBounds(NamedTuple):
    """An average budget for a batch of texts; the budget has the largest numbers of words."""

    share: float
    at_least: Tensor  # (batch,) int64: the smallest number of words of each text
    multiplier: float | None  # see `Budget`


@dataclass(frozen=True)
class Budget:
    """`Budget.share(0.2)` is a fifth of the words, `Budget.count(5)` five words; for a pair of texts, pairs of words.

    `Budget.average(0.18, least=0.08, most=0.35)` is 18% on average over texts, and 8% to 35% of each. A multiplier
    that is subtracted from all scores decides how many words a text gets within these bounds. In training it follows
    the selections; a trained model has a table of multipliers (see `inference/multiplier_table.py`).

    `Budget.enough(0.4, certainty=0.9)` is as few words of each text as are enough for the prediction from 40% of it
    (see `inference/enough.py`). In training it is a fixed share of 40%.

    Budgets of different kinds are never equal: all words (`Budget.share(1)`, "100%") are not one word
    (`Budget.count(1)`, "1"). The text form, which is stored, also distinguishes them.
    """

    kind: Literal["share", "count", "average", "enough"]
    amount: float | int  # of "enough": the largest share
    least: float = 0.0  # of an average: the bounds on each text
    most: float = 1.0
    certainty: float = 0.0  # of "enough"
    multiplier: float | None = field(default=None, compare=False, repr=False)  # of an average; None in training

    @classmethod
    def share(cls, amount: float) -> Self:
        amount = round(float(amount), 8) if math.isfinite(amount) else amount
        if not 0 < amount <= 1:
            raise InputError(f"a budget must be above 0 and at most 1 (100%), got {amount!r}", _REMEDY)
        return cls("share", amount)

    @classmethod
    def count(cls, amount: int) -> Self:
        if amount < 1:
            raise InputError(f"a budget must be at least 1 word, got {amount!r}", _REMEDY)
        return cls("count", int(amount))

    @classmethod
    def average(cls, amount: float, *, least: float | None = None, most: float | None = None) -> Self:
        """A share of the words on average over texts.

        Args:
            amount: the average share.
            least: the smallest share of a text, rounded up; half of the average by default. At least one word is
                selected of every text.
            most: the largest share of a text, rounded down to at least one word; twice the average by default. It
                prevails over `least` if a text has too few words for both.
        """
        mean = cls.share(amount).amount
        low = mean / 2 if least is None else least
        high = min(2 * mean, 1.0) if most is None else most
        if not (math.isfinite(low) and math.isfinite(high) and 0 <= low <= mean <= high <= 1):
            raise InputError(
                f"the bounds of an average of {_percent(mean)} are shares below and above it, got {low!r} and {high!r}",
                _REMEDY,
            )
        return cls("average", mean, round(float(low), 8), round(float(high), 8))

    @classmethod
    def enough(cls, most: float = 0.4, *, certainty: float = 0.9) -> Self:
        """The fewest words, at least one, from which the prediction is that from the share `most` of the words.

        Args:
            most: the largest share. A text gets all of it if no smaller selection is enough.
            certainty: the smallest probability of the predicted class. For values (regression), the prediction may
                differ by at most 1 − `certainty` standard deviations of the training labels.
        """
        largest = cls.share(most).amount
        if not 0 <= certainty <= 1:
            raise InputError(f"a certainty must be between 0 and 1 (100%), got {certainty!r}", _REMEDY)
        return cls("enough", largest, certainty=round(float(certainty), 8))

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
            if match := _AVERAGE.fullmatch(text):
                amount, *bounds = (None if part is None else _parse_share(part) for part in match.groups())
                return cls.average(float(amount or 0), least=bounds[0], most=bounds[1])
            if match := _ENOUGH.fullmatch(text):
                given = {name: _parse_share(part) for name, part in match.groupdict().items() if part is not None}
                return cls.enough(**given)
            if text.endswith("%"):
                return cls.share(_parse_share(text))
            return cls.count(int(text)) if text.isdecimal() else cls.share(float(text))
        except InputError as error:
            raise error.prefixed(f"a budget was expected, got {short_repr(text)}: ") from None
        except ValueError:
            raise InputError(f"a budget was expected, got {short_repr(text)}", _REMEDY) from None

    def __str__(self) -> str:
        """ "20%", "5", "18% on average, 8% to 35%" or "enough, at most 40%, 90% certain": the text that `parse`
        reads."""
        if self.kind == "count":
            return str(self.amount)
        if self.kind == "share":
            return _percent(self.amount)
        if self.kind == "enough":
            return f"enough, at most {_percent(self.amount)}, {_percent(self.certainty)} certain"
        return f"{_percent(self.amount)} on average, {_percent(self.least)} to {_percent(self.most)}"

    def describe(self, unit: str = "word") -> str:
        """ "20%", "1 word", "5 words", "18% on average, 8% to 35%"."""
        if self.kind != "count":
            return str(self)
        return count_of(int(self.amount), unit)

    def sort_key(self) -> tuple[str, float, float]:
        return self.kind, self.amount, self.certainty

    def calibrated(self, table: Mapping[str, Any]) -> Self:
        """Return an average budget with its multiplier, from the model's table (see `inference/multiplier_table.py`).

        Other bounds than those of the training and the default ones of the average have no table of their own.
        """
        if (self.least, self.most) != (table["least"], table["most"]) and self == Budget.average(self.amount):
            table = table.get("default_bounds", table)  # older models have none
        return replace(self, multiplier=float(np.interp(self.amount, table["shares"], table["multipliers"])))

    def word_limit(self, *selectable: Tensor) -> Tensor:
        """Return each text's limit in words: max(1, round(share · words)), or the count; at most the number of words.

        Of an average budget it is the bound `most`, rounded down; of "enough" the largest share.

        For two texts, the shorter one is used: no matching has more pairs.

        Args:
            selectable: one (batch, n) bool mask per text, True on the words that count towards the budget.

        Returns:
            (batch,) int64; 0 only if a text has no word.
        """
        import torch

        lengths = torch.stack([mask.sum(-1) for mask in selectable]).amin(0)
        if self.kind == "count":
            return lengths.clamp(max=min(int(self.amount), torch.iinfo(torch.int64).max))
        if self.kind == "average":
            allowed = (lengths.to(torch.float64) * self.most + _ROUNDING).floor().long()
            return torch.minimum(allowed.clamp(min=1), lengths)
        # float64, as in Python's round(share * length): float32 would round some halves the other way.
        allowed = (lengths.to(torch.float64) * self.amount).round().long()
        return torch.minimum(allowed.clamp(min=1), lengths)

    def average_bounds(self, *selectable: Tensor) -> AverageBounds | None:
        """Return what an average budget adds to `word_limit`; None for other budgets."""
        if self.kind != "average":
            return None
        import torch

        lengths = torch.stack([mask.sum(-1) for mask in selectable]).amin(0)
        required = (lengths.to(torch.float64) * self.least - _ROUNDING).ceil().long().clamp(min=1)
        at_least = torch.minimum(required, self.word_limit(*selectable))
        return AverageBounds(float(self.amount), at_least, self.multiplier)

    def bounds_for(self, words: int) -> tuple[int, int]:
        """Return the smallest and the largest number of words for a text with so many words, as the methods above do
        for tensors. The smallest is 0 except for an average budget."""
        if self.kind == "count":
            return 0, min(int(self.amount), words)
        if self.kind in ("share", "enough"):
            return 0, min(max(1, round(words * self.amount)), words)
        most = min(max(1, math.floor(words * self.most + _ROUNDING)), words)
        return min(max(1, math.ceil(words * self.least - _ROUNDING)), most), most


def _parse_share(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


def _percent(share: float) -> str:
    return f"{round(100 * share, 6):.10g}%"
