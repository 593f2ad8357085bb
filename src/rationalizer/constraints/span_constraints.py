"""The number and the length of spans."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rationalizer.constraints.base import register
from rationalizer.constraints.layer_arguments import LayerConstraints, TextConstraint
from rationalizer.plurals import count_of
from rationalizer.ranges import Count, CountOrNone
from rationalizer.text.errors import InputError, short_repr


@register("spans", "spans=2")
@dataclass(frozen=True, repr=False)
class Spans(TextConstraint):
    """At most this many contiguous spans. Punctuation that uses up no budget does not separate spans."""

    suggested = ("spans=1", "spans=2")
    most: Count

    def describe(self) -> str:
        return f"at most {count_of(self.most, 'span')}"

    def update_layer(self, layer: LayerConstraints) -> LayerConstraints:
        return layer.at_most(spans=self.most)


@register("span-length", "span-length=3-8, span-length=3- (at least) or span-length=-8 (at most)")
@dataclass(frozen=True, repr=False)
class SpanLength(TextConstraint):
    """The smallest and the largest number of words of each span."""

    suggested = ("span-length=3-8",)
    at_least: Count = 1
    at_most: CountOrNone = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at_most is not None and self.at_least > self.at_most:
            raise InputError(
                f"{self.name}: the minimum at_least={self.at_least} exceeds the maximum at_most={self.at_most}",
                "swap them, or change one",
            )

    @classmethod
    def parse_value(cls, value: str) -> SpanLength:
        low, hyphen, high = (part.strip() for part in value.partition("-"))
        if not hyphen or not (low or high) or not all(part.isdecimal() for part in (low, high) if part):
            raise InputError(f"a range of words was expected, got {short_repr(value)}")
        return cls(int(low) if low else 1, int(high) if high else None)

    def format_value(self) -> str:
        return f"{self.at_least if self.at_least > 1 or self.at_most is None else ''}-{self.at_most or ''}"

    def describe(self) -> str:
        if self.at_most is None:
            return f"spans of {self.at_least} words or more"
        return f"spans of {self.at_least} to {self.at_most} words"

    def update_layer(self, layer: LayerConstraints) -> LayerConstraints:
        layer = replace(layer, shortest=max(layer.shortest, self.at_least))
        return layer if self.at_most is None else layer.at_most(longest=self.at_most)
