"""Which settings can be combined: of method, encoder, objective, budget, constraints and number of labels."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal

from rationalizer.constraints import Constraints, FactorConstraint, PairFactorConstraint
from rationalizer.nn import EXTRACTORS, OBJECTIVES, Method, encoder_class, methods_for
from rationalizer.plurals import count_of
from rationalizer.ranges import check_ranges, ranges_of
from rationalizer.text import Budget

if TYPE_CHECKING:
    from rationalizer.models.config import Config

SEPARATE = ("per-label", "disjoint")  # rationales of which a text has several
MOST_SEPARATE = 20  # labels with a rationale each by default; the time of a training step grows with their number


def check_ranges_of(config: Config) -> None:
    """Raise ValueError for a setting outside its range."""
    given = {item.name: getattr(config, item.name) for item in fields(config)}
    check_ranges(ranges_of(type(config)), given)
    methods_for(config.pairs)[config.method].check(config.options)
    encoder_class(config.encoder).check(config.encoder_options)
    OBJECTIVES[config.objective].check(config.objective_options)


def check_combinations(config: Config) -> None:
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
    if objective.needs_selection and not selects_words(method, pairs):
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
    selects = selects_words(config.method, config.pairs)
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


def selects_words(method: str, pairs: bool) -> bool:
    """Return whether the predictor reads a part of a text, and could read all of it."""
    return not pairs and EXTRACTORS[method].uses_generator
