"""What a training run depends on: typed values, presets that hold what differs, overrides by key."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from rationalizer.constraints import Constraints, FactorConstraint, PairFactorConstraint, parse_constraints
from rationalizer.models.presets import presets_for
from rationalizer.nn import (
    ALIGNERS,
    ENCODERS,
    EXTRACTORS,
    OBJECTIVES,
    Method,
    Pooling,
    Punctuation,
    encoder_class,
    methods_for,
)
from rationalizer.ranges import (
    Count,
    CountOrNone,
    Fraction,
    Number,
    Positive,
    Range,
    Rate,
    Weight,
    check_ranges,
    ranges_of,
)
from rationalizer.suggestions import closest, did_you_mean
from rationalizer.text import Budget, SentenceRule, SplitRule


@dataclass(frozen=True)
class Config:
    """The settings of a run: `options` are the method's, `encoder_options` the encoder's, the others common to all."""

    method: str = "spectra"
    pairs: bool = False  # whether it is a method for two texts
    options: Mapping[str, Any] = field(default_factory=dict)
    encoder_options: Mapping[str, Any] = field(default_factory=dict)
    # A share of the text's words (of two: of the shorter's), or a count of words (of pairs).
    budget: Budget = field(default_factory=lambda: Budget.share(0.2))
    constraints: Constraints = ()  # on what is selected, beside the budget: "spans=2", "never=stopwords", ...
    faithful: bool = True  # pairs: whether the premise is read through the alignment only

    encoder: str = "bilstm"  # or a transformer: its name on the Hugging Face Hub, or a folder
    word_splitting: SplitRule | None = None  # how texts are cut into words; none: by "words", or as they come tokenized
    punctuation: Punctuation = "free"  # whether marks use up the budget ("count")
    sentences: SentenceRule = "punctuation"  # where they end, for constraints on them; "lines": every line is one
    dropout: Fraction = 0.3  # share of the numbers that are left out at random in training
    pooling: Pooling = "max"  # how what was read of the words becomes one vector
    objective: str = "full-text"  # what the training minimises
    full_text_weight: Weight = 3.0  # of the predictor's loss on whole texts, beside that on the selections
    full_text_epochs: Number = 0  # in which the predictor learns from whole texts only, before anything is selected
    annotation_weight: Weight = (
        0.0  # of the scores' loss against what people marked (of pairs: aligned), where they did
    )
    # What the generator learns from: the labels, or (as in MCD) how far the selection's prediction is from the text's.
    guide: Literal["label", "full-text"] = "label"

    # How they are drawn: PyTorch's way, or as Glorot and Bengio do with biases of 0, which stochastic methods live on.
    initial_weights: Literal["pytorch", "xavier"] = "pytorch"
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0  # of the weights, the order of texts, and all that is drawn
    epochs: Count = 12  # at most
    min_epochs: Number = 5  # before early stopping may stop
    patience: CountOrNone = 5  # epochs that are no better on dev; none: train on and keep the last weights
    batch_size: Count = 32  # texts, or pairs of texts
    # Words in a batch at most, padding counted, instead of so many texts: for long ones, or very different ones.
    batch_tokens: Annotated[int | None, Range(1, 10**9, none=True)] = None
    accumulate: Count = 1  # batches for each step of the optimizer
    optimizer: Literal["adam", "adamw"] = "adam"  # adamw keeps the decay of the weights out of the gradients
    learning_rate: Rate = 2e-3  # a transformer's own are set apart: generator_rate, predictor_rate
    warmup: Fraction = 0.0  # share of the steps in which learning rates grow from 0
    decay: bool = False  # whether they shrink to 0 then
    slow_predictor: bool = False  # as in DR: its rate is multiplied with the share that is selected, if above 5%
    weight_decay: Weight = 1e-6  # how strongly weights are drawn to 0
    clip: Positive = 5.0  # largest norm of the gradient
    averaging: Fraction = 0.98  # how much of the average over past steps' weights stays at each step; 0: no average
    keep_by: Literal["loss", "score"] = "loss"  # on dev, which decides when to stop and which epoch's weights are kept
    workers: Annotated[int, Range(0, 1024)] = 0  # processes that prepare batches
    # How many short texts of dev are kept with the model, as examples for its page; 0 where they must not leave.
    keep_examples: Number = 6
    checkpoint_seconds: Weight = 60.0  # between checkpoints within an epoch; one more follows every epoch

    def to_json(self) -> dict[str, Any]:
        stored = {item.name: getattr(self, item.name) for item in fields(self)}
        return stored | {
            "budget": str(self.budget),
            "constraints": [constraint.to_json() for constraint in self.constraints],
            "options": dict(self.options),
            "encoder_options": dict(self.encoder_options),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Config:
        return configure(stored["method"], flat_settings(stored), pairs=stored.get("pairs", False), stored=True)


IDENTITY = ("method", "pairs", "options", "encoder_options")  # what a config is of; the rest can be set


def flat_settings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What can be set of a stored config, side by side, as `configure` takes it."""
    own = {**stored["options"], **stored["encoder_options"]}
    return {key: value for key, value in stored.items() if key not in IDENTITY} | own


def configure(
    method: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    dataset: str | None = None,
    pairs: bool | None = None,
    stored: bool = False,
) -> Config:
    """Defaults, then the preset of dataset × method where there is one, then `overrides`.

    `pairs` says whether the data are pairs of texts; without it the method decides ("gumbel" is one of either
    kind, and then taken for single texts). Without a method: spectra, or at-most-one for pairs. Keys are the
    fields of `Config`, the method's own settings and the encoder's, side by side. Values may be strings (from a
    command line); they are read as the key's type. Unknown keys and values of the wrong type are errors. `stored`: of a
    model that was trained, whose encoder is in its own folder.
    """
    # Not only taken for such until the data are there.
    single = pairs is False or (method in EXTRACTORS and method not in ALIGNERS)
    if pairs is None:
        pairs = method in ALIGNERS and method not in EXTRACTORS
    method = method or ("at-most-one" if pairs else "spectra")
    known = methods_for(pairs)
    if method not in known:
        raise ValueError(_no_method(method, pairs))
    encoder = _read("encoder", (overrides or {}).get("encoder", Config.encoder), str)
    named = [name for name, kind in ENCODERS.items() if not kind.loads_pretrained]
    if (
        not stored
        and encoder not in ENCODERS
        and (meant := closest(encoder, named))
        and not Path(encoder).expanduser().is_dir()
    ):
        raise ValueError(f"there is no encoder {encoder!r}; did you mean {meant!r}?")
    given = {**presets_for(dataset, method, pairs=pairs, encoder=encoder_class(encoder).name), **(overrides or {})}
    common, own, encoder = _common_types(), known[method].options(), encoder_class(encoder).options()
    values: dict[str, Any] = {}
    options = {name: default for name, (_, default) in own.items()}
    encoder_options = {name: default for name, (_, default) in encoder.items()}
    for key, value in given.items():
        if key in own:
            options[key] = _read(key, value, own[key][0])
        elif key in encoder:
            encoder_options[key] = _read(key, value, encoder[key][0])
        elif key in common:
            values[key] = _read(key, value, common[key])
        else:
            raise ValueError(_unknown(key, method, known, [*common, *own, *encoder]))
    if "full_text_epochs" not in (overrides or {}):  # of the defaults, as many as leave one for selections
        usual = min(values.get("full_text_epochs", 0), values.get("epochs", Config.epochs) - 1)
        values["full_text_epochs"] = max(0, usual) if _selects(method, pairs) else 0
    config = Config(method=method, pairs=pairs, options=options, encoder_options=encoder_options, **values)
    _check(config)
    _check_together(config)
    if single and not config.faithful:
        raise ValueError("faithful=false is a setting for pairs of texts, and these are single texts; leave it out")
    return config


def _selects(method: str, pairs: bool) -> bool:
    """Whether a model reads part of a text, and can read the whole instead."""
    return not pairs and EXTRACTORS[method].uses_generator


def _common_types() -> dict[str, Any]:
    hints = get_type_hints(Config)
    return {name: hints[name] for name in hints if name not in IDENTITY}


def _no_method(method: str, pairs: bool) -> str:
    here, there = methods_for(pairs), methods_for(not pairs)
    if method not in there:
        return f"there is no method {method!r}; {did_you_mean(method, here)}"
    kind = ("single texts", "pairs of texts") if pairs else ("pairs of texts", "single texts")
    return f"{method!r} is a method for {kind[0]}; for {kind[1]} use one of {', '.join(here)}"


def _unknown(key: str, method: str, known: Mapping[str, type[Method]], settings: Sequence[str]) -> str:
    others = sorted(name for name, other in known.items() if key in other.options())
    if others:
        return f"{key!r} is a setting of {', '.join(others)}, not of {method}"
    encoders = [name for name, encoder in ENCODERS.items() if key in encoder.options()]
    if encoders:
        return f"{key!r} is a setting of the encoder {' or '.join(encoders)}, not of the one that is used"
    return f"there is no setting {key!r}; {did_you_mean(key, sorted(settings))}"


def _read(key: str, value: Any, kind: Any) -> Any:
    """The value as the type `kind`; strings are parsed, whole numbers pass for floats."""
    value = value.item() if isinstance(value, np.generic) else value
    if kind is Budget:
        return Budget.parse(value)
    if kind == Constraints:
        return parse_constraints(value)
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


def _check_together(config: Config) -> None:
    """Settings that mean nothing, or something else, beside others."""
    OBJECTIVES[config.objective]  # UnknownNameError, a ValueError
    selects = _selects(config.method, config.pairs)
    if config.full_text_epochs and not selects:
        raise ValueError(f"full_text_epochs is for methods that select words of single texts, not for {config.method}")
    if config.full_text_epochs >= config.epochs:
        raise ValueError(
            f"full_text_epochs={config.full_text_epochs} leaves none of {config.epochs} epochs to select in; "
            "give more epochs"
        )
    if config.guide == "full-text" and not (selects and EXTRACTORS[config.method].passes_gradient):
        raise ValueError(f"guide=full-text needs a selection with a gradient, which {config.method} has not")
    methods = methods_for(config.pairs)
    if config.annotation_weight and not methods[config.method].has_annotation_loss:
        able = ", ".join(name for name, method in methods.items() if method.has_annotation_loss)
        raise ValueError(
            f"annotation_weight needs scores to learn from people, and {config.method} has none; use {able}"
        )
    if config.slow_predictor and (not selects or config.encoder_options.get("shared")):
        raise ValueError(
            "slow_predictor is for single texts, with an encoder for the generator and one for the predictor"
        )
    encoder = encoder_class(config.encoder)
    if config.initial_weights == "xavier" and not encoder.supports_xavier:
        raise ValueError("initial_weights=xavier would overwrite the encoder's pretrained weights; leave it out")
    if config.pooling == "last" and not encoder.supports_last_pooling:
        raise ValueError("pooling=last is for the two directions of a BiLSTM; use mean or max")
    with_constraints(config, config.constraints)


def with_constraints(config: Config, constraints: Constraints, *, in_use: bool = False) -> Config:
    """The config with these constraints; ValueError where they are not for its method, or not for a training."""
    for constraint in constraints:
        if constraint.pairs != config.pairs:
            ours, theirs = ("pairs of texts", "single texts") if config.pairs else ("single texts", "pairs of texts")
            raise ValueError(f"the constraint {constraint} is for {theirs}, and these are {ours}; leave it out")
        if constraint.per_text and not in_use:
            raise ValueError(
                f"{constraint!r} marks the texts at hand, which a training cannot keep; give it to explain or predict, "
                "or use words or a pattern"
            )
    methods = methods_for(config.pairs)
    settled = next((each for each in constraints if each.name in methods[config.method].excluded_constraints), None)
    if settled is not None:
        raise ValueError(f"{config.method} says already what {settled} is about; leave it out, or use another method")
    own = any(isinstance(each, (FactorConstraint, PairFactorConstraint)) for each in constraints)
    if own and not methods[config.method].supports_factors:
        known = [name for name, method in methods.items() if method.supports_factors]
        raise ValueError(f"{config.method} knows no factors of your own; use one of {', '.join(known)}")
    if constraints and not methods[config.method].supports_constraints(config.options):
        able = [name for name, method in methods.items() if method.supports_constraints(_defaults(method))]
        use = f"use one of {', '.join(able)}" if able else "leave them out"
        raise ValueError(f"what {config.method} selects does not follow constraints ({constraints[0]}); {use}")
    return replace(config, constraints=constraints)


def _defaults(method: type[Method]) -> dict[str, Any]:
    return {name: default for name, (_, default) in method.options().items()}


def _check(config: Config) -> None:
    given = {item.name: getattr(config, item.name) for item in fields(config)}
    check_ranges(ranges_of(Config), given)
    methods_for(config.pairs)[config.method].check(config.options)
    encoder_class(config.encoder).check(config.encoder_options)
