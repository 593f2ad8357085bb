"""Which words are selected in which group of documents, and how often."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Generic, TypeVar

from rationalizer.metrics._validation import require_same_count

Word = TypeVar("Word", bound=Hashable)


@dataclass(frozen=True)
class WordUse(Generic[Word]):
    """Selections of a word in one group of documents. Each document counts once, however often it contains the word."""

    word: Word
    selected: int  # documents of the group in which it is selected
    seen: int  # documents of the group that contain it
    documents: tuple[int, ...]  # indices of those in which it is selected, over all groups
    excess: float  # `selected` minus its expected value if selections were independent of the group


def word_use(
    selected: Sequence[Set[Word]], seen: Sequence[Set[Word]], groups: Sequence[Hashable]
) -> Mapping[Hashable, list[WordUse[Word]]]:
    """The words selected in each group, the most characteristic ones first.

    Words are sorted by the excess n(w, g) − n(w) · n(g) / n: words that are selected in every group come late, and so
    do words that are selected once.

    Args:
        selected: per document, the selected words (or other units, such as pairs of words).
        seen: per document, the words that it contains.
        groups: per document, its group, such as the predicted class.
    """
    total = require_same_count(selected=selected, seen=seen, groups=groups)
    sizes = Counter(groups)
    overall = Counter(word for words in selected for word in words)
    seen_in: dict[Hashable, Counter[Word]] = defaultdict(Counter)
    selected_in: dict[Hashable, dict[Word, list[int]]] = {group: defaultdict(list) for group in sizes}
    for number, (words, all_words, group) in enumerate(zip(selected, seen, groups, strict=True)):
        seen_in[group].update(all_words)
        for word in words:
            selected_in[group][word].append(number)
    result = {}
    for group, documents in selected_in.items():
        share = sizes[group] / total
        uses = [
            WordUse(word, len(where), seen_in[group][word], tuple(where), len(where) - share * overall[word])
            for word, where in documents.items()
        ]
        result[group] = sorted(uses, key=lambda use: (-use.excess, -use.selected, str(use.word)))
    return result
