"""How many spans, and how long."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rationalizer.constraints.base import register
from rationalizer.constraints.layer_arguments import LayerConstraints, TextConstraint
from rationalizer.ranges import Count, CountOrNone
from rationalizer.text.errors import shown


@register("spans", "spans=2")
@dataclass(frozen=True, repr=False)
class Spans(TextConstraint):
    """At most so many contiguous spans. Punctuation that uses up no budget does not part them."""

    offered = ("spans=1", "spans=2")
    most: Count

    def in_words(self) -> str:
        return f"at most {self.most} span{'' if self.most == 1 else 's'}"

    def limit(self, limits: LayerConstraints) -> LayerConstraints:
        return limits.at_most(spans=self.most)


@register("span-length", "span-length=3-8, span-length=3- (at least) or span-length=-8 (at most)")
@dataclass(frozen=True, repr=False)
class SpanLength(TextConstraint):
    """Each span has at least, and at most, so many words."""

    offered = ("span-length=3-8",)
    at_least: Count = 1
    at_most: CountOrNone = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"{self.name}: at_least must be at most at_most, got {self.at_least} and {self.at_most}")

    @classmethod
    def read(cls, value: str) -> SpanLength:
        low, hyphen, high = (part.strip() for part in value.partition("-"))
        if not hyphen or not (low or high) or not all(part.isdecimal() for part in (low, high) if part):
            raise ValueError(f"a range of words was expected, got {shown(value)}")
        return cls(int(low) if low else 1, int(high) if high else None)

    def written(self) -> str:
        return f"{self.at_least if self.at_least > 1 or self.at_most is None else ''}-{self.at_most or ''}"

    def in_words(self) -> str:
        if self.at_most is None:
            return f"spans of {self.at_least} words or more"
        return f"spans of {self.at_least} to {self.at_most} words"

    def limit(self, limits: LayerConstraints) -> LayerConstraints:
        limits = replace(limits, shortest=max(limits.shortest, self.at_least))
        return limits if self.at_most is None else limits.at_most(longest=self.at_most)
