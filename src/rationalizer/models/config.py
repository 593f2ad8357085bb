"""The settings of a run: defaults, presets, and overrides by name."""

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
    """The settings of a run: `options` are the method's, `encoder_options` the encoder's, the others common to all.

    `rationalizer settings` shows the comment of each field.
    """

    method: str = "spectra"
    pairs: bool = False  # whether it is a method for two texts
    options: Mapping[str, Any] = field(default_factory=dict)
    encoder_options: Mapping[str, Any] = field(default_factory=dict)
    # Largest share, or number, of words in a rationale, or "18% on average, 8% to 35%"; for pairs: of the words of the
    # shorter text, or of word pairs.
    budget: Budget = field(default_factory=lambda: Budget.share(0.2))
    constraints: Constraints = ()  # further constraints on rationales: "spans=2", "never=stopwords", ...
    faithful: bool = True  # for pairs: read the premise only through the alignment

    encoder: str = "bilstm"  # "bilstm", or a transformer: its name on the Hugging Face Hub, or a folder
    word_splitting: SplitRule | None = None  # how texts are split into words; none: "words", or as tokenized
    punctuation: Punctuation = "free"  # "count": punctuation uses up the budget
    sentences: SentenceRule = "punctuation"  # where sentences end, for constraints; "lines": at the end of each line
    dropout: Fraction = 0.3  # dropout probability
    pooling: Pooling = "max"  # how the states of the words become one vector
    objective: str = "full-text"  # what the training minimises
    full_text_weight: Weight = 3.0  # weight of the predictor's loss on whole texts
    full_text_epochs: Number = 0  # first epochs, in which the predictor learns from whole texts and nothing is selected
    annotation_weight: Weight = 0.0  # weight of the loss of the scores against annotations
    # What the generator learns from: labels, or (as in MCD) the KL between predictions from rationale and whole text.
    guide: Literal["label", "full-text"] = "label"

    # PyTorch's initialization, or Glorot's with biases of 0, which stochastic methods need.
    initial_weights: Literal["pytorch", "xavier"] = "pytorch"
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0  # seed of the weights, the order of texts and all random numbers
    epochs: Count = 12  # largest number of epochs
    min_epochs: Number = 5  # epochs before early stopping
    patience: CountOrNone = 5  # epochs without improvement on dev before stopping; none: keep the last weights
    batch_size: Count = 32  # texts, or pairs of texts, in a batch
    # Largest number of words in a batch, padding included, instead of batch_size; for long or very different texts.
    batch_tokens: Annotated[int | None, Range(1, 10**9, none=True)] = None
    accumulate: Count = 1  # batches per step of the optimizer
    optimizer: Literal["adam", "adamw"] = "adam"  # "adamw" decouples weight decay from the gradients
    learning_rate: Rate = 2e-3  # learning rate; transformers have generator_rate and predictor_rate
    warmup: Fraction = 0.0  # share of the steps in which learning rates grow from 0
    decay: bool = False  # whether learning rates then fall linearly to 0
    slow_predictor: bool = False  # as in DR: multiply the predictor's rate by the selected share, at least 5%
    weight_decay: Weight = 1e-6  # weight decay
    clip: Positive = 5.0  # largest norm of the gradient
    averaging: Fraction = 0.98  # decay of the moving average of the weights; 0: no average
    keep_by: Literal["loss", "score"] = "loss"  # dev measure for early stopping and for the best epoch
    workers: Annotated[int, Range(0, 1024)] = 0  # processes that prepare batches
    keep_examples: Number = 6  # short dev texts saved with the model, to try on its page; 0: save no texts
    checkpoint_seconds: Weight = 60.0  # seconds between checkpoints; each epoch ends with one as well

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


IDENTITY = ("method", "pairs", "options", "encoder_options")  # fields that are not settings


def flat_settings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a stored config in one dictionary, as `configure` takes them."""
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
    """Return a config: defaults, then the presets of encoder and dataset, then `overrides`.

    Args:
        method: by default spectra, or at-most-one for pairs.
        overrides: settings by name: fields of `Config`, and the method's and the encoder's own settings. Strings are
            parsed as the setting's type. Unknown names and values of a wrong type raise ValueError.
        dataset: the name of a dataset with a preset.
        pairs: whether the data are pairs of texts. By default the method decides; "gumbel" exists for both, and is
            then taken for single texts.
        stored: whether the settings are those of a trained model, whose folder holds its encoder.
    """
    is_single = pairs is False or (method in EXTRACTORS and method not in ALIGNERS)
    if pairs is None:
        pairs = method in ALIGNERS and method not in EXTRACTORS
    method = method or ("at-most-one" if pairs else "spectra")
    known = methods_for(pairs)
    if method not in known:
        raise ValueError(_unknown_method_message(method, pairs))
    encoder = _parse("encoder", (overrides or {}).get("encoder", Config.encoder), str)
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
            options[key] = _parse(key, value, own[key][0])
        elif key in encoder:
            encoder_options[key] = _parse(key, value, encoder[key][0])
        elif key in common:
            values[key] = _parse(key, value, common[key])
        else:
            raise ValueError(_unknown_setting_message(key, method, known, [*common, *own, *encoder]))
    if "full_text_epochs" not in (overrides or {}):  # the default leaves at least one epoch for selections
        default = min(values.get("full_text_epochs", 0), values.get("epochs", Config.epochs) - 1)
        values["full_text_epochs"] = max(0, default) if _selects(method, pairs) else 0
    config = Config(method=method, pairs=pairs, options=options, encoder_options=encoder_options, **values)
    _check_ranges(config)
    _check_combinations(config)
    if is_single and not config.faithful:
        raise ValueError("faithful=false is a setting for pairs of texts, but these are single texts; leave it out")
    return config


def _selects(method: str, pairs: bool) -> bool:
    """Return whether the predictor reads a part of a text, and could read all of it."""
    return not pairs and EXTRACTORS[method].uses_generator


def _common_types() -> dict[str, Any]:
    hints = get_type_hints(Config)
    return {name: hints[name] for name in hints if name not in IDENTITY}


def _unknown_method_message(method: str, pairs: bool) -> str:
    here, there = methods_for(pairs), methods_for(not pairs)
    if method not in there:
        return f"there is no method {method!r}; {did_you_mean(method, here)}"
    kind = ("single texts", "pairs of texts") if pairs else ("pairs of texts", "single texts")
    return f"{method!r} is a method for {kind[0]}; for {kind[1]} use one of {', '.join(here)}"


def _unknown_setting_message(key: str, method: str, known: Mapping[str, type[Method]], settings: Sequence[str]) -> str:
    others = sorted(name for name, other in known.items() if key in other.options())
    if others:
        return f"{key!r} is a setting of {', '.join(others)}, not of {method}"
    encoders = [name for name, encoder in ENCODERS.items() if key in encoder.options()]
    if encoders:
        return f"{key!r} is a setting of the encoder {' or '.join(encoders)}, not of the one that is used"
    return f"there is no setting {key!r}; {did_you_mean(key, sorted(settings))}"


def _parse(key: str, value: Any, kind: Any) -> Any:
    """Return the value as type `kind`; strings are parsed, and integers are valid floats."""
    value = value.item() if isinstance(value, np.generic) else value
    if kind is Budget:
        return Budget.parse(value)
    if kind == Constraints:
        return parse_constraints(value)
    choices = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if type(value) in choices and not isinstance(value, str):
        return value
    for choice in sorted(choices, key=lambda choice: choice is not int):  # "5" is 5 rather than 5.0
        read = _parse_as(value, choice)
        if read is not _NOT:
            return read
    raise ValueError(f"{key} must be {' or '.join(map(_name, choices))}, got {value!r}")


_NOT = object()  # not of this type; None is a value
_NONE = ("none", "null", "")


def _parse_as(value: Any, kind: Any) -> Any:
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


def _check_combinations(config: Config) -> None:
    """Raise ValueError for settings that contradict each other."""
    OBJECTIVES[config.objective]  # UnknownNameError, a ValueError
    selects = _selects(config.method, config.pairs)
    if config.full_text_epochs and not selects:
        raise ValueError(f"full_text_epochs is for methods that select words of single texts, not for {config.method}")
    if config.full_text_epochs >= config.epochs:
        raise ValueError(
            f"full_text_epochs={config.full_text_epochs} leaves none of {config.epochs} epochs for selections; raise "
            "epochs"
        )
    if config.guide == "full-text" and not (selects and EXTRACTORS[config.method].passes_gradient):
        raise ValueError(f"guide=full-text needs a differentiable selection, but that of {config.method} is not")
    methods = methods_for(config.pairs)
    if config.annotation_weight and not methods[config.method].has_annotation_loss:
        supporting = ", ".join(name for name, method in methods.items() if method.has_annotation_loss)
        raise ValueError(f"annotation_weight needs word scores, but {config.method} has none; use one of {supporting}")
    if config.slow_predictor and (not selects or config.encoder_options.get("shared")):
        raise ValueError("slow_predictor is for single texts, with separate encoders for generator and predictor")
    encoder = encoder_class(config.encoder)
    if config.initial_weights == "xavier" and not encoder.supports_xavier:
        raise ValueError("initial_weights=xavier would overwrite the encoder's pretrained weights; leave it out")
    if config.pooling == "last" and not encoder.supports_last_pooling:
        raise ValueError("pooling=last is for the two directions of a BiLSTM; use mean or max")
    with_constraints(config, config.constraints)
    with_budget(config, config.budget)


def with_budget(config: Config, budget: Budget) -> Config:
    """Return the config with this budget; ValueError if its method does not support an average."""
    if budget.kind == "average":
        methods = methods_for(config.pairs)
        if not methods[config.method].supports_average:
            supporting = [name for name, method in methods_for(False).items() if method.supports_average]
            raise ValueError(
                f"{config.method} does not support a budget on average; use {' or '.join(supporting)}, which are for "
                "single texts, or a fixed share"
            )
        if config.constraints:
            raise ValueError(
                f"a budget on average cannot be combined with constraints ({config.constraints[0]}); use a fixed share"
            )
    return replace(config, budget=budget)


def with_constraints(config: Config, constraints: Constraints, *, in_use: bool = False) -> Config:
    """Return the config with these constraints; ValueError if its method does not support them.

    Constraints on marked words of given texts are for inference only (`in_use`), not for training.
    """
    for constraint in constraints:
        if constraint.pairs != config.pairs:
            ours, theirs = ("pairs of texts", "single texts") if config.pairs else ("single texts", "pairs of texts")
            raise ValueError(f"constraint {constraint} is for {theirs}, but these are {ours}; leave it out")
        if constraint.per_text and not in_use:
            raise ValueError(
                f"{constraint!r} marks words of given texts and cannot be used in training; pass it to explain or "
                "predict, or use words or a pattern"
            )
    methods = methods_for(config.pairs)
    excluded = next((each for each in constraints if each.name in methods[config.method].excluded_constraints), None)
    if excluded is not None:
        raise ValueError(
            f"{config.method} already determines {excluded}; leave the constraint out, or use another method"
        )
    own = any(isinstance(each, (FactorConstraint, PairFactorConstraint)) for each in constraints)
    if own and not methods[config.method].supports_factors:
        known = [name for name, method in methods.items() if method.supports_factors]
        raise ValueError(f"{config.method} does not support your own factors; use one of {', '.join(known)}")
    if constraints and not methods[config.method].supports_constraints(config.options):
        supporting = [name for name, method in methods.items() if method.supports_constraints(_defaults(method))]
        use = f"use one of {', '.join(supporting)}" if supporting else "leave them out"
        raise ValueError(f"{config.method} does not follow constraints ({constraints[0]}); {use}")
    if constraints and config.budget.kind == "average":
        raise ValueError(
            f"constraints ({constraints[0]}) cannot be combined with a budget on average; use a fixed share"
        )
    return replace(config, constraints=constraints)


def _defaults(method: type[Method]) -> dict[str, Any]:
    return {name: default for name, (_, default) in method.options().items()}


def _check_ranges(config: Config) -> None:
    given = {item.name: getattr(config, item.name) for item in fields(config)}
    check_ranges(ranges_of(Config), given)
    methods_for(config.pairs)[config.method].check(config.options)
    encoder_class(config.encoder).check(config.encoder_options)
