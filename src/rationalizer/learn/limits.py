"""Settings that no training can be made with, found before it begins."""

from __future__ import annotations

import math
import os

import torch

from rationalizer.learn.config import Config, flat
from rationalizer.learn.trained import Description
from rationalizer.nn import VectorReader, reader_of

COPIES = 4  # of every weight in training: itself, its gradient, Adam's two moments


def require_finite(config: Config) -> None:
    for name, value in flat(config.to_json()).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number, got {value}")


def require_memory(description: Description) -> None:
    """An error where the reader's networks alone, without a single word, are more than this machine holds."""
    kind, reading = reader_of(description.config.encoder), description.config.reading
    if not issubclass(kind, VectorReader):
        return  # an encoder that was trained elsewhere, of a size that people use
    weights, memory = _weights(kind, description), _memory()
    if weights is None or (memory is not None and COPIES * 4 * weights > memory):
        largest = max(("hidden", "vector_size"), key=lambda name: int(reading[name]))
        there = "any memory" if memory is None else f"the {memory / 1e9:.0f} GB of this machine's memory"
        raise ValueError(f"{largest} = {reading[largest]} makes a model larger than {there}; use a smaller {largest}")


def _weights(kind: type[VectorReader], description: Description) -> int | None:
    """How many numbers the reader's networks learn; None: more than can be counted."""
    asked, reading = description.network(), description.config.reading
    try:
        with torch.device("meta"):  # shapes without memory
            network = kind.Network(reading["vector_size"], reading["hidden"])
    except (RuntimeError, OverflowError, TypeError):
        return None
    return (asked["generates"] + asked["predicts"]) * sum(weight.numel() for weight in network.parameters())


def _memory() -> int | None:
    """Of this machine, or of its largest GPU; None where the system does not say."""
    try:
        host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    gpus = [torch.cuda.get_device_properties(i).total_memory for i in range(torch.cuda.device_count())]
    return max(host, *gpus) if gpus else host
