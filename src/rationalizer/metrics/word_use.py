"""Which words are selected in which group of documents, and how often of the documents that have them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Generic, TypeVar

from rationalizer.metrics._validation import require_same_count

Word = TypeVar("Word", bound=Hashable)


@dataclass(frozen=True)
class WordUse(Generic[Word]):
    """A word in one group of documents. A document counts once, however often the word stands in it."""

    word: Word
    selected: int  # documents of the group that select it
    seen: int  # documents of the group that have it
    documents: tuple[int, ...]  # those that select it, counted from 0 over all groups
    excess: float  # how many more they are than if the word's selections were spread over all documents evenly


def word_use(
    selected: Sequence[Set[Word]], seen: Sequence[Set[Word]], groups: Sequence[Hashable]
) -> Mapping[Hashable, list[WordUse[Word]]]:
    """By group the words that are selected in it, those first that are most its own.

    Their order is that of the excess n(w, g) − n(w) · n(g) / n: a word that is selected everywhere comes late, and so
    does one that is selected once.

    Args:
        selected: per document, the words (or whatever is selected, such as pairs of words) that are selected.
        seen: per document, the words that it has.
        groups: per document, its group, such as the class that was predicted.
    """
    total = require_same_count(selected=selected, seen=seen, groups=groups)
    sizes = Counter(groups)
    overall = Counter(word for words in selected for word in words)
    had: dict[Hashable, Counter[Word]] = defaultdict(Counter)
    chosen: dict[Hashable, dict[Word, list[int]]] = {group: defaultdict(list) for group in sizes}
    for number, (words, all_words, group) in enumerate(zip(selected, seen, groups, strict=True)):
        had[group].update(all_words)
        for word in words:
            chosen[group][word].append(number)
    found = {}
    for group, documents in chosen.items():
        share = sizes[group] / total
        uses = [
            WordUse(word, len(where), had[group][word], tuple(where), len(where) - share * overall[word])
            for word, where in documents.items()
        ]
        found[group] = sorted(uses, key=lambda use: (-use.excess, -use.selected, str(use.word)))
    return found
