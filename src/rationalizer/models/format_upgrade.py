"""Read run folders of older formats as folders of the present format. Nothing is written.

Format 4 had other names for two files, for some settings, and for the encoder's weights. Format 5 had settings in place
of some objectives, and none for class balance. Format 6 had no `premise_context`. Settings that did not exist yet take
the value that reproduces what was done without them. To rename a setting, add it to `RENAMED_SETTINGS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from rationalizer.models.folder_format import FORMAT
from rationalizer.nn import OBJECTIVES, encoder_class

READABLE_FORMATS = (4, 5, 6, FORMAT)
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
    "premise_context": "whole",
    "rationales": "shared",
}
OLD_OBJECTIVE = ("guide", "slow_predictor")  # formats 4 and 5; an objective each since
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
    return _upgrade_objective(renamed)


def _upgrade_objective(settings: dict[str, Any]) -> dict[str, Any]:
    """Return flat settings with the objective that does what `guide` and `slow_predictor` did."""
    if not settings.keys() & set(OLD_OBJECTIVE):
        return settings
    guide, slow = (settings.pop(key, None) for key in OLD_OBJECTIVE)
    if settings.get("objective", "full-text") == "full-text":
        is_plain = not settings.get("full_text_weight") and not settings.get("full_text_epochs")
        objective = "mcd" if guide == "full-text" else "dr" if slow else "joint" if is_plain else "full-text"
    else:  # joint, without effect of the other settings, or an objective from elsewhere
        objective = "dr" if slow else settings["objective"]
        settings |= dict.fromkeys({"full_text_weight", "full_text_epochs"} & settings.keys(), 0)
    own = OBJECTIVES[objective].options() if objective in OBJECTIVES else {}
    added = {name: default for name, (_, default) in own.items() if name not in settings}
    foreign = {"full_text_weight", "full_text_epochs"} - own.keys()
    return {key: value for key, value in settings.items() if key not in foreign} | added | {"objective": objective}


def upgrade_description(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of `config.json` in the present format. Values of a wrong type are kept for the checks."""
    config = stored.get("config")
    if not isinstance(config, dict):
        return dict(stored)
    config = {**ADDED_SETTINGS, **upgrade_settings(config)}
    if "objective_options" not in config and stored.get("format") != FORMAT:
        objective = str(config["objective"])
        names = OBJECTIVES[objective].options() if objective in OBJECTIVES else {}
        config["objective_options"] = {name: config.pop(name) for name in names if name in config}
        if isinstance(encoder_options := config.get("encoder_options"), dict):
            config["encoder_options"] = {**_added_encoder_options(config), **encoder_options}
    if isinstance(encoder_options := config.get("encoder_options"), dict):
        config["encoder_options"] = {**_unfrozen(config), **encoder_options}
    if isinstance(options := config.get("options"), dict):
        config["options"] = {**ADDED_OPTIONS.get(str(config.get("method")), {}), **options}
    return {**stored, "format": FORMAT, "config": config}


def upgrade_record(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flat settings of a stored evaluation with their present names and values."""
    return {**ADDED_SETTINGS, **_added_encoder_options(settings), **upgrade_settings(settings)}


def _added_encoder_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return encoder settings that the older formats did not have: `shared`, except for transformers."""
    added = {"shared": False} if "shared" in encoder_class(str(config.get("encoder"))).options() else {}
    return added | _unfrozen(config)


def _unfrozen(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the setting `frozen` of transformers trained before there was one."""
    return {"frozen": False} if "frozen" in encoder_class(str(config.get("encoder"))).options() else {}


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
