"""`ExportedModel`: explains texts with an exported model, or with a BiLSTM model's own folder, without PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, Self, overload

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints import BatchItem, Constraint, ConstraintConflict, Constraints, parse_constraints
from rationalizer.data import BadRows, InputRow, make_examples
from rationalizer.drawing import AnyExplanation, Explanation, Explanations, Label, PairExplanation
from rationalizer.explaining import as_label, conflict_in_row, make_explanation
from rationalizer.export.model_facts import (
    bilstm_inputs,
    check_budget,
    check_constraint_class,
    read_bilstm_weights,
    read_facts,
)
from rationalizer.export.selection_rules import select_links, select_words
from rationalizer.export.word_inputs import Feeds, Inputs, WordReader
from rationalizer.hub import STARTERS, locate
from rationalizer.prediction_warnings import (
    WarningSummary,
    changed_label_warning,
    prediction_warnings,
    smallest_budget,
)
from rationalizer.text import AnyExample, Budget, Example, PairExample
from rationalizer.text.errors import InputError
from rationalizer.text.language import Languages
from rationalizer.word_support import MAX_TOKENS, is_affordable, leave_one_out, selected_places

MANIFEST = "manifest.json"
ConstraintsArgument = Iterable[Constraint | str] | None  # None: the model's own constraints


def needs_no_pytorch(folder: Path) -> bool:
    """Return whether a model's folder is an export, or PyTorch is not installed."""
    return (folder / MANIFEST).is_file() or find_spec("torch") is None


class Networks(Protocol):
    """The graphs of a model."""

    def states(self, feeds: Feeds) -> Feeds: ...

    def scores(self, feeds: Feeds) -> NDArray[np.float32]: ...

    def output(self, feeds: Feeds) -> NDArray[np.float32]: ...


@dataclass(frozen=True)
class Settings:
    """What a rationale must satisfy."""

    pairs: bool
    budget: Budget
    constraints: Constraints


class ExportedModel:
    """A model that explains texts without PyTorch, one text at a time.

    It selects the same words as `Rationalizer` and gives the same probabilities up to rounding.

    >>> model = ExportedModel.load("sentiment")
    >>> model.explain("The room was spotless but the staff was rude.").label
    'negative'

    Args:
        manifest: the content of `manifest.json`.
        inputs: turns words into the inputs of the networks.
        networks: the graphs `scores` and `output`, and `states` for pairs.
    """

    def __init__(self, manifest: dict[str, Any], inputs: Inputs, networks: Networks) -> None:
        self.manifest = manifest
        self.encoder = WordReader(manifest["words"], inputs.knows)
        self._inputs, self._networks = inputs, networks
        self.pairs = bool(manifest["pairs"])
        self._languages = Languages.from_json(manifest["languages"])
        budget, constraints = Budget.parse(manifest["budget"]), parse_constraints(manifest["constraints"])
        self._settings = self._own_settings = Settings(self.pairs, budget, constraints)

    @classmethod
    def load(cls, model: str | Path, *, threads: int | None = None) -> Self:
        """Load an exported model, or a BiLSTM model that was saved by `Rationalizer.save`.

        Args:
            model: a folder; or "sentiment", "nli" or "align", the starter models.
            threads: CPU threads of ONNX Runtime; by default one for a BiLSTM, all for a transformer.

        Raises:
            NotExportableError: if the model can be used only with PyTorch.
            ImportError: an exported model needs ONNX Runtime (extra `onnx`).
        """
        folder = locate(model)
        if (folder / MANIFEST).is_file():
            from rationalizer.export.onnx_networks import load_export

            return cls(*load_export(folder, threads))
        facts = read_facts(folder, str(model) if str(model) in STARTERS else None)
        if not facts.is_bilstm:
            raise InputError(
                f"{folder} holds a transformer, which needs PyTorch or an export", "see rationalizer export"
            )
        from rationalizer.export.numpy_bilstm import NumpyNetworks

        stored = read_bilstm_weights(folder)
        return cls(facts.manifest, bilstm_inputs(facts, stored), NumpyNetworks(stored.weights, facts.network))

    @property
    def classes(self) -> tuple[Label, ...] | None:
        """The classes in the order of the probabilities, of the type they had in training; None for a regression."""
        if self.manifest["task"] == "regression":
            return None
        return tuple(as_label(name, self.manifest["label_type"]) for name in self.manifest["classes"])

    @property
    def result_form(self) -> dict[str, Any]:
        """The arguments of `drawing.result_columns` that depend on the model."""
        return {"pairs": self.pairs, "classes": self.classes}

    @property
    def budget(self) -> Budget:
        """The budget of a rationale; it can be set."""
        return self._settings.budget

    @budget.setter
    def budget(self, budget: Budget | float | str) -> None:
        self._settings = self.with_settings(budget, None)

    @property
    def constraints(self) -> Constraints:
        """The constraints besides the budget; they can be set."""
        return self._settings.constraints

    @constraints.setter
    def constraints(self, constraints: Iterable[Constraint | str]) -> None:
        self._settings = self.with_settings(None, constraints)

    def with_settings(self, budget: Budget | float | str | None, constraints: ConstraintsArgument) -> Settings:
        """Return the settings with another budget and other constraints, where they are not None; ValueError if the
        model cannot explain under them."""
        changed, method = self._settings, self.manifest["method"]
        if budget is not None:
            changed = replace(changed, budget=Budget.parse(budget))
            if changed.budget != self.budget and not method["follows_budget"]:
                raise ValueError(f"{method['name']} does not follow a budget; leave the budget out")
            if changed.budget.kind == "average" and not (method["supports_average"] and self.manifest["calibration"]):
                raise ValueError("this model has no multipliers for a budget on average; use a fixed share")
        if constraints is not None:
            changed = replace(changed, constraints=parse_constraints(constraints))
        for constraint in changed.constraints:
            if constraint.pairs != self.pairs:
                raise ValueError(f"constraint {constraint} is for {'single texts' if self.pairs else 'pairs of texts'}")
            if not method["supports_constraints"] or constraint.name in method["excluded_constraints"]:
                raise ValueError(f"{method['name']} does not follow the constraint {constraint}; leave it out")
            check_constraint_class(constraint.name)
        check_budget(changed.budget, changed.constraints, pairs=self.pairs)
        return changed

    def examples(self, texts: Iterable[Any]) -> Sequence[AnyExample]:
        """Split texts (or pairs) into words as this model does."""
        return make_examples(texts, pairs=self.pairs, rule=self.encoder.rule)

    def predict(self, texts: Iterable[Any], *, constraints: ConstraintsArgument = None) -> NDArray[Any]:
        """Return the predicted labels."""
        explanations = self.explain_examples(self.examples(texts), constraints=constraints)
        return np.array([explanation.label for explanation in explanations])

    def predict_proba(self, texts: Iterable[Any], *, constraints: ConstraintsArgument = None) -> NDArray[np.float32]:
        """Return the (texts, classes) probabilities."""
        if self.classes is None:
            raise ValueError("a regression has no probabilities; use predict")
        explanations = self.explain_examples(self.examples(texts), constraints=constraints)
        rows = [list((explanation.probabilities or {}).values()) for explanation in explanations]
        return np.array(rows, np.float32).reshape(-1, len(self.classes))

    @overload
    def explain(
        self, texts: str, *, constraints: ConstraintsArgument = ..., reasons: bool | None = ...
    ) -> Explanation: ...
    @overload
    def explain(
        self, texts: str, hypothesis: str, *, constraints: ConstraintsArgument = ..., reasons: bool | None = ...
    ) -> PairExplanation: ...
    @overload
    def explain(
        self, texts: Iterable[Any], *, constraints: ConstraintsArgument = ..., reasons: bool | None = ...
    ) -> Explanations: ...
    def explain(
        self,
        texts: Any,
        hypothesis: str | None = None,
        *,
        constraints: ConstraintsArgument = None,
        reasons: bool | None = None,
    ) -> Any:
        """Predict labels and return them with the rationales: for one text, for a premise and its hypothesis, or for a
        list of texts or pairs. `reasons` as in `Rationalizer.explain`."""
        single = isinstance(texts, str)
        if single and self.pairs != (hypothesis is not None):
            call = "explain(premise, hypothesis)" if self.pairs else "explain(text)"
            raise ValueError(f"this model reads {'pairs of' if self.pairs else 'single'} texts; call {call}")
        if single:
            texts = [(texts, hypothesis) if self.pairs else texts]
        explanations = self.explain_examples(self.examples(texts), constraints=constraints, reasons=reasons)
        WarningSummary(explanations).emit(stacklevel=2)
        return explanations[0] if single else explanations

    def explain_examples(
        self,
        examples: Sequence[AnyExample],
        *,
        budget: Budget | float | str | None = None,
        constraints: ConstraintsArgument = None,
        reasons: bool | None = False,
    ) -> Explanations:
        """Explain examples that are already split into words, without a Python warning."""
        settings = self.with_settings(budget, constraints)
        items = (BatchItem(example, k, len(examples)) for k, example in enumerate(examples))
        return Explanations(self._explain(item, settings, reasons) for item in items)

    def explain_rows(
        self,
        rows: Sequence[InputRow],
        *,
        bad: BadRows | None = None,
        batch_size: int = 1,
        reasons: bool | None = False,
    ) -> list[AnyExplanation | None]:
        """Explain rows of a file (see `data.iter_rows`) as `Rationalizer.explain_rows` does."""
        explained: list[AnyExplanation | None] = []
        for row in rows:
            explained.append(None)
            if row.example is not None:
                try:
                    (explained[-1],) = self.explain_examples([replace(row.example, label=None)], reasons=reasons)
                except ConstraintConflict as error:
                    if row.path is None or row.number is None or bad is None or not bad.skip:
                        raise conflict_in_row(error, row) from None
                    bad.add(Path(row.path), row.number, error.with_place(""))
        return explained

    def label_of(self, example: AnyExample) -> Label | None:
        """Return the true label of an example as the user wrote it; None if it has none."""
        label: Any = example.label  # exported models predict one class or value
        if label is None:
            return None
        return float(label) if self.classes is None else self.classes[int(label)]

    def _explain(self, item: BatchItem, settings: Settings, reasons: bool | None) -> AnyExplanation:
        predict, z = self._select(item, settings)
        output, weights, smallest = predict(z), None, None
        if reasons is not False:
            smallest = partial(self._smallest_budget, settings=settings)
            tokens = item.example.texts[0].tokens
            places = selected_places(z, None if self.pairs else self.encoder.counted(tokens))
            has_one_class = self.classes is not None and len(self.classes) == 1
            if is_affordable(places, item.example.shape, None if reasons else MAX_TOKENS) and not has_one_class:
                weights = leave_one_out(z, places, predict if self.classes else lambda other: predict(other)[0])
        facts: dict[str, Any] = {"config": settings, "encoder": self.encoder, "languages": self._languages}
        warnings = prediction_warnings(item.example, z, smallest=smallest, **facts)
        if reasons is not False and self.classes is not None and settings != self._own_settings:
            warnings += self._changed_label(item, output, settings)
        return make_explanation(
            item.example,
            output if self.classes is not None else output[0],
            z,
            weights=weights,
            classes=self.classes,
            encoder=self.encoder,
            faithful=self.manifest["faithful"],
            warnings=warnings,
        )

    def _smallest_budget(self, example: AnyExample, settings: Settings) -> tuple[Budget, int] | None:
        if not self.manifest["method"]["follows_budget"]:
            return None
        item, selectable = BatchItem(example, 0, 1), [int(self.encoder.counted(t.tokens).sum()) for t in example.texts]
        return smallest_budget(
            settings.budget, min(selectable), lambda budget: self._select(item, replace(settings, budget=budget))[1]
        )

    def _changed_label(self, item: BatchItem, output: NDArray[np.float32], settings: Settings) -> tuple[str, ...]:
        assert self.classes is not None
        try:
            other, _ = self.outputs(item, self._own_settings)
        except ConstraintConflict:  # the model's own constraints cannot be satisfied on this text
            return ()
        label, own = (self.classes[int(found.argmax())] for found in (output, other))
        return changed_label_warning(label, settings, own, self._own_settings)

    def outputs(self, item: BatchItem, settings: Settings) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The output and the weights of the words, or of the pairs of words."""
        predict, z = self._select(item, settings)
        return predict(z), z

    def _select(
        self, item: BatchItem, settings: Settings
    ) -> tuple[Callable[[NDArray[np.float32]], NDArray[np.float32]], NDArray[np.float32]]:
        """The function from a selection to its output, and the selection."""
        example, method, budget = item.example, self.manifest["method"], settings.budget
        if isinstance(example, PairExample):
            sides = zip(("premise", "hypothesis"), example.texts, strict=True)
            feeds = {name: self._networks.states(self._inputs.whole(text))["states"] for name, text in sides}
            counted = (self.encoder.counted(example.premise.tokens), self.encoder.counted(example.hypothesis.tokens))
            z = select_links(self._networks.scores(feeds), counted, method, budget, settings.constraints, item)
            if self.manifest["faithful"] and self.manifest["premise_context"] == "aligned":
                return lambda links: self._networks.output(self._close_premise(feeds, example.premise, links)), z
            return lambda links: self._networks.output({**feeds, "weights": links}), z
        assert isinstance(example, Example)
        if budget.kind == "average":
            budget = budget.calibrated(self.manifest["calibration"])
        scores = self._networks.scores(self._inputs.whole(example))
        masks = self.encoder.masks(example.tokens)
        z = select_words(scores, *masks, method, budget, settings.constraints, item, self.encoder.sentences)
        return lambda words: self._networks.output(self._inputs.selection(example, words)), z

    def _close_premise(self, feeds: Feeds, premise: Example, z: NDArray[np.float32]) -> Feeds:
        """The inputs of the output from the aligned premise words alone, encoded as a text of their own."""
        aligned = np.flatnonzero(z.any(1)).tolist()
        if not aligned:
            return {**feeds, "premise": np.zeros_like(feeds["premise"][:1]), "weights": z[:1]}
        tokens, offsets = tuple(premise.tokens[k] for k in aligned), tuple(premise.offsets[k] for k in aligned)
        states = self._networks.states(self._inputs.whole(Example(premise.text, tokens, offsets)))
        return {**feeds, "premise": states["states"], "weights": z[aligned]}

    def __repr__(self) -> str:
        return f"ExportedModel({self.manifest['name']!r}, method={self.manifest['method']['name']!r})"
