"""The corpus to train on, from the arguments of `Rationalizer.fit`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rationalizer.data import Corpus, Labels, make_corpus, make_examples
from rationalizer.data.corpus import Task
from rationalizer.data.data_frames import names_of
from rationalizer.models.config import Config
from rationalizer.models.description import LabelType
from rationalizer.models.trained_model import TrainedModel

Dev = tuple[Iterable[Any], Iterable[Any]] | tuple[Iterable[Any], Iterable[Any], Iterable[Any] | None]


def check_corpus_arguments(corpus: Corpus, config: Config, **arguments: Any) -> None:
    """Raise `ValueError` if arguments repeat what the corpus has, or if its words were split by another rule."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"the corpus has its own {name}; omit {name}, or pass texts and labels instead")
    if config.word_splitting not in (None, corpus.rule):
        raise ValueError(
            f"the corpus was split into words by the rule {corpus.rule!r}, not {config.word_splitting!r}; "
            f"load it with rule={config.word_splitting!r}"
        )


def corpus_of(
    config: Config,
    texts: Iterable[Any],
    labels: Iterable[Any],
    annotations: Iterable[Any] | None,
    dev: Dev | None,
    task: Task | None,
    names: Sequence[Any] | None,
    start: TrainedModel | None,
    sample_weight: Iterable[float] | None,
) -> Corpus:
    scheme = None if start is None else start.description.labels
    corpus = make_corpus(
        texts,
        labels,
        annotations,
        None if scheme is not None or names is None else [str(name) for name in names],
        task=task,
        scheme=scheme,
        dev=None if dev is None else (),
        pairs=config.pairs,
        seed=config.seed,
        budget=config.budget,
        rule=config.word_splitting if start is None else start.encoder.rule,
        weights=sample_weight,
    )
    corpus = replace(corpus, columns=names_of(texts, labels, pairs=config.pairs))
    if dev is None:
        return corpus
    if len(dev) not in (2, 3):
        raise ValueError(f"dev has {len(dev)} items; pass (texts, labels) or (texts, labels, annotations)")
    dev_texts, dev_labels, dev_annotations = (*dev, None)[:3]
    scheme = Labels(corpus.task, corpus.classes, corpus.targets)
    options: dict[str, Any] = {"pairs": config.pairs, "rule": corpus.rule, "scheme": scheme}
    held_out = make_examples(dev_texts, dev_labels, dev_annotations, **options)
    return replace(corpus, dev=held_out)


_LABEL_TYPES: dict[type, LabelType] = {bool: "bool", int: "int", float: "float"}


def label_type(labels: Sequence[Any]) -> LabelType:
    """The Python type of the labels, float for integers and floats; "str" for other mixtures."""
    kinds = {type(label.item() if isinstance(label, np.generic) else label) for label in labels}
    if kinds == {int, float}:
        return "float"
    return _LABEL_TYPES.get(kinds.pop(), "str") if len(kinds) == 1 else "str"
