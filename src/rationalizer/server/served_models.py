"""The models that the server uses, and their explanations of batches of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rationalizer.constraints import CONSTRAINTS, Constraint, ConstraintConflict, Constraints
from rationalizer.drawing import AnyExplanation
from rationalizer.export.exported_model import ExportedModel, needs_no_pytorch
from rationalizer.hub import locate
from rationalizer.text import AnyExample, Budget
from rationalizer.text.errors import DataError

if TYPE_CHECKING:  # exported models are served without PyTorch
    from rationalizer.model import Rationalizer
    from rationalizer.records.recorder import Recorder

Text = str | tuple[str, str]  # one text, or premise and hypothesis
# Maximum number of word pairs of an alignment: 500 × 500 words take 0.1 seconds, 2,000 × 2,000 would take a hundred
# times as long and delay all other requests.
MAX_WORD_PAIRS = 250_000
# Maximum padding of a batch, in words: more costs about as much as another batch.
MAX_PADDING = 256


def estimate_cost(text: Text) -> int:
    """Estimate the cost of a text in words, from its length, at four characters per word."""
    return _cost(tuple(1 + len(part) // 4 for part in ((text,) if isinstance(text, str) else text)))


def _cost(shape: tuple[int, ...]) -> int:
    return sum(shape) + (prod(shape) // 16 if len(shape) > 1 else 0)


def group_by_length(shapes: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Return groups of indices of texts of similar length.

    A batch is padded to its longest text: with one long text, fifty short ones would cost as much as fifty long ones.
    """
    groups: list[list[int]] = []
    longest: tuple[int, ...] = ()
    words = 0
    for index in sorted(range(len(shapes)), key=lambda k: _cost(shapes[k])):
        shape = shapes[index]
        longest = tuple(map(max, longest or shape, shape))
        words += _cost(shape)
        if groups and (len(groups[-1]) + 1) * _cost(longest) - words <= MAX_PADDING:
            groups[-1].append(index)
        else:
            groups.append([index])
            longest, words = shape, _cost(shape)
    return groups


class Traits(NamedTuple):
    """What clients may know of a model."""

    method: str
    task: str
    classes: tuple[str, ...]
    follows_budget: bool
    supports_constraints: bool
    excluded_constraints: Set[str]
    examples: tuple[Text, ...]


@dataclass(frozen=True)
class ServedModel:
    """A loaded model and its name in requests."""

    name: str
    model: Rationalizer | ExportedModel

    @cached_property
    def traits(self) -> Traits:
        if isinstance(self.model, ExportedModel):
            facts, method = self.model.manifest, self.model.manifest["method"]
            examples = tuple(tuple(each) if isinstance(each, list) else each for each in facts["examples"])
            return Traits(
                method["name"],
                facts["task"],
                tuple(facts["classes"]),
                method["follows_budget"],
                method["supports_constraints"],
                frozenset(method["excluded_constraints"]),
                examples,
            )
        trained = self.model.trained
        used = trained.model.method
        return Traits(
            trained.config.method,
            trained.task,
            trained.classes,
            used.follows_budget,
            used.supports_constraints(trained.config.options),
            used.excluded_constraints,
            trained.examples,
        )

    def check(self, budget: Budget | None, constraints: Constraints | None) -> None:
        """Raise ValueError if the model cannot explain under this budget and these constraints."""
        if isinstance(self.model, ExportedModel):
            self.model.with_settings(budget, constraints)
            return
        from rationalizer.inference.predict import with_settings
        from rationalizer.models.setting_conflicts import with_constraints

        if constraints is not None:
            with_constraints(self.model.config, constraints)
        if budget is not None and budget.kind in ("average", "enough"):
            with_settings(self.model.trained, budget, constraints)

    @property
    def pairs(self) -> bool:
        return self.model.pairs

    @cached_property
    def _recorder(self) -> Recorder:
        """Kept, because the hash of a large model takes longer than an explanation."""
        from rationalizer.records.recorder import Recorder

        assert not isinstance(self.model, ExportedModel)  # requests for its records are refused
        return Recorder(self.model.trained)

    def explain(
        self,
        budget: Budget | None,
        constraints: Constraints | None,
        texts: Sequence[Text],
        *,
        record: bool = False,
        reasons: bool = False,
    ) -> list[AnyExplanation | DataError]:
        """Explain the texts; `budget` and `constraints`, unless None, replace the model's own for this call.

        With `record`, explanations have a decision record; with `reasons`, the selected words of texts that are not too
        long have weights. The result of a text that cannot be explained is a
        `DataError`.
        """
        results: list[AnyExplanation | DataError | None] = [None] * len(texts)
        examples: dict[int, AnyExample] = {}
        for index, text in enumerate(texts):
            example = self._example(text)
            if isinstance(example, DataError):
                results[index] = example
            else:
                examples[index] = example
        indices = list(examples)
        try:
            for group in group_by_length([example.shape for example in examples.values()]):
                members = [indices[k] for k in group]
                settings: dict[str, Any] = {"budget": budget, "constraints": constraints}
                settings |= {"recorder": self._recorder} if record else {}
                settings["reasons"] = None if reasons else False
                explanations = self.model.explain_examples([examples[index] for index in members], **settings)
                for index, explanation in zip(members, explanations, strict=True):
                    results[index] = explanation
        except ConstraintConflict as error:  # its index counts texts of several requests
            raise error if error.index is None else error.with_place(f"the {error.unit}") from None
        return [result for result in results if result is not None]

    def _example(self, text: Text) -> AnyExample | DataError:
        try:
            (example,) = self.model.examples([text])
        except DataError as error:
            return error
        if prod(example.shape) > MAX_WORD_PAIRS and len(example.shape) > 1:
            premise, hypothesis = example.shape
            problem = f"the texts have {premise} and {hypothesis} words, {premise * hypothesis} pairs"
            return DataError(problem, f"shorten them to at most {MAX_WORD_PAIRS} pairs")
        return example

    def _offered(self) -> list[dict[str, str]]:
        """Return the constraints that the page offers; none if the model does not support constraints."""
        if not self.traits.supports_constraints:
            return []
        excluded = self.traits.excluded_constraints
        kinds = [kind for name, kind in CONSTRAINTS.items() if kind.pairs == self.model.pairs and name not in excluded]
        return [constraint_facts(Constraint.parse(text)) for kind in kinds for text in kind.suggested]

    def facts(self) -> dict[str, Any]:
        """Describe the model for clients."""
        return {
            "name": self.name,
            "method": self.traits.method,
            "pairs": self.model.pairs,
            "task": self.traits.task,
            "classes": list(self.traits.classes),
            **budget_facts(self.model.budget),
            "follows_budget": self.traits.follows_budget,
            "constraints": list(map(constraint_facts, self.model.constraints)),
            "offered": self._offered(),
        }


def constraint_facts(constraint: Constraint) -> dict[str, str]:
    """Describe a constraint: as the endpoint takes it, and in words."""
    return {"constraint": str(constraint), "words": constraint.describe()}


def budget_facts(budget: Budget) -> dict[str, Any]:
    """Describe a budget with its unit: JSON may not distinguish 1.0 (the whole text) from 1 (one word)."""
    own = {"average": ("least", "most"), "enough": ("certainty",)}.get(budget.kind, ())
    return {"budget": budget.amount, "budget_unit": budget.kind, **{name: getattr(budget, name) for name in own}}


def load_models(directories: Iterable[Path], device: str = "auto") -> list[ServedModel]:
    """Load models, named after their folders; some may read single texts and others pairs."""
    models: list[ServedModel] = []
    for directory in directories:
        name = _unique_name(directory.resolve().name, {model.name for model in models})
        if needs_no_pytorch(locate(directory)):
            models.append(ServedModel(name, ExportedModel.load(directory)))
            continue
        from rationalizer.model import Rationalizer

        models.append(ServedModel(name, Rationalizer.load(directory, device)))
    return models


def _unique_name(name: str, used: set[str]) -> str:
    number, unique = 1, name
    while unique in used:
        number += 1
        unique = f"{name}-{number}"
    return unique
