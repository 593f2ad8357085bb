"""A few texts of the corpus, saved with the model, to try it on."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import Any

from rationalizer.data import Corpus
from rationalizer.text import AnyExample

LONGEST = 300  # characters in an example; longer ones are used only if there are too few
SampleText = str | tuple[str, str]  # one text, or premise and hypothesis


def choose_samples(corpus: Corpus, count: int) -> tuple[SampleText, ...]:
    """Return up to `count` different texts, from all classes in turn (for regression: from the lowest value to the
    highest in even steps), from dev if there is one."""
    candidates = {sample_text(example): example for example in corpus.dev or corpus.train}
    short = {text: example for text, example in candidates.items() if _length(text) <= LONGEST}
    if len(short) < count:
        short = {text: candidates[text] for text in sorted(candidates, key=_length)[:count]}
    if not count or not short:
        return ()
    if corpus.label_names:
        # Texts with many labels, or values, first.
        found: dict[SampleText, Any] = {text: example.label for text, example in short.items()}
        given = {text: sum(bool(value) for value in label or ()) for text, label in found.items()}
        return tuple(sorted(short, key=lambda text: (-given[text], text)))[:count]
    if not corpus.classes:
        values: dict[SampleText, Any] = {text: example.label for text, example in short.items()}
        ordered = sorted(short, key=lambda text: (float(values[text] or 0), text))
        steps = min(count, len(ordered))
        return tuple(ordered[k * (len(ordered) - 1) // max(steps - 1, 1)] for k in range(steps))
    by_class = [[text for text, example in short.items() if example.label == k] for k in range(len(corpus.classes))]
    in_turn = chain.from_iterable(zip_longest(*by_class))
    return tuple(text for text in in_turn if text is not None)[:count]


def sample_text(example: AnyExample) -> SampleText:
    """Return the text or pair of texts of an example, with "?" for lone surrogates, which pages cannot show."""
    first, *second = (part.text.encode("utf-8", "replace").decode() for part in example.texts)
    return (first, second[0]) if second else first


def _length(text: SampleText) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))
