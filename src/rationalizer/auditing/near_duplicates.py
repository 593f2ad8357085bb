"""Find texts of one collection that are, exactly or nearly, in another one."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rationalizer.text import is_punctuation

PHRASE = 5  # words
NEAR = 0.6  # the share of a text's phrases that one other text must contain
MOST_PHRASES = 20_000_000  # of the other collection; beyond that, a sample of the phrases is compared


@dataclass(frozen=True)
class Overlap:
    """The numbers of texts that are in the other collection, and of those that are nearly."""

    exact: list[int]
    near: list[int]


def find_overlap(texts: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> Overlap:
    """Compare texts by their words, without case and punctuation; near duplicates by phrases of five words."""
    own = [_hashes(text) for text in texts]
    other = [_hashes(text) for text in others]
    whole = {words.tobytes() for words in other}
    exact = [number for number, words in enumerate(own) if words.tobytes() in whole]
    keep = -(-sum(map(len, other)) // MOST_PHRASES)
    phrases = [_phrases(words, keep) for words in other]
    if not phrases:
        return Overlap(exact, [])
    keys = np.concatenate(phrases)
    document = np.repeat(np.arange(len(phrases)), [len(row) for row in phrases])
    order = np.argsort(keys, kind="stable")
    keys, document = keys[order], document[order]
    known = set(exact)
    near = [
        number
        for number, words in enumerate(own)
        if number not in known and _largest_share(_phrases(words, keep), keys, document) >= NEAR
    ]
    return Overlap(exact, near)


def _hashes(text: Sequence[str]) -> NDArray[np.uint64]:
    words = [word.lower() for word in text if not is_punctuation(word)]
    return np.array([zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words], dtype=np.uint64)


def _phrases(words: NDArray[np.uint64], keep: int) -> NDArray[np.uint64]:
    """A hash for each distinct phrase; one of `keep` on average."""
    count = len(words) - PHRASE + 1
    if count < 1:
        return np.zeros(0, dtype=np.uint64)
    mixed = np.zeros(count, dtype=np.uint64)
    for k in range(PHRASE):
        mixed = (mixed * np.uint64(0x9E3779B97F4A7C15)) ^ (words[k : k + count] * np.uint64(0xC2B2AE3D27D4EB4F))
        mixed ^= mixed >> np.uint64(29)
    distinct = np.unique(mixed)
    return distinct if keep == 1 else distinct[distinct % np.uint64(keep) == 0]


def _largest_share(phrases: NDArray[np.uint64], keys: NDArray[np.uint64], document: NDArray[np.int64]) -> float:
    if not len(phrases):
        return 0.0
    start, end = np.searchsorted(keys, phrases, "left"), np.searchsorted(keys, phrases, "right")
    matches = [document[a:b] for a, b in zip(start, end, strict=True) if b > a]
    if not matches:
        return 0.0
    return float(np.bincount(np.concatenate(matches)).max() / len(phrases))
