"""The settings of a run: defaults, presets, and overrides by name."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from rationalizer.constraints import Constraints, FactorConstraint, PairFactorConstraint, parse_constraints
from rationalizer.models.class_weights import ClassWeight, parse_class_weight
from rationalizer.models.presets import presets_for
from rationalizer.nn import (
    ALIGNERS,
    ENCODERS,
    EXTRACTORS,
    OBJECTIVES,
    Method,
    Pooling,
    PremiseContext,
    Punctuation,
    encoder_class,
    methods_for,
)
from rationalizer.plurals import count_of
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
    """The settings of a run: `options` are the method's, `encoder_options` the encoder's, `objective_options` the
    objective's, the others common to all.

    `rationalizer settings` shows the comment of each field.
    """

    method: str = "spectra"
    pairs: bool = False  # whether it is a method for two texts
    options: Mapping[str, Any] = field(default_factory=dict)
    encoder_options: Mapping[str, Any] = field(default_factory=dict)
    objective_options: Mapping[str, Any] = field(default_factory=dict)
    # Largest share, or number, of words in a rationale, "18% on average, 8% to 35%", or "enough, at most 40%, 90%
    # certain"; for pairs: of the words of the shorter text, or of word pairs.
    budget: Budget = field(default_factory=lambda: Budget.share(0.2))
    constraints: Constraints = ()  # further constraints on rationales: "spans=2", "never=stopwords", ...
    faithful: bool = True  # for pairs: read the premise only through the alignment
    # For faithful pairs: "aligned": unaligned premise words are invisible to the prediction; "whole": states of aligned
    # words may depend on them, as published.
    premise_context: PremiseContext = "aligned"

    encoder: str = "bilstm"  # "bilstm", or a transformer: its name on the Hugging Face Hub, or a folder
    word_splitting: SplitRule | None = None  # how texts are split into words; none: "words", or as tokenized
    punctuation: Punctuation = "free"  # "count": punctuation uses up the budget
    sentences: SentenceRule = "punctuation"  # where sentences end, for constraints; "lines": at the end of each line
    dropout: Fraction = 0.3  # dropout probability
    pooling: Pooling = "max"  # how the states of the words become one vector
    objective: str = "full-text"  # what the training minimises: joint, full-text, fr, dr, mcd, dar, mgr or mrd
    # One rationale for all labels ("shared"), one for each label, target or class ("per-label"), or such without common
    # words ("disjoint"); "auto": one for each of up to 20 labels or targets of a text, but one for all classes.
    rationales: Literal["auto", "shared", "per-label", "disjoint"] = "auto"
    annotation_weight: Weight = 0.0  # weight of the loss of the scores against annotations
    # Weights of the classes in the loss, on train and dev; "balanced": all classes weigh the same; none: all texts do;
    # "auto": balanced if a class is rare, with less than half of an even share of the texts.
    class_weight: ClassWeight = "auto"
    # Texts of an epoch: "once": each once; "balanced": as many, but every class equally often (not for regression).
    sampling: Literal["once", "balanced"] = "once"

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
            "class_weight": dict(self.class_weight) if isinstance(self.class_weight, Mapping) else self.class_weight,
            "options": dict(self.options),
            "encoder_options": dict(self.encoder_options),
            "objective_options": dict(self.objective_options),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Config:
        return configure(stored["method"], flat_settings(stored), pairs=stored.get("pairs", False), stored=True)


SEPARATE = ("per-label", "disjoint")  # rationales of which a text has several
MOST_SEPARATE = 20  # labels with a rationale each by default; the time of a training step grows with their number
OPTIONS = ("options", "encoder_options", "objective_options")
IDENTITY = ("method", "pairs", *OPTIONS)  # fields that are not settings
# Settings of earlier versions, and what to write in their place.
REPLACED = {
    "guide": "write objective=mcd in place of guide=full-text, and nothing in place of guide=label",
    "slow_predictor": "write objective=dr",
}


def flat_settings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a stored config in one dictionary, as `configure` takes them."""
    settings = {key: value for key, value in stored.items() if key not in IDENTITY}
    for options in OPTIONS:
        settings |= stored[options]
    return settings


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
        overrides: settings by name: fields of `Config`, and the own settings of method, encoder and objective. Strings
            are parsed as the setting's type. Unknown names and values of a wrong type raise ValueError.
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
    overrides = dict(overrides or {})
    preset = presets_for(dataset, method, pairs=pairs, encoder=encoder_class(encoder).name)
    if not stored:
        preset |= encoder_class(encoder).preset_for(overrides)
    preset_objective = preset.get("objective", Config.objective)
    objective = OBJECTIVES[_parse("objective", overrides.get("objective", preset_objective), str)]
    if objective.name != preset_objective:  # a preset sets the options of its own objective only
        preset = {key: value for key, value in preset.items() if key not in OBJECTIVES[preset_objective].options()}
    given = {**preset, **overrides}
    types = {
        "options": known[method].options(),
        "encoder_options": encoder_class(encoder).options(),
        "objective_options": objective.options(),
    }
    common = _common_types()
    values: dict[str, Any] = {}
    options: dict[str, Any] = {
        kind: {name: default for name, (_, default) in own.items()} for kind, own in types.items()
    }
    for key, value in given.items():
        kind = next((kind for kind, own in types.items() if key in own), None)
        if kind is not None:
            options[kind][key] = _parse(key, value, types[kind][key][0])
        elif key in common:
            values[key] = _parse(key, value, common[key])
        else:
            settings = [*common, *(name for own in types.values() for name in own)]
            raise ValueError(_unknown_setting_message(key, method, known, objective.name, settings))
    for key, value in objective.encoder_defaults(options["encoder_options"]).items():
        if key not in overrides:
            options["encoder_options"][key] = value
    if values.get("rationales") in SEPARATE and options["encoder_options"].get("unselected") != "mask":
        # Rationales without gaps are short, so that many of them cost little.
        options["encoder_options"] |= {"gaps": "closed"} if "gaps" in types["encoder_options"] else {}
        if "gaps" in overrides:
            options["encoder_options"]["gaps"] = _parse("gaps", overrides["gaps"], types["encoder_options"]["gaps"][0])
    if "full_text_epochs" in preset and "full_text_epochs" not in overrides:
        # The preset leaves at least one epoch for selections.
        most = values.get("epochs", Config.epochs) - 1 if _selects(method, pairs) else 0
        epochs = options["objective_options"].get("full_text_epochs", 0)
        options["objective_options"]["full_text_epochs"] = min(epochs, most)
    config = Config(method=method, pairs=pairs, **options, **values)
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


def _unknown_setting_message(
    key: str, method: str, known: Mapping[str, type[Method]], objective: str, settings: Sequence[str]
) -> str:
    if key in REPLACED:
        return f"there is no setting {key!r} any more; {REPLACED[key]}"
    objectives = [name for name, other in OBJECTIVES.items() if key in other.options()]
    if objectives:
        listed = ", ".join(objectives)
        return f"{key!r} is a setting of the objective {listed}, not of {objective}; set the objective as well"
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
    if kind == ClassWeight:
        return parse_class_weight(value)
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
    _check_objective(config)
    methods = methods_for(config.pairs)
    if config.annotation_weight and not methods[config.method].has_annotation_loss:
        supporting = ", ".join(name for name, method in methods.items() if method.has_annotation_loss)
        raise ValueError(f"annotation_weight needs word scores, but {config.method} has none; use one of {supporting}")
    encoder = encoder_class(config.encoder)
    if config.initial_weights == "xavier" and not encoder.supports_xavier:
        raise ValueError("initial_weights=xavier would overwrite the encoder's pretrained weights; leave it out")
    if config.pooling == "last" and not encoder.supports_last_pooling:
        raise ValueError("pooling=last is for the two directions of a BiLSTM; use mean or max")
    with_constraints(config, config.constraints)  # also checks the budget


def _separate_conflict(config: Config) -> str | None:
    """Return why a text cannot have one rationale for each label with these settings; None if it can."""
    if config.pairs:
        return "is for single texts, not for pairs"
    if not EXTRACTORS[config.method].supports_labels:
        return f"is for {' or '.join(n for n, kind in EXTRACTORS.items() if kind.supports_labels)}, not {config.method}"
    if config.budget.kind == "average":
        return f"needs a fixed budget, got {config.budget}"
    if any(isinstance(each, FactorConstraint) for each in config.constraints):
        return "does not support your own factors"
    if config.rationales == "disjoint" and config.constraints:
        return f"does not support constraints ({config.constraints[0]})"
    return None


def resolve_rationales(config: Config, labels: int) -> Literal["shared", "per-label", "disjoint"]:
    """Return what the setting `rationales` means for texts with this many labels or targets; 0: one label."""
    if config.rationales != "auto":
        return config.rationales
    return "per-label" if 0 < labels <= MOST_SEPARATE and _separate_conflict(config) is None else "shared"


def with_budget(config: Config, budget: Budget) -> Config:
    """Return the config with this budget; ValueError if its method does not support a budget of this kind."""
    if budget.kind == "enough":
        kind = methods_for(config.pairs)[config.method]
        if not (kind.uses_budget and kind.supports_constraints(config.options)):
            raise ValueError(f"{config.method} does not support a budget that is enough; use a fixed share")
        if _has_factors(config.constraints):
            raise ValueError(f"{budget} cannot be combined with your own factors; use a fixed share")
    if budget.kind == "average":
        methods = methods_for(config.pairs)
        if not methods[config.method].supports_average:
            supporting = [name for name, method in methods.items() if method.supports_average]
            raise ValueError(
                f"{config.method} does not support a budget on average; use {' or '.join(supporting)}, or a fixed share"
            )
        # The layers of these have no lower bound.
        if _has_factors(config.constraints):
            raise ValueError("a budget on average cannot be combined with your own factors; use a fixed share")
        excluded = next((each for each in config.constraints if each.name in ("monotone", "exactly-k")), None)
        if excluded is not None:
            raise ValueError(f"a budget on average cannot be combined with {excluded}; use a fixed share")
    changed = replace(config, budget=budget)
    if config.rationales in SEPARATE and (problem := _separate_conflict(changed)):
        raise ValueError(f"rationales={config.rationales} {problem}; use rationales=shared")
    return changed


def objective_conflict(name: str, method: str, *, pairs: bool) -> str | None:
    """Return why an objective cannot be combined with a method, and what to do; None if it can."""
    objective = OBJECTIVES[name]
    if objective.needs_selection and not _selects(method, pairs):
        others = ", ".join(other for other, kind in OBJECTIVES.items() if not kind.needs_selection)
        return f"objective={name} is for methods that select words of single texts, not for {method}; use {others}"
    if objective.needs_gradient and not EXTRACTORS[method].passes_gradient:
        others = ", ".join(other for other, kind in OBJECTIVES.items() if not kind.needs_gradient)
        return f"objective={name} needs a differentiable selection, but that of {method} is not; use {others}"
    return None


def _check_objective(config: Config) -> None:
    """Raise ValueError if the objective cannot be combined with the method or the encoder."""
    if problem := objective_conflict(config.objective, config.method, pairs=config.pairs):
        raise ValueError(problem)
    objective, name = OBJECTIVES[config.objective], config.objective
    selects = _selects(config.method, config.pairs)
    shared = config.encoder_options.get("shared", False)
    if objective.shares_encoder not in (None, shared):
        remedy = "leave it out" if "shared" in config.encoder_options else "use another encoder"
        raise ValueError(
            f"objective={name} needs shared={str(objective.shares_encoder).lower()}, a setting of the encoder; {remedy}"
        )
    epochs = config.objective_options.get("full_text_epochs", 0)
    if epochs and not selects:
        raise ValueError(f"full_text_epochs is for methods that select words of single texts, not for {config.method}")
    if epochs >= config.epochs:
        raise ValueError(
            f"full_text_epochs={epochs} of objective={config.objective} leaves none of "
            f"{count_of(config.epochs, 'epoch')} for selections; raise epochs, or lower full_text_epochs"
        )


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
    if _has_factors(constraints) and not methods[config.method].supports_factors:
        known = [name for name, method in methods.items() if method.supports_factors]
        raise ValueError(f"{config.method} does not support your own factors; use one of {', '.join(known)}")
    if constraints and not methods[config.method].supports_constraints(config.options):
        supporting = [name for name, method in methods.items() if method.supports_constraints(_defaults(method))]
        use = f"use one of {', '.join(supporting)}" if supporting else "leave them out"
        raise ValueError(f"{config.method} does not follow constraints ({constraints[0]}); {use}")
    return with_budget(replace(config, constraints=constraints), config.budget)


def _has_factors(constraints: Constraints) -> bool:
    return any(isinstance(each, (FactorConstraint, PairFactorConstraint)) for each in constraints)


def _defaults(method: type[Method]) -> dict[str, Any]:
    return {name: default for name, (_, default) in method.options().items()}


def _check_ranges(config: Config) -> None:
    given = {item.name: getattr(config, item.name) for item in fields(config)}
    check_ranges(ranges_of(Config), given)
    methods_for(config.pairs)[config.method].check(config.options)
    encoder_class(config.encoder).check(config.encoder_options)
    OBJECTIVES[config.objective].check(config.objective_options)
