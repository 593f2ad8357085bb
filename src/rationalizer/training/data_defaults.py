"""Settings that follow from the training texts, unless they are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rationalizer.data import Corpus
from rationalizer.data.disk_examples import lengths
from rationalizer.models.class_weights import ClassWeight, has_rare_class
from rationalizer.models.config import Config
from rationalizer.nn.extractors.structured_selection import LONG_TRANSITION, TRANSITION
from rationalizer.training.class_balance import count_classes

LEFT_TO_DATA: Mapping[str, Any] = {"transition": None, "class_weight": "auto"}  # with the values that say so
LONG = 100  # words: texts with more on average have fewer and longer spans by default


def settle(config: Config, corpus: Corpus, start: Config | None = None) -> Config:
    """Return the config with the settings that it leaves to the data; a model that goes on keeps its own."""
    if config.class_weight == "auto":
        config = replace(config, class_weight=_class_weight(corpus) if start is None else start.class_weight)
    if config.options.get("transition", TRANSITION) is None:
        transition = _transition(corpus) if start is None else start.options["transition"]
        config = replace(config, options={**config.options, "transition": transition})
    return config


def _class_weight(corpus: Corpus) -> ClassWeight:
    """Weights cost accuracy, and win only where a class is rare."""
    if corpus.task != "classification" or corpus.label_names or len(corpus.classes) < 2:
        return "balanced"
    return "balanced" if has_rare_class(count_classes(corpus.train, corpus.classes)) else None


def _transition(corpus: Corpus) -> float:
    return LONG_TRANSITION if lengths(corpus.train).mean() > LONG else TRANSITION


def with_settled(given: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given settings of a run with the stored values of those that they leave to the data."""
    left = {name for name, open_value in LEFT_TO_DATA.items() if name in given and given[name] == open_value}
    return {**given, **{name: stored.get(name) for name in left}}
