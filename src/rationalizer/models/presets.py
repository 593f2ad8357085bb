"""Settings that replace the defaults: for pairs of texts, for transformers, and for datasets that have a preset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rationalizer.data.dataset_registry import find_dataset
from rationalizer.discovery import PluginRegistry

Settings = Mapping[str, Any]

# For pairs of texts with every method: ESIM pools by maximum and mean.
PAIRS: Settings = {
    "pooling": "max-mean",
    "budget": 0.5,
    "word_scores": False,
    "dropout": 0.1,
    "averaging": 0.0,
    "keep_by": "score",
    "epochs": 25,
}

# For datasets whose annotations are all there is to learn; people align punctuation, too.
ANNOTATIONS_ONLY: Settings = {
    "annotation_weight": 1.0,
    "punctuation": "count",
    "batch_size": 8,
    "learning_rate": 5e-3,
}

# Transformers need small steps, with a warm-up and a decay of the learning rate.
TRANSFORMERS: Settings = {
    "optimizer": "adamw",
    "learning_rate": 1e-3,
    "weight_decay": 0.01,
    "warmup": 0.1,
    "decay": True,
    "clip": 1.0,
    "checkpoint_seconds": 600.0,  # a checkpoint takes gigabytes
    "epochs": 6,
    "full_text_weight": 1.0,
    "full_text_epochs": 1,  # a predictor that knows words already tells the generator what is worth selecting
    "dropout": 0.1,
    "averaging": 0.0,
    "keep_by": "score",
    "pooling": "mean",
}

TRANSFORMER_PAIRS: Settings = {"pooling": "max-mean", "budget": 0.5}


@dataclass(frozen=True)
class Preset:
    """A dataset's settings for the encoder "bilstm"."""

    common: Settings
    methods: Mapping[str, Settings] = field(default_factory=dict)  # take precedence over `common`
    pairs: bool = False  # whether it is for pairs of texts


PRESETS: PluginRegistry[Preset] = PluginRegistry("preset")


def register_preset(dataset: str, preset: Preset) -> None:
    """Use a preset for a dataset."""
    PRESETS.register(dataset)(preset)


def presets_for(dataset: str | None, method: str, *, pairs: bool = False, encoder: str = "bilstm") -> dict[str, Any]:
    """Return the settings that differ from the defaults of `Config`.

    Args:
        dataset: name of a dataset, with or without its aspect ("hotels-location"); None for other data.
        method: an extractor, or for pairs an aligner.
        pairs: whether the examples are pairs of texts.
        encoder: kind of encoder, "bilstm" or "transformer".
    """
    known = find_dataset(dataset)
    annotations = ANNOTATIONS_ONLY if known is not None and len(known.classes) == 1 else {}
    if encoder == "transformer":
        return {**annotations, **TRANSFORMERS, **(TRANSFORMER_PAIRS if pairs else {})}
    settings = {**PAIRS, **annotations} if pairs else {}
    preset = None if known is None else PRESETS.get(known.name)
    if preset is None or preset.pairs != pairs:
        return settings
    return {**settings, **preset.common, **preset.methods.get(method, {})}
