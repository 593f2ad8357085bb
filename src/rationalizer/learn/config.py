"""What a training run depends on: typed values, presets that hold what differs, overrides by key."""

from __future__ import annotations

import difflib
import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from rationalizer.learn.presets import preset
from rationalizer.nn import ALIGNERS, ENCODERS, EXTRACTORS, Method, check_budget, methods_for
from rationalizer.nn.predictor import Pooling


@dataclass(frozen=True)
class Config:
    """One run. `options` are the method's own settings; every other field is common to all methods."""

    method: str = "spectra"
    pairs: bool = False  # whether it is a method for two texts
    options: Mapping[str, Any] = field(default_factory=dict)
    budget: float | int = 0.2  # share of the text (of two: of the shorter), or a count of tokens (of pairs)
    faithful: bool = True  # pairs: whether the premise is read through the alignment only

    encoder: str = "bilstm"
    hidden: int = 64  # units in each direction
    embedding: int = 64  # size of word vectors trained from scratch
    embeddings: str | None = None  # pretrained word vectors, frozen: a file or a known name
    lower: bool = True  # words in lower case
    min_count: int = 1  # words seen less often are unknown
    dropout: float = 0.1
    pooling: Pooling = "max"
    full_text_weight: float = 1.0  # of the predictor's loss on whole texts, beside that on the selections

    seed: int = 0
    epochs: int = 25  # at most
    min_epochs: int = 5  # before early stopping may stop
    patience: int | None = 5  # epochs without a better dev score; none: train on and keep the last weights
    batch_size: int = 32
    learning_rate: float = 2e-3
    weight_decay: float = 1e-6
    clip: float = 5.0  # largest norm of the gradient
    workers: int = 0  # processes that prepare batches
    checkpoint_seconds: float = 60.0  # between checkpoints within an epoch; one more follows every epoch

    def to_json(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)} | {"options": dict(self.options)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Config:
        return configure(stored["method"], flat(stored), pairs=stored.get("pairs", False))


_IDENTITY = ("method", "pairs", "options")  # what a config is of; the rest can be set


def flat(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What can be set of a stored config, side by side, as `configure` takes it."""
    return {key: value for key, value in stored.items() if key not in _IDENTITY} | stored["options"]


def configure(
    method: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    dataset: str | None = None,
    pairs: bool | None = None,
) -> Config:
    """Defaults, then the preset of dataset × method where there is one, then `overrides`.

    `pairs` says whether the data are pairs of texts; without it the method decides ("gumbel" is one of either
    kind, and then taken for single texts). Without a method: spectra, or at-most-one for pairs. Keys are the
    fields of `Config` and the method's own settings, side by side. Values may be strings (from a command
    line); they are read as the key's type. Unknown keys and values of the wrong type are errors.
    """
    if pairs is None:
        pairs = method in ALIGNERS and method not in EXTRACTORS
    method = method or ("at-most-one" if pairs else "spectra")
    known = methods_for(pairs)
    if method not in known:
        raise ValueError(_no_method(method, pairs))
    common, own = _common_types(), {name: kind for name, (kind, _) in known[method].options().items()}
    values: dict[str, Any] = {}
    options = {name: default for name, (_, default) in known[method].options().items()}
    for key, value in {**preset(dataset, method, pairs=pairs), **(overrides or {})}.items():
        if key in own:
            options[key] = _read(key, value, own[key])
        elif key in common:
            values[key] = _read(key, value, common[key])
        else:
            raise ValueError(_unknown(key, method, known, common, own))
    config = Config(method=method, pairs=pairs, options=options, **values)
    _check(config)
    return config


def _common_types() -> dict[str, Any]:
    hints = get_type_hints(Config)
    return {name: hints[name] for name in hints if name not in _IDENTITY}


def _no_method(method: str, pairs: bool) -> str:
    here, there = methods_for(pairs), methods_for(not pairs)
    if method not in there:
        return f"there is no method {method!r}{_nearest(method, here)}"
    kind = ("single texts", "pairs of texts") if pairs else ("pairs of texts", "single texts")
    return f"{method!r} is a method for {kind[0]}; for {kind[1]} use one of {', '.join(here)}"


def _unknown(
    key: str, method: str, known: Mapping[str, type[Method]], common: Mapping[str, Any], own: Mapping[str, Any]
) -> str:
    others = sorted(name for name, other in known.items() if key in other.options())
    if others:
        return f"{key!r} is a setting of {', '.join(others)}, not of {method}"
    return f"there is no setting {key!r}{_nearest(key, {**common, **own})}"


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(known))}"


def _read(key: str, value: Any, kind: Any) -> Any:
    """The value as the type `kind`; strings are parsed, whole numbers pass for floats."""
    value = value.item() if isinstance(value, np.generic) else value
    choices = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if type(value) in choices and not isinstance(value, str):
        return value
    for choice in sorted(choices, key=lambda choice: choice is not int):  # "5" is a count before it is 5.0
        read = _read_one(value, choice)
        if read is not _NOT:
            return read
    raise ValueError(f"{key} must be {' or '.join(map(_name, choices))}, got {value!r}")


_NOT = object()  # "not of this kind", since None is a value
_NONE = ("none", "null", "")


def _read_one(value: Any, kind: Any) -> Any:
    text = value.strip() if isinstance(value, str) else None
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else _NOT
    if kind is type(None):
        return None if text is not None and text.lower() in _NONE else _NOT
    if kind is str:
        return text if text is not None and text.lower() not in _NONE else _NOT
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), _NOT) if text is not None else _NOT
    if kind not in (int, float) or isinstance(value, bool):
        return _NOT
    try:
        number = kind(value)
        return number if text is not None or number == value else _NOT
    except (TypeError, ValueError, OverflowError):
        return _NOT


def _name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(repr(choice) for choice in get_args(kind))
    names = {
        type(None): "none",
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "a text",
    }
    return names.get(kind, str(kind))


def _check(config: Config) -> None:
    check_budget(config.budget)
    if config.encoder not in ENCODERS:
        raise ValueError(f"there is no encoder {config.encoder!r}{_nearest(config.encoder, ENCODERS)}")
    for name in ("hidden", "embedding", "min_count", "epochs", "batch_size"):
        if getattr(config, name) < 1:
            raise ValueError(f"{name} must be at least 1, got {getattr(config, name)}")
    amounts = ("learning_rate", "weight_decay", "full_text_weight", "checkpoint_seconds")
    for name in ("seed", "min_epochs", "workers", *amounts):
        if not getattr(config, name) >= 0:
            raise ValueError(f"{name} must be at least 0, got {getattr(config, name)}")
    if config.patience is not None and config.patience < 1:
        raise ValueError(f"patience must be at least 1 or none, got {config.patience}")
    if not 0 <= config.dropout < 1:
        raise ValueError(f"dropout must lie in [0, 1), got {config.dropout}")
    for name, value in (("clip", config.clip), ("temperature", config.options.get("temperature", 1.0))):
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")
