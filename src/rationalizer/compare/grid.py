"""Plan the runs of a comparison: datasets × methods × objectives × budgets × seeds, one folder each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, get_args

from rationalizer.data import DataSource
from rationalizer.models import Config, configure
from rationalizer.models.setting_conflicts import objective_conflict
from rationalizer.nn import EXTRACTORS, OBJECTIVES, methods_for
from rationalizer.suggestions import did_you_mean
from rationalizer.text import Budget

T = TypeVar("T")
FAITHFUL = ("faithful", "not-faithful")  # the default first


@dataclass(frozen=True)
class Variant:
    """A method, optionally with a variant: another decoder ("sfe:contiguous") or, for pairs, a predictor that also
    reads the whole premise ("budget:not-faithful"); and optionally with an objective ("spectra+mcd")."""

    name: str
    variant: str | None = None
    pairs: bool = False
    objective: str | None = None  # None: that of the settings

    @classmethod
    def parse(cls, text: str, pairs: bool = False) -> Variant:
        text, _, objective = text.partition("+")
        if objective:
            return replace(cls.parse(text, pairs), objective=OBJECTIVES[objective].name)
        name, _, variant = text.partition(":")
        known = methods_for(pairs)
        if name not in known:
            kind = " for pairs of texts" if pairs else ""
            raise ValueError(f"there is no method {name!r}{kind}; {did_you_mean(name, known)}")
        if not variant:
            return cls(name, pairs=pairs)
        decoding = known[name].options().get("decoding")
        choices = FAITHFUL if pairs else get_args(decoding[0]) if decoding else ()
        default = FAITHFUL[0] if pairs else decoding[1] if decoding else None
        if variant not in choices:
            way = "has no variant" if pairs else "cannot be decoded by"
            raise ValueError(f"{name} {way} {variant!r}; write {', '.join(f'{name}:{c}' for c in choices) or name}")
        return cls(name, None if variant == default else variant, pairs)

    @property
    def label(self) -> str:
        method = self.name if self.variant is None else f"{self.name}:{self.variant}"
        return method if self.objective is None else f"{method}+{self.objective}"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the variant and the objective."""
        objective = {} if self.objective is None else {"objective": self.objective}
        if self.variant is None:
            return objective
        return objective | ({"faithful": self.variant == FAITHFUL[0]} if self.pairs else {"decoding": self.variant})

    @property
    def unit(self) -> str:
        """The unit of the budget."""
        return "pair" if self.pairs else "word"

    @property
    def uses_budget(self) -> bool:
        return methods_for(self.pairs)[self.name].uses_budget


@dataclass(frozen=True)
class PlannedRun:
    """A run of a comparison: data, method, settings and folder."""

    source: DataSource
    method: Variant
    config: Config
    directory: Path

    @property
    def title(self) -> str:
        budget = f", budget {self.config.budget.describe(self.method.unit)}" if self.method.uses_budget else ""
        return f"{self.source.name}, {self.method.label}{budget}, seed {self.config.seed}"

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source.to_json(),
            "method": self.method.label,
            "config": self.config.to_json(),
            "directory": str(self.directory),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> PlannedRun:
        config = Config.from_json(stored["config"])
        method = Variant.parse(stored["method"], config.pairs)
        return cls(DataSource.from_json(stored["source"]), method, config, Path(stored["directory"]))


def parse_methods(text: str, pairs: bool = False) -> list[Variant]:
    """Parse a list such as "spectra,sfe:contiguous", or "all"."""
    names = list(methods_for(pairs)) if text.strip() == "all" else _split_list(text, "--methods")
    return _require_distinct([Variant.parse(name, pairs) for name in names], "method", lambda method: method.label)


def parse_objectives(text: str) -> list[str]:
    """Parse a list such as "joint,mcd", or "all"."""
    names = list(OBJECTIVES) if text.strip() == "all" else _split_list(text, "--objectives")
    return _require_distinct([OBJECTIVES[name].name for name in names], "objective", str)


def combine_objectives(methods: Sequence[Variant], objectives: Sequence[str]) -> tuple[list[Variant], list[str]]:
    """Combine each method with each objective. Return the combinations, and why the others are left out.

    A method without a rationale, to which objectives make no difference, stays as it is.
    """
    combined, left_out = [], []
    for method in methods:
        if not method.pairs and not EXTRACTORS[method.name].uses_generator:
            combined.append(method)
            continue
        for name in objectives:
            if problem := objective_conflict(name, method.name, pairs=method.pairs):
                left_out.append(problem)
            else:
                combined.append(replace(method, objective=name))
    if not combined:
        raise ValueError(left_out[0])
    return combined, left_out


def parse_seeds(text: str) -> list[int]:
    seeds = []
    for item in _split_list(text, "--seeds"):
        if not item.isdecimal():
            raise ValueError(f"a seed must be a whole number of at least 0, got {item!r}; write --seeds 0,1,2")
        seeds.append(int(item))
    return _require_distinct(seeds, "seed", str)


_CONTINUED = re.compile(r",(?= *(?:at most\b|\S+ to\b|\S+ certain\b))")  # a comma within a budget


def parse_budgets(text: str) -> list[Budget]:
    """Parse percentages of the text, averages and what is enough, such as "2,5,18% on average, 8% to 35%,enough"."""
    budgets = []
    for item in _split_list(_CONTINUED.sub(";", text), "--budgets"):
        try:
            is_percentage = item.removesuffix("%").replace(".", "", 1).isdecimal()
            budgets.append(Budget.parse(f"{item.removesuffix('%')}%" if is_percentage else item.replace(";", ",")))
        except ValueError:
            raise ValueError(
                "--budgets are percentages of the text between 0 and 100, averages (18% on average, 8% to 35%) or "
                f"enough, at most 40%, 90% certain; got {item!r}"
            ) from None
    return sorted(_require_distinct(budgets, "budget", str), key=Budget.sort_key)


def describe_method(config: Config) -> str:
    """Describe a method with its budget, its constraints, and its objective if it is not the default."""
    faithful = "" if not config.pairs else ", faithful" if config.faithful else ", not faithful"
    method = Variant(config.method, None, config.pairs)
    budget = f", budget {config.budget.describe(method.unit)}" if method.uses_budget else ""
    objective = f", objective {config.objective}" if config.objective != Config.objective else ""
    constraints = "".join(f", {constraint}" for constraint in config.constraints)
    return f"{config.method}{faithful}{budget}{constraints}{objective}"


def plan_runs(
    sources: Sequence[DataSource],
    methods: Sequence[Variant],
    seeds: Sequence[int],
    budgets: Sequence[Budget] | None,
    settings: Mapping[str, Any],
    out: Path,
) -> list[PlannedRun]:
    """Plan all runs; those of one seed follow each other. A method without a budget gets one run for all budgets.

    Args:
        sources: data with different names.
        methods: the methods to compare; `combine_objectives` combines them with objectives.
        seeds: of the models; the data are the same for all seeds.
        budgets: a sweep; None: the default budget of each dataset.
        settings: for all runs, or for one method or objective if the key starts with its name: "spectra.temperature",
            "mgr.generator_count".
        out: the comparison's folder.
    """
    _require_distinct(sources, "source", lambda source: source.name)
    _require_distinct(methods, "method", lambda method: method.label)
    runs = []
    for source in sources:
        for seed in seeds:
            for budget in budgets or [source.budget]:
                for method in methods:
                    if not method.uses_budget and budgets and budget != budgets[0]:
                        continue
                    runs.append(_plan_run(source, method, seed, budget, settings, out))
    return runs


def _plan_run(
    source: DataSource, method: Variant, seed: int, budget: Budget, settings: Mapping[str, Any], out: Path
) -> PlannedRun:
    own = _own_settings(method, settings) | {"seed": seed}
    own["budget"] = budget if method.uses_budget else source.budget
    own |= method.settings
    amount = budget.describe(method.unit).removesuffix("%").replace(",", "").replace("%", "").replace(" ", "-")
    folder = f"budget-{amount}" if method.uses_budget else "any-budget"
    directory = out / "runs" / source.name / method.label.replace(":", "-") / folder / f"seed-{seed}"
    try:
        config = configure(method.name, own, dataset=source.dataset, pairs=method.pairs)
    except ValueError as error:
        options = {name: known.options().keys() for name, known in methods_for(method.pairs).items()}
        foreign = next((key for key in own if key in {*chain(*options.values())} - options[method.name]), None)
        if foreign is not None:
            raise ValueError(f"{error}; write it for one method, as METHOD.{foreign}=...") from None
        of_objectives = {key for kind in OBJECTIVES.values() for key in kind.options()}
        foreign = next((key for key in own if key in of_objectives), None)
        if foreign is None or method.objective is None:
            raise
        raise ValueError(f"{error}; or write it for one objective, as OBJECTIVE.{foreign}=...") from None
    return PlannedRun(source, method, config, directory)


def _own_settings(method: Variant, settings: Mapping[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for key, value in settings.items():
        owner, dot, rest = key.partition(".")
        # "full-text" is a method and an objective: the setting tells which one is meant.
        of_objective = dot and owner in OBJECTIVES and rest in OBJECTIVES[owner].options()
        if dot and not of_objective and owner not in methods_for(method.pairs):
            Variant.parse(owner, method.pairs)
        if not dot:
            own.setdefault(key, value)
        elif owner == (method.objective if of_objective else method.name):
            own[rest] = value
    variants = f"--methods {method.name}:..."
    varied = {"seed": "--seeds", "budget": "--budgets", "decoding": variants, "faithful": variants}
    if method.objective is not None:
        varied["objective"] = "--objectives"
    for key, option in varied.items():
        if key in own:
            raise ValueError(f"the comparison sets {key!r} itself; use {option}")
    return own


def _split_list(text: str, option: str) -> list[str]:
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise ValueError(f"{option} takes values separated by commas, got {text!r}")
    return items


def _require_distinct(items: Sequence[T], kind: str, name: Callable[[T], str]) -> list[T]:
    counts = Counter(map(name, items))
    for repeated in (item for item, count in counts.items() if count > 1):
        raise ValueError(f"the {kind} {repeated!r} occurs twice; leave one out")
    return list(items)


def values_by_source(
    values: Sequence[str] | None, sources: Sequence[str], option: str, *, for_all: bool = False
) -> dict[str, str]:
    """Parse the values of an option that takes [NAME=]VALUE, where NAME is a source.

    A value without a name is for all sources if there is only one source, or with `for_all`.
    """
    by_source: dict[str, str] = {}
    for value in values or ():
        name, equals, rest = value.partition("=")
        if equals and name in sources:
            by_source[name] = rest
        elif for_all or len(sources) == 1:
            by_source |= {source: value for source in sources if source not in by_source}
        else:
            raise ValueError(f"there are several sources; write {option} {sources[0]}={value}")
    return by_source
