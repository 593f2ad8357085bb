"""The inputs of a transformer for one text, without PyTorch: subwords in rows, as in `nn.TransformerEncoder`.

Texts longer than a row are encoded in overlapping rows, and every word has one row as its home, see
`nn/encoders/windows.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.export.word_inputs import Feeds
from rationalizer.text import Example
from rationalizer.text.subwords import Subwords

Numbers = NDArray[np.int64]


class SubwordInputs:
    """The inputs of the graphs of a transformer.

    Args:
        encoder: the entry `encoder` of the manifest.
        tokenizer: the content of its file.
    """

    def __init__(self, encoder: Mapping[str, Any], tokenizer: str) -> None:
        self.encoder = encoder
        sides = (tuple(encoder["prefix"]), tuple(encoder["suffix"]))
        self.subwords = Subwords.from_text(tokenizer, *sides, encoder["mask"], encoder["unknown"])

    def knows(self, token: str) -> bool:
        return self.subwords.knows(token)

    def whole(self, text: Example) -> Feeds:
        feeds = self._lay_out(text, np.ones(len(text.tokens), np.float32))
        del feeds["token_weights"]
        return feeds

    def selection(self, text: Example, z: NDArray[np.float32]) -> Feeds:
        return {**self._lay_out(text, z), "weights": z}

    def _lay_out(self, text: Example, z: NDArray[np.float32]) -> Feeds:
        """The tokens of the words with z ≠ 0, with empty positions for others where gaps are kept."""
        settings, words = self.encoder, self.subwords.tokenize(text)
        visible = z != 0
        sizes = np.where(visible, [len(tokens) for tokens in words], _gaps(visible, settings["gaps"]))
        ends = np.cumsum(sizes)
        starts, total = ends - sizes, int(ends[-1])
        capacity, overlap = settings["room"], settings["overlap"]
        length = min(max(1, total), capacity)
        core = max(total, 1) if total <= capacity else capacity - 2 * overlap
        count = max(1, -(-total // core))
        own = np.minimum(starts // core, count - 1)  # each word's home row
        # A row begins with the first word that begins within its margin or later.
        first = np.searchsorted(starts, np.maximum(np.arange(count) * core - overlap, 0))
        begins = starts[np.minimum(first, len(starts) - 1)]
        prefix, suffix = self.subwords.prefix, self.subwords.suffix
        width = len(prefix) + length + len(suffix)
        tokens = np.full((count, width), settings["filler"], np.int64)
        attended, weights = np.zeros((count, width), np.int64), np.zeros((count, width), np.float32)
        for row, begin in enumerate(begins.tolist()):
            tokens[row, : len(prefix)] = prefix
            inside = np.flatnonzero((starts >= begin) & (ends <= begin + length) & (sizes > 0))
            end = len(prefix)
            for word in inside.tolist():
                at = len(prefix) + int(starts[word]) - begin
                end = at + int(sizes[word])
                if visible[word]:
                    tokens[row, at:end] = words[word]
                    weights[row, at:end] = z[word]
                if visible[word] or settings["unselected"] != "out":
                    attended[row, at:end] = 1
            tokens[row, end : end + len(suffix)] = suffix
            for special in (slice(0, len(prefix)), slice(end, end + len(suffix))):
                attended[row, special], weights[row, special] = 1, 1.0
        index, share = _own_tokens(words, visible, own * width + len(prefix) + starts - begins[own])
        return {"tokens": tokens, "attended": attended, "token_weights": weights, "index": index, "share": share}


def _gaps(visible: NDArray[np.bool_], kind: str) -> Numbers:
    """The number of empty positions in place of each unselected word."""
    hidden = ~visible & (kind != "closed")
    if kind == "marked":  # one for each run
        hidden &= np.append(True, visible[:-1])
    return hidden.astype(np.int64)


def _own_tokens(
    words: Sequence[tuple[int, ...]], visible: NDArray[np.bool_], home: Numbers
) -> tuple[Numbers, NDArray[np.float32]]:
    """The positions of each word's tokens among those of all rows, and the weight of each in the word's mean."""
    most = max(map(len, words))
    index, share = np.zeros((len(words), most), np.int64), np.zeros((len(words), most), np.float32)
    for word in np.flatnonzero(visible).tolist():
        size = len(words[word])
        index[word, :size] = home[word] + np.arange(size)
        share[word, :size] = 1 / size
    return index, share
