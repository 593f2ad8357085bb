"""The models behind the page: what they are, and what they say at a given budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rationalizer.data import any_examples_from
from rationalizer.rationalizer import Rationalizer
from rationalizer.render import AnyExplanation
from rationalizer.text import Budget

Text = str | tuple[str, str]  # one text, or premise and hypothesis


@dataclass(frozen=True)
class Served:
    """A loaded model under the name that requests call it by."""

    name: str
    model: Rationalizer

    def explain(self, budget: Budget | None, texts: Sequence[Text]) -> list[AnyExplanation]:
        """Explanations at another budget than the model's own, if one is given; the model itself stays as it is."""
        rule = self.model.trained.reader.rule
        return self.model.explain_examples(any_examples_from(texts, pairs=self.model.pairs, rule=rule), budget=budget)

    @property
    def follows_budget(self) -> bool:
        return self.model.trained.model.method.follows_budget

    def facts(self) -> dict[str, Any]:
        """What a client needs to know before it asks."""
        trained = self.model.trained
        return {
            "name": self.name,
            "method": trained.config.method,
            "pairs": self.model.pairs,
            "task": trained.task,
            "classes": list(trained.classes),
            **budget_facts(trained.config.budget),
            "follows_budget": self.follows_budget,
        }


def budget_facts(budget: Budget) -> dict[str, Any]:
    """A budget for JSON, where 1.0 (the whole text) and 1 (one word) may come to look alike."""
    return {"budget": budget.amount, "budget_unit": budget.kind}


def load_models(directories: Iterable[Path]) -> list[Served]:
    """Runs under their folders' names; all for single texts, or all for pairs."""
    models: list[Served] = []
    for directory in directories:
        name = _free_name(directory.resolve().name, {served.name for served in models})
        models.append(Served(name, Rationalizer.load(directory)))
    pairs = [served.name for served in models if served.model.pairs]
    if pairs and len(pairs) < len(models):
        raise ValueError(f"{pairs[0]} reads pairs of texts, the other model single texts; serve models of one kind")
    return models


def _free_name(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
