"""Ranges of settings, declared in their type: `temperature: Temperature = 0.1`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints


@dataclass(frozen=True)
class Range:
    """The interval from `low` to `high`, both finite; NaN and infinities are outside every range."""

    low: float
    high: float
    below: bool = False  # whether `high` itself is excluded
    none: bool = False  # whether None is allowed

    def problem(self, value: Any) -> str | None:
        """Return what the value must be, or None if it is in the range."""
        if value is None and self.none:
            return None
        if self.low <= value <= self.high and not (self.below and value == self.high):
            return None
        if self.high <= 1:
            return f"must lie in [{_format(self.low)}, {_format(self.high)}{')' if self.below else ']'}"
        if value > self.high:
            return f"must be at most {_format(self.high)}"
        if 0 < self.low < 1 and not value > 0:
            return "must be positive"
        return f"must be at least {_format(self.low)}{' or none' if self.none else ''}"

    def describe(self) -> str:
        """ "from 0 to 1", "from 0 to below 1", "from 1 to 100, or none"."""
        to = "to below" if self.below else "to"
        return f"from {_format(self.low)} {to} {_format(self.high)}{', or none' if self.none else ''}"


def _format(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


# Outside these ranges, 32-bit numbers overflow or underflow.
Temperature = Annotated[float, Range(1e-4, 1e4)]
Positive = Annotated[float, Range(1e-9, 1e9)]
Weight = Annotated[float, Range(0, 1e6)]  # of a term of the loss
Rate = Annotated[float, Range(0, 100)]  # a learning rate
Share = Annotated[float, Range(0, 1)]
Fraction = Annotated[float, Range(0, 1, below=True)]  # a share below 1
Size = Annotated[int, Range(1, 10_000)]  # of vectors and layers
Count = Annotated[int, Range(1, 10**6)]
CountOrNone = Annotated[int | None, Range(1, 10**6, none=True)]
Number = Annotated[int, Range(0, 10**6)]
NumberOrNone = Annotated[int | None, Range(0, 10**6, none=True)]


def ranges_of(settings: type | Callable[..., Any]) -> dict[str, Range]:
    """Return the ranges declared in the type hints of a class or function, by name."""
    return ranges_in(get_type_hints(settings, include_extras=True))


def ranges_in(hints: Mapping[str, Any]) -> dict[str, Range]:
    """Return the ranges declared in type hints, by name."""
    found = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: each for name, extras in found.items() for each in extras if isinstance(each, Range)}


def check_ranges(ranges: Mapping[str, Range], values: Mapping[str, Any]) -> None:
    """Raise ValueError for the first value outside its range."""
    for name, value in values.items():
        problem = ranges[name].problem(value) if name in ranges else None
        if problem is not None:
            raise ValueError(f"{name} {problem}, got {value}")
