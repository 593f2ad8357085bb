"""The settings of a run: defaults, presets, and overrides by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from rationalizer.constraints import Constraints
from rationalizer.models.class_weights import ClassWeight
from rationalizer.models.presets import presets_for
from rationalizer.models.setting_conflicts import SEPARATE, check_combinations, check_ranges_of, selects_words
from rationalizer.models.setting_values import parse_setting
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
from rationalizer.ranges import (
    Count,
    CountOrNone,
    Fraction,
    Number,
    Positive,
    Range,
    Rate,
    Weight,
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
        stored: whether the settings are those of a trained model; its folder then holds the encoder.
    """
    is_single = pairs is False or (method in EXTRACTORS and method not in ALIGNERS)
    if pairs is None:
        pairs = method in ALIGNERS and method not in EXTRACTORS
    method = method or ("at-most-one" if pairs else "spectra")
    known = methods_for(pairs)
    if method not in known:
        raise ValueError(_unknown_method_message(method, pairs))
    encoder = parse_setting("encoder", (overrides or {}).get("encoder", Config.encoder), str)
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
    objective = OBJECTIVES[parse_setting("objective", overrides.get("objective", preset_objective), str)]
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
            options[kind][key] = parse_setting(key, value, types[kind][key][0])
        elif key in common:
            values[key] = parse_setting(key, value, common[key])
        else:
            settings = [*common, *(name for own in types.values() for name in own)]
            raise ValueError(_unknown_setting_message(key, method, known, objective.name, settings))
    for key, value in objective.encoder_defaults(options["encoder_options"]).items():
        if key not in overrides:
            options["encoder_options"][key] = value
    encoder_options = options["encoder_options"]
    separate = values.get("rationales") in SEPARATE and encoder_options.get("unselected") != "mask"
    if separate and "gaps" in encoder_options and "gaps" not in overrides:
        encoder_options["gaps"] = "closed"  # rationales without gaps are short, so that many of them cost little
    if "full_text_epochs" in preset and "full_text_epochs" not in overrides:
        # The preset leaves at least one epoch for selections.
        most = values.get("epochs", Config.epochs) - 1 if selects_words(method, pairs) else 0
        epochs = options["objective_options"].get("full_text_epochs", 0)
        options["objective_options"]["full_text_epochs"] = min(epochs, most)
    config = Config(method=method, pairs=pairs, **options, **values)
    check_ranges_of(config)
    check_combinations(config)
    if is_single and not config.faithful:
        raise ValueError("faithful=false is a setting for pairs of texts, but these are single texts; leave it out")
    return config


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
