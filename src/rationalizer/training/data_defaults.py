"""Settings that follow from the training texts, unless they are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rationalizer.data import Corpus
from rationalizer.data.disk_examples import lengths
from rationalizer.models.config import Config
from rationalizer.nn.extractors.structured_selection import LONG_TRANSITION, TRANSITION

LONG = 100  # words: texts with more on average have fewer and longer spans by default


def settle(config: Config, corpus: Corpus, start: Config | None = None) -> Config:
    """Return the config with the settings that it leaves to the data; a model that goes on keeps its own."""
    if config.options.get("transition", TRANSITION) is not None:
        return config
    if start is not None:
        transition = start.options["transition"]
    else:
        transition = LONG_TRANSITION if lengths(corpus.train).mean() > LONG else TRANSITION
    return replace(config, options={**config.options, "transition": transition})


def with_settled(given: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given settings of a run with the stored values of those that they leave to the data."""
    left = {"transition"} & {name for name, value in given.items() if value is None}
    return {**given, **{name: stored.get(name) for name in left}}
