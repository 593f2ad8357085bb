"""A few of a model's own texts, kept with it, for whoever opens it to try."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

from rationalizer.data import Corpus
from rationalizer.text import AnyExample

LONGEST = 300  # characters of an example, all its texts together, where there are shorter ones
SampleText = str | tuple[str, str]  # one text, or premise and hypothesis
T = TypeVar("T")


def choose_samples(corpus: Corpus, count: int) -> tuple[SampleText, ...]:
    """Up to `count` different texts, of all classes in turn (of values, from the lowest to the highest in even steps);
    from dev, which was not learned from, if there is one."""
    candidates = {sample_text(example): example for example in corpus.dev or corpus.train}
    short = {text: example for text, example in candidates.items() if _length(text) <= LONGEST}
    if len(short) < count:
        short = {text: candidates[text] for text in sorted(candidates, key=_length)[:count]}
    if not count or not short:
        return ()
    if not corpus.classes:
        ordered = sorted(short, key=lambda text: (float(short[text].label or 0), text))
        steps = min(count, len(ordered))
        return tuple(ordered[k * (len(ordered) - 1) // max(steps - 1, 1)] for k in range(steps))
    by_class = [[text for text, example in short.items() if example.label == k] for k in range(len(corpus.classes))]
    return tuple(_in_turn(by_class))[:count]


def sample_text(example: AnyExample) -> SampleText:
    """What can be shown of it: a "?" stands for half a surrogate pair, which no page can hold."""
    first, *second = (part.text.encode("utf-8", "replace").decode() for part in example.texts)
    return (first, second[0]) if second else first


def _length(text: SampleText) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _in_turn(lists: Sequence[Iterable[T]]) -> Iterable[T]:
    return (item for item in chain.from_iterable(zip_longest(*lists)) if item is not None)
