"""What may be aligned: pairs of words that must be or never may, how many, and in which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from rationalizer.constraints.base import register
from rationalizer.constraints.pair_layer_arguments import Link, PairConstraint, PairLayerConstraints, PairRequirements
from rationalizer.constraints.patterns import to_tuples
from rationalizer.constraints.stopwords import STOPWORDS
from rationalizer.ranges import Count
from rationalizer.text import is_punctuation
from rationalizer.text.errors import InputError, short_repr


@dataclass(frozen=True, repr=False)
class _Links(PairConstraint):
    words: Sequence[Sequence[str]] = ()
    equal: bool = False
    stopwords: bool = False
    links: Sequence[Any] | None = None
    matrix: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        for key in ("words", "links", "matrix"):
            object.__setattr__(self, key, to_tuples(getattr(self, key)))
        for pair in self.words:
            if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(word, str) and word for word in pair):
                raise InputError(f"{self.name}: words are pairs such as [('not', 'never')], got {short_repr(pair)}")
        for key in ("equal", "stopwords"):
            if not isinstance(getattr(self, key), bool):
                raise InputError(f"{self.name}: {key} must be true or false, got {short_repr(getattr(self, key))}")
        for key in ("links", "matrix"):
            if not isinstance(getattr(self, key), tuple | None):
                raise InputError(f"{self.name}: {key} is a list, got {short_repr(getattr(self, key))}")
        if not self._settings():
            raise InputError(f"{self.name}: which words? give words, equal, links or matrix")

    @property
    def per_text(self) -> bool:
        return self.links is not None or self.matrix is not None

    @classmethod
    def parse_value(cls, value: str) -> Self:
        """Kinds, then pairs of words, with commas between: "equal,words:not/never,good/great"."""
        kinds, _, words = f",{value}".partition(",words:")
        flags = [kind.strip() for kind in kinds.split(",") if kind.strip()]
        unknown = next((kind for kind in flags if kind not in ("equal", "stopwords")), None)
        if unknown is not None:
            raise InputError(f"equal, stopwords or words:... was expected, got {short_repr(unknown)}")
        pairs = tuple(tuple(part.strip().split("/")) for part in words.split(",") if part.strip())
        return cls(words=pairs, equal="equal" in flags, stopwords="stopwords" in flags)

    def format_value(self) -> str:
        parts = [key for key in ("equal", "stopwords", "links", "matrix") if getattr(self, key)]
        return ",".join([*parts, f"words:{','.join('/'.join(pair) for pair in self.words)}"] if self.words else parts)

    def _describe_words(self) -> str:
        """The words it speaks of, for people to read."""
        kinds = ["equal words"] if self.equal else []
        kinds += ["stopwords"] if self.stopwords else []
        kinds += [f"“{one}” with “{other}”" for one, other in self.words]
        return ", ".join([*kinds, "what is marked"] if self.per_text else kinds)

    def links_for_pair(self, pair: PairRequirements) -> list[Link]:
        """The links that were given for this pair of texts alone."""
        found: list[Link] = []
        m, n = len(pair.premise), len(pair.hypothesis)
        if self.links is not None:
            for link in self._of_pair("links", self.links, any(map(_is_link, self.links)), pair):
                if not _is_link(link) or not (0 <= link[0] < m and 0 <= link[1] < n):
                    raise InputError(
                        f"{self.name}: {short_repr(link)} is no link of {pair.source}",
                        "links are (token of the premise, token of the hypothesis), counted from 0, here "
                        f"below ({m}, {n})",
                    )
                found.append(link)
        if self.matrix is not None:
            rows = self._of_pair("matrix", self.matrix, any(map(_is_row, self.matrix)), pair)
            shape = {len(row) if isinstance(row, tuple) else -1 for row in rows}
            if len(rows) != m or shape - {n} or any(flag not in (0, 1) for row in rows for flag in row):
                raise InputError(f"{self.name}: a matrix has a 0 or 1 a pair of tokens, {m} x {n} for {pair.source}")
            found += [(i, j) for i in range(m) for j in range(n) if rows[i][j]]
        return found

    def _of_pair(self, key: str, given: Sequence[Any], one: bool, pair: PairRequirements) -> Sequence[Any]:
        """What was given for this pair: `given` has a list for each, or is that of the `one` pair there is."""
        listed = (given,) if one else given
        if len(listed) != pair.source.of:
            pairs = "1 pair" if pair.source.of == 1 else f"{pair.source.of} pairs"
            raise InputError(
                f"{self.name}: {key} is of {len(listed)} pairs, but there are {pairs}", "give a list for each"
            )
        return tuple(listed[pair.source.position])


def _is_link(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(type(place) is int for place in value)


def _is_row(value: Any) -> bool:
    return isinstance(value, tuple) and all(flag in (0, 1) for flag in value)


def _places(tokens: Iterable[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for place, token in enumerate(tokens):
        if not is_punctuation(token):
            found[token.casefold().replace("’", "'")].append(place)
    return found


@register("must-align", "must-align=equal or must-align=words:not/never,good/great")
@dataclass(frozen=True, repr=False)
class MustAlign(_Links):
    """Words that must be aligned with each other, wherever both stand: the first of one with the first of the other,
    the second with the second, and so on. They use up the budget.

    Args:
        words: pairs (word of the premise, word of the hypothesis), compared without regard to case.
        equal: the same word in both texts.
        stopwords: with `equal`, also English stopwords; these are left out otherwise.
        links: for each pair of texts, (token, token) positions counted from 0; for these only, so not in training.
        matrix: for each pair of texts, a 0 or 1 a pair of tokens; for these only.
    """

    suggested = ("must-align=equal",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stopwords and not self.equal:
            raise InputError(f"{self.name}: stopwords are aligned where they are equal", "give equal too")

    def describe(self) -> str:
        return f"{self._describe_words()} aligned"

    def update_pair(self, pair: PairRequirements) -> None:
        premise, hypothesis = _places(pair.premise), _places(pair.hypothesis)
        wanted = [(one.casefold(), other.casefold()) for one, other in self.words]
        if self.equal:
            left_out = frozenset() if self.stopwords else STOPWORDS
            wanted += [(word, word) for word in premise if word in hypothesis and word not in left_out]
        links = [
            link for one, other in wanted for link in zip(premise.get(one, ()), hypothesis.get(other, ()), strict=False)
        ]
        for link in links + self.links_for_pair(pair):
            pair.must.setdefault(link, self)


@register("never-align", "never-align=stopwords or never-align=words:good/bad")
@dataclass(frozen=True, repr=False)
class NeverAlign(_Links):
    """Words that are never aligned with each other.

    Args:
        words: pairs (word of the premise, word of the hypothesis), compared without regard to case.
        equal: the same word in both texts.
        stopwords: English stopwords, with whatever word.
        links: for each pair of texts, (token, token) positions counted from 0; for these only, so not in training.
        matrix: for each pair of texts, a 0 or 1 a pair of tokens; for these only.
    """

    suggested = ("never-align=stopwords",)

    def describe(self) -> str:
        return f"{self._describe_words()} never aligned"

    def update_pair(self, pair: PairRequirements) -> None:
        premise, hypothesis = _places(pair.premise), _places(pair.hypothesis)
        wanted = [(one.casefold(), other.casefold()) for one, other in self.words]
        wanted += [(word, word) for word in premise] if self.equal else []
        for one, other in wanted:
            for i in premise.get(one, ()):
                pair.never[i, hypothesis.get(other, [])] = True
        if self.stopwords:
            pair.never[[place for word in premise.keys() & STOPWORDS for place in premise[word]], :] = True
            pair.never[:, [place for word in hypothesis.keys() & STOPWORDS for place in hypothesis[word]]] = True
        for i, j in self.links_for_pair(pair):
            pair.never[i, j] = True


@register("monotone", "monotone")
@dataclass(frozen=True, repr=False)
class Monotone(PairConstraint):
    """No two links cross: what comes later in one text is aligned with what comes later in the other."""

    suggested = ("monotone",)

    def describe(self) -> str:
        return "no crossing links"

    def update_layer(self, layer: PairLayerConstraints) -> PairLayerConstraints:
        return replace(layer, monotone=True)


@register("exactly-k", "exactly-k=3")
@dataclass(frozen=True, repr=False)
class ExactlyK(PairConstraint):
    """So many pairs of words are aligned, neither more nor fewer, whatever the budget."""

    suggested = ("exactly-k=1", "exactly-k=2")
    k: Count

    def describe(self) -> str:
        return f"exactly {self.k} pair{'' if self.k == 1 else 's'}"

    def update_layer(self, layer: PairLayerConstraints) -> PairLayerConstraints:
        if layer.exactly not in (None, self.k):
            raise InputError(f"exactly-k={layer.exactly} and {self} cannot both hold", "leave one out")
        return replace(layer, exactly=self.k)
