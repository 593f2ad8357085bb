"""Constraints on alignments: links that are required or forbidden, how many links, and in which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rationalizer.constraints.base import register
from rationalizer.constraints.pair_layer_arguments import Link, PairConstraint, PairLayerConstraints, PairRequirements
from rationalizer.constraints.patterns import check_settings, is_integer_pair, parse_flags
from rationalizer.constraints.stopwords import STOPWORDS
from rationalizer.plurals import count_of
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
        check_settings(self, flags=("equal", "stopwords"), lists=("words", "links", "matrix"))
        for pair in self.words:
            is_pair = isinstance(pair, tuple) and len(pair) == 2
            if not is_pair or not all(isinstance(word, str) and word for word in pair):
                raise InputError(f"{self.name}: words are pairs such as [('not', 'never')], got {short_repr(pair)}")
        if not self._settings():
            raise InputError(f"{self.name}: no words are named", "give words, equal, links or matrix")

    @property
    def per_text(self) -> bool:
        return self.links is not None or self.matrix is not None

    @classmethod
    def parse_value(cls, value: str) -> Self:
        """Flags, then pairs of words, separated by commas: "equal,words:not/never,good/great"."""
        flags, _, words = f",{value}".partition(",words:")
        pairs = tuple(tuple(part.strip().split("/")) for part in words.split(",") if part.strip())
        return cls(words=pairs, **parse_flags(flags, ("equal", "stopwords"), " or words:..."))

    def format_value(self) -> str:
        parts = [key for key in ("equal", "stopwords", "links", "matrix") if getattr(self, key)]
        return ",".join([*parts, f"words:{','.join('/'.join(pair) for pair in self.words)}"] if self.words else parts)

    def _describe_words(self) -> str:
        kinds = ["equal words"] if self.equal else []
        kinds += ["stopwords"] if self.stopwords else []
        kinds += [f"“{one}” with “{other}”" for one, other in self.words]
        return ", ".join([*kinds, "marked links"] if self.per_text else kinds)

    def _folded_words(self) -> list[tuple[str, str]]:
        """The pairs of words without case, each once: repeated ones would take time in every text."""
        return list(dict.fromkeys((one.casefold(), other.casefold()) for one, other in self.words))

    def links_for_pair(self, pair: PairRequirements) -> list[Link]:
        """The links given for this pair of texts alone: `links` and `matrix` have a list per pair, or a single one."""
        m, n = len(pair.premise), len(pair.hypothesis)
        links: list[Link] = []
        if self.links is not None:
            entries = (self.links,) if any(map(is_integer_pair, self.links)) else self.links
            for link in pair.item.own(self.name, "links", entries):
                if not is_integer_pair(link) or not (0 <= link[0] < m and 0 <= link[1] < n):
                    raise InputError(
                        f"{self.name}: {short_repr(link)} is not a link of {pair.item}",
                        "links are (token of the premise, token of the hypothesis), counted from 0, "
                        f"here less than {m} and {n}",
                    )
                links.append(link)
        if self.matrix is not None:
            rows = pair.item.own(self.name, "matrix", (self.matrix,) if any(map(_is_row, self.matrix)) else self.matrix)
            widths = {len(row) if isinstance(row, tuple) else -1 for row in rows}
            if len(rows) != m or widths - {n} or any(flag not in (0, 1) for row in rows for flag in row):
                raise InputError(f"{self.name}: a matrix has a 0 or 1 per pair of tokens, {m} x {n} for {pair.item}")
            links += [(i, j) for i in range(m) for j in range(n) if rows[i][j]]
        return links


def _is_row(value: Any) -> bool:
    return isinstance(value, tuple) and all(flag in (0, 1) for flag in value)


def _indices(tokens: Iterable[str]) -> dict[str, list[int]]:
    """The indices at which each word occurs."""
    indices: dict[str, list[int]] = defaultdict(list)
    for index, token in enumerate(tokens):
        if not is_punctuation(token):
            indices[token.casefold().replace("’", "'")].append(index)
    return indices


@register("must-align", "must-align=equal or must-align=words:not/never,good/great")
@dataclass(frozen=True, repr=False)
class MustAlign(_Links):
    """Words that must be aligned with each other, wherever both occur: the first occurrence with the first, the second
    with the second, and so on. They use up the budget.

    Args:
        words: pairs (word of the premise, word of the hypothesis), compared ignoring case.
        equal: the same word in both texts.
        stopwords: with `equal`, also English stopwords, which are left out otherwise.
        links: for each pair of texts, (token, token) indices from 0; for these pairs only, so not in training.
        matrix: for each pair of texts, a 0 or 1 per pair of tokens; for these pairs only.
    """

    suggested = ("must-align=equal",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stopwords and not self.equal:
            raise InputError(f"{self.name}: stopwords are aligned where they are equal", "give equal too")

    def describe(self) -> str:
        return f"{self._describe_words()} aligned"

    def update_pair(self, pair: PairRequirements) -> None:
        premise, hypothesis = _indices(pair.premise), _indices(pair.hypothesis)
        words = self._folded_words()
        if self.equal:
            excluded = frozenset() if self.stopwords else STOPWORDS
            words += [(word, word) for word in premise if word in hypothesis and word not in excluded]
        links = [
            link for one, other in words for link in zip(premise.get(one, ()), hypothesis.get(other, ()), strict=False)
        ]
        for link in links + self.links_for_pair(pair):
            pair.must.setdefault(link, self)


@register("never-align", "never-align=stopwords or never-align=words:good/bad")
@dataclass(frozen=True, repr=False)
class NeverAlign(_Links):
    """Words that are never aligned with each other.

    Args:
        words, equal, links, matrix: as for `MustAlign`.
        stopwords: English stopwords, with any word.
    """

    suggested = ("never-align=stopwords",)

    def describe(self) -> str:
        return f"{self._describe_words()} never aligned"

    def update_pair(self, pair: PairRequirements) -> None:
        premise, hypothesis = _indices(pair.premise), _indices(pair.hypothesis)
        words = self._folded_words()
        words += [(word, word) for word in premise] if self.equal else []
        for one, other in words:
            if one in premise and other in hypothesis:
                pair.never[np.ix_(premise[one], hypothesis[other])] = True
        if self.stopwords:
            pair.never[[i for word in premise.keys() & STOPWORDS for i in premise[word]], :] = True
            pair.never[:, [j for word in hypothesis.keys() & STOPWORDS for j in hypothesis[word]]] = True
        for i, j in self.links_for_pair(pair):
            pair.never[i, j] = True


@register("monotone", "monotone")
@dataclass(frozen=True, repr=False)
class Monotone(PairConstraint):
    """No two links cross: later words of one text are aligned with later words of the other."""

    suggested = ("monotone",)

    def describe(self) -> str:
        return "no crossing links"

    def update_layer(self, layer: PairLayerConstraints) -> PairLayerConstraints:
        return replace(layer, monotone=True)


@register("exactly-k", "exactly-k=3")
@dataclass(frozen=True, repr=False)
class ExactlyK(PairConstraint):
    """Exactly this many pairs of words are aligned, whatever the budget."""

    suggested = ("exactly-k=1", "exactly-k=2")
    k: Count

    def describe(self) -> str:
        return f"exactly {count_of(self.k, 'pair')}"

    def update_layer(self, layer: PairLayerConstraints) -> PairLayerConstraints:
        if layer.exactly not in (None, self.k):
            raise InputError(f"exactly-k={layer.exactly} and {self} cannot both hold", "leave one out")
        return replace(layer, exactly=self.k)
