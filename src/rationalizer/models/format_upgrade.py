"""Read run folders of older formats as folders of the present format. Nothing is written.

Format 4 had other names for two files, for some settings, and for the encoder's weights. Settings that did not exist
yet take the value that reproduces what was done without them; those of class balance are new in format 6. To rename a
setting, add it to `RENAMED_SETTINGS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

FORMAT = 6
READABLE_FORMATS = (4, 5, FORMAT)
RENAMED_FILES = {"encoder.json": "reader.json", "history.json": "metrics.json"}
RENAMED_SETTINGS = {"rationale_weight": "annotation_weight", "reading": "encoder_options", "cut": "word_splitting"}
RENAMED_VALUES = {"sentences": {"marks": "punctuation"}}  # setting (current name) -> old value -> new value
RENAMED_WEIGHTS = {"reader.": "encoder."}  # old prefix -> new prefix
ADDED_SETTINGS: Mapping[str, Any] = {
    "annotation_weight": 0.0,
    "initial_weights": "pytorch",
    "batch_tokens": None,
    "objective": "full-text",
    "class_weight": None,
    "sampling": "once",
}
ADDED_OPTIONS: Mapping[str, Mapping[str, Any]] = {"spectra": {"mask_tolerance": 0.0}}  # method -> option -> value


def find_file(directory: Path, name: str) -> Path:
    """Return the path of one of the folder's files, under its old name if only that exists."""
    old = directory / RENAMED_FILES.get(name, name)
    return old if old.is_file() and not (directory / name).is_file() else directory / name


def upgrade_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with their present names and values."""
    renamed = {RENAMED_SETTINGS.get(key, key): value for key, value in settings.items()}
    for key, values in RENAMED_VALUES.items():
        if isinstance(renamed.get(key), str):
            renamed[key] = values.get(renamed[key], renamed[key])
    return renamed


def upgrade_description(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of `config.json` in the present format. Values of a wrong type are kept for the checks."""
    config = stored.get("config")
    if not isinstance(config, dict):
        return dict(stored)
    config = {**ADDED_SETTINGS, **upgrade_settings(config)}
    if isinstance(options := config.get("options"), dict):
        config["options"] = {**ADDED_OPTIONS.get(str(config.get("method")), {}), **options}
    return {**stored, "format": FORMAT, "config": config}


def upgrade_weights(tensors: Mapping[str, Tensor], state: Any) -> tuple[dict[str, Tensor], Any]:
    """Return weights under their present names, and the names in a compact file's state with them."""
    if isinstance(state, dict) and isinstance(state.get("coded"), list):
        state = {**state, "coded": [_upgrade_weight(name) for name in state["coded"]]}
    return {_upgrade_weight(name): tensor for name, tensor in tensors.items()}, state


def _upgrade_weight(name: Any) -> Any:
    for old, new in RENAMED_WEIGHTS.items():
        if isinstance(name, str) and name.startswith(old):
            return new + name.removeprefix(old)
    return name
