"""The models behind the page: what they are, and what they say at a given budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from rationalizer.constraints import CONSTRAINTS, Constraint, ConstraintConflict, Constraints
from rationalizer.drawing import AnyExplanation
from rationalizer.model import Rationalizer
from rationalizer.text import AnyExample, Budget, Example, PairExample
from rationalizer.text.word_splitting import split_words

Text = str | tuple[str, str]  # one text, or premise and hypothesis
# Pairs of words that an alignment may choose from: 500 words against 500 take a tenth of a second, 2,000 against 2,000
# would take a hundred times as long, and nobody else would be answered meanwhile.
COMPARED = 250_000
# Words that a batch may be padded by: reading them takes about as long as another batch does whatever is in it.
PADDING = 256


@dataclass(frozen=True)
class Unreadable:
    """A text that the model cannot read, which shows only when it is cut into words."""

    problem: str
    remedy: str


def work(text: Text) -> int:
    """How much work a text is, about, in words; without cutting it, at four characters a word."""
    return _work(tuple(1 + len(part) // 4 for part in ((text,) if isinstance(text, str) else text)))


def _work(shape: tuple[int, ...]) -> int:
    return sum(shape) + (prod(shape) // 16 if len(shape) > 1 else 0)


def alike(shapes: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Positions in groups of texts of about the same length. Whatever is read together is padded to the longest: a
    long text among fifty short ones would take as long as fifty long ones."""
    groups: list[list[int]] = []
    longest: tuple[int, ...] = ()
    words = 0
    for position in sorted(range(len(shapes)), key=lambda k: _work(shapes[k])):
        shape = shapes[position]
        longest = tuple(map(max, longest or shape, shape))
        words += _work(shape)
        if groups and (len(groups[-1]) + 1) * _work(longest) - words <= PADDING:
            groups[-1].append(position)
        else:
            groups.append([position])
            longest, words = shape, _work(shape)
    return groups


@dataclass(frozen=True)
class ServedModel:
    """A loaded model under the name that requests call it by."""

    name: str
    model: Rationalizer

    def explain(
        self, budget: Budget | None, constraints: Constraints | None, texts: Sequence[Text]
    ) -> list[AnyExplanation | Unreadable]:
        """Explanations at another budget and under other constraints than the model's own, if any are given; the model
        itself stays as it is."""
        read = [self._read(text) for text in texts]
        examples = [one for one in read if not isinstance(one, Unreadable)]
        try:
            found = iter(self._explain_alike(examples, budget=budget, constraints=constraints))
        except ConstraintConflict as error:  # of whom the number is one among the texts of several requests
            raise error if error.index is None else error.with_place(f"the {error.unit}") from None
        return [one if isinstance(one, Unreadable) else next(found) for one in read]

    def _explain_alike(self, examples: Sequence[AnyExample], **asked: Any) -> list[AnyExplanation]:
        found: dict[int, AnyExplanation] = {}
        for group in alike([example.shape for example in examples]):
            explained = self.model.explain_examples([examples[k] for k in group], **asked)
            found |= zip(group, explained, strict=True)
        return [found[k] for k in range(len(examples))]

    def _read(self, text: Text) -> AnyExample | Unreadable:
        rule = self.model.trained.encoder.rule
        sides = [Example(part, *split_words(part, rule)) for part in ((text,) if isinstance(text, str) else text)]
        lengths = [len(side.tokens) for side in sides]
        if not all(lengths):
            return Unreadable("there is no word in the text", "correct the text or leave it out")
        if len(sides) == 1:
            return sides[0]
        if prod(lengths) > COMPARED:
            problem = f"the texts have {lengths[0]} and {lengths[1]} words, {prod(lengths)} pairs to choose from"
            return Unreadable(problem, f"shorten them; {COMPARED} are the most")
        premise, hypothesis = sides
        return PairExample(premise, hypothesis)

    @property
    def follows_budget(self) -> bool:
        return self.model.trained.model.method.follows_budget

    def _offered(self) -> list[dict[str, str]]:
        """Constraints to click; none where the model follows none."""
        if not self.supports_constraints:
            return []
        settled = self.model.trained.model.method.excluded_constraints
        kinds = [kind for name, kind in CONSTRAINTS.items() if kind.pairs == self.model.pairs and name not in settled]
        return [constraint_facts(Constraint.parse(text)) for kind in kinds for text in kind.suggested]

    @property
    def supports_constraints(self) -> bool:
        trained = self.model.trained
        return trained.model.method.supports_constraints(trained.config.options)

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
            "constraints": list(map(constraint_facts, self.model.constraints)),
            "offered": self._offered(),
        }


def constraint_facts(constraint: Constraint) -> dict[str, str]:
    """A constraint as the endpoint takes it, and for people to read."""
    return {"constraint": str(constraint), "words": constraint.describe()}


def budget_facts(budget: Budget) -> dict[str, Any]:
    """A budget for JSON, where 1.0 (the whole text) and 1 (one word) may come to look alike."""
    return {"budget": budget.amount, "budget_unit": budget.kind}


def load_models(directories: Iterable[Path], device: str = "cpu") -> list[ServedModel]:
    """Models under their folders' names; some may read single texts and others pairs."""
    models: list[ServedModel] = []
    for directory in directories:
        name = _free_name(directory.resolve().name, {served.name for served in models})
        models.append(ServedModel(name, Rationalizer.load(directory, device)))
    return models


def _free_name(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
