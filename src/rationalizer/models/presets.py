"""Settings that replace the defaults: those of the encoder, and those of datasets that have a preset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rationalizer.data.dataset_registry import find_dataset
from rationalizer.discovery import PluginRegistry
from rationalizer.nn import ENCODERS

Settings = Mapping[str, Any]

# For datasets with annotations but without labels. Punctuation counts, because people align it as well.
ANNOTATIONS_ONLY: Settings = {
    "annotation_weight": 1.0,
    "punctuation": "count",
    "batch_size": 8,
    "learning_rate": 5e-3,
}


@dataclass(frozen=True)
class Preset:
    """A dataset's settings, for encoders with `uses_dataset_presets`."""

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
        encoder: name of an encoder, one of `ENCODERS`.
    """
    known = find_dataset(dataset)
    annotations = ANNOTATIONS_ONLY if known is not None and len(known.classes) == 1 else {}
    kind = ENCODERS[encoder]
    settings = {**annotations, **kind.preset, **(kind.pair_preset if pairs else {})}
    preset = PRESETS.get(known.name) if known is not None and kind.uses_dataset_presets else None
    if preset is None or preset.pairs != pairs:
        return settings
    return {**settings, **preset.common, **preset.methods.get(method, {})}
