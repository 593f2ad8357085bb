"""What the generated corpora share: word lists, splits, random choices."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rationalizer.data.corpus import Corpus
from rationalizer.text.budget import Budget
from rationalizer.text.example import AnyExample
from rationalizer.text.word_splitting import SplitRule

T = TypeVar("T")


def read_word_lists(name: str) -> Any:
    """Read the words and sentence templates of a generated corpus."""
    path = Path(__file__).with_name("generated") / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def sample_corpus(
    name: str,
    classes: tuple[str, ...],
    sample: Callable[[np.random.Generator], Iterator[AnyExample]],
    sizes: tuple[int, int, int],
    *,
    budget: Budget,
    seed: int,
    rule: SplitRule,
) -> Corpus:
    """Draw examples for train, dev and test (`sizes`), in this order."""
    if min(sizes) < 0:
        raise ValueError(f"the splits cannot have a negative size, got {', '.join(map(str, sizes))}")
    train, dev, _ = sizes
    examples = list(islice(sample(np.random.default_rng(seed)), sum(sizes)))
    return Corpus(
        name=name,
        task="classification",
        classes=classes,
        train=examples[:train],
        dev=examples[train : train + dev],
        test=examples[train + dev :],
        budget=budget,
        rule=rule,
    )


def pick(generator: np.random.Generator, choices: Sequence[T]) -> T:
    return choices[int(generator.integers(len(choices)))]


def capitalise(sentence: str) -> str:
    """Return the sentence with its first letter in upper case, the others unchanged."""
    return sentence[0].upper() + sentence[1:]
