"""From a text to the inputs of a model's networks, without PyTorch: words, their kinds, their vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rationalizer.text import Example, SentenceRule, SplitRule, VectorLookup, Vocabulary
from rationalizer.text.token_cache import TokenCache
from rationalizer.text.token_kinds import Punctuation, counted_tokens, selectable_tokens, token_kind

Feeds = dict[str, NDArray[Any]]  # the inputs of a graph by name


class Inputs(Protocol):
    """The inputs of a kind of encoder."""

    def knows(self, token: str) -> bool: ...

    def whole(self, text: Example) -> Feeds:
        """The inputs for the scores of a whole text."""

    def selection(self, text: Example, z: NDArray[np.float32]) -> Feeds:
        """The inputs for the output from a selection."""


class WordReader:
    """How a model splits texts into words, and which of them it can select. The names are those of `nn.Encoder`."""

    def __init__(self, words: Mapping[str, Any], knows: Callable[[str], bool]) -> None:
        self.rule: SplitRule = words["rule"]
        self.punctuation: Punctuation = words["punctuation"]
        self.sentences: SentenceRule = words["sentences"]
        self._kind = TokenCache[int](lambda token: token_kind(token, knows))

    def kinds(self, tokens: Iterable[str]) -> NDArray[np.int8]:
        return np.array(self._kind.get_all(tokens), dtype=np.int8)

    def masks(self, tokens: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which tokens can be selected, and which are punctuation that is read with the words around it."""
        counted, marks = selectable_tokens(self.kinds(tokens), np.ones((1, len(tokens)), np.bool_), self.punctuation)
        return counted[0], marks[0]

    def counted(self, tokens: Sequence[str]) -> NDArray[np.bool_]:
        return counted_tokens(self.kinds(tokens), self.punctuation)


class Table:
    """Vectors in 8 bits with a scale per row, or in single precision."""

    def __init__(self, codes: NDArray[Any], scales: NDArray[np.float32] | None = None) -> None:
        self.codes, self.scales = codes, scales

    def row(self, row: int, parts: int = 1) -> NDArray[np.float32]:
        """A row, divided by the number of parts of a word."""
        if self.scales is None:
            values: NDArray[np.float32] = self.codes[row] / np.float32(parts)
            return values
        return self.codes[row].astype(np.float32) * (self.scales[row] / np.float32(parts))


class VectorInputs:
    """The inputs of `nn.VectorEncoder`: a word's vector is the mean of its pretrained vectors plus its learned one.

    Args:
        vocabulary: the words with a learned vector; row 0 of `learned` is for all others.
        learned: the learned vectors.
        pretrained_words: the words with a pretrained vector; none if there are none.
        pretrained: their vectors.
        closes_gaps: whether only the selected words are passed on.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        learned: Table,
        pretrained_words: Sequence[str] = (),
        pretrained: Table | None = None,
        *,
        closes_gaps: bool = False,
    ) -> None:
        self.vocabulary, self.learned = vocabulary, learned
        self.lookup = VectorLookup(pretrained_words) if pretrained_words else None
        self.pretrained, self.closes_gaps = pretrained, closes_gaps
        self._rows = TokenCache(self._find_rows)

    def knows(self, token: str) -> bool:
        parts, seen = self._rows[token]
        return bool(parts or seen)

    def _find_rows(self, token: str) -> tuple[tuple[int, ...], int]:
        """The word's rows of the pretrained vectors, and its row of the learned ones."""
        seen = self.vocabulary.id(token)
        form = self.vocabulary.words[seen - 1] if seen else token
        return () if self.lookup is None else self.lookup.find_rows(form), seen

    def vectors(self, text: Example) -> NDArray[np.float32]:
        """(n, size), in the order of additions of `VectorEncoder.word_vectors`."""
        vectors = np.zeros((len(text.tokens), self.learned.codes.shape[1]), np.float32)
        for vector, (parts, seen) in zip(vectors, self._rows.get_all(text.tokens), strict=True):
            for part in parts:
                assert self.pretrained is not None
                vector += self.pretrained.row(part, len(parts))
            if seen:
                vector += self.learned.row(seen)
        return vectors

    def whole(self, text: Example) -> Feeds:
        return {"vectors": self.vectors(text)}

    def selection(self, text: Example, z: NDArray[np.float32]) -> Feeds:
        vectors = self.vectors(text)
        if self.closes_gaps:
            kept = z != 0
            vectors, z = vectors[kept], z[kept]
            if not len(z):
                vectors, z = np.zeros((1, vectors.shape[1]), np.float32), np.zeros(1, np.float32)
        return {"vectors": vectors, "weights": z.astype(np.float32)}
