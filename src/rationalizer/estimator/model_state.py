"""What a `Rationalizer` is made of: its parameters, its settings and the trained model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rationalizer.constraints import Constraint, parse_constraints
from rationalizer.data import Labels, make_examples
from rationalizer.data.data_frames import is_table, texts_of
from rationalizer.drawing import Label
from rationalizer.explaining import as_label
from rationalizer.models.config import Config, configure
from rationalizer.models.setting_conflicts import with_constraints
from rationalizer.models.trained_model import TrainedModel
from rationalizer.not_fitted import not_fitted
from rationalizer.text import AnyExample, Budget
from rationalizer.training.runs import RunRecord


class ModelState:
    """The settings that can be read and changed, and how the model splits texts and names labels."""

    # The parameters exactly as passed: scikit-learn's `clone` requires identical objects.
    _params: dict[str, Any]
    _config: Config
    _own_config: Config  # with the budget and the constraints of the training
    _trained: TrainedModel | None
    _record: RunRecord | None  # of the run that trained the model

    @property
    def trained(self) -> TrainedModel:
        """The trained model, as the functions of `inference` take it."""
        if self._trained is None:
            raise not_fitted("this Rationalizer is not trained; call fit(texts, labels), or Rationalizer.load(folder)")
        return self._trained

    @property
    def config(self) -> Config:
        return self._config

    @property
    def pairs(self) -> bool:
        """Whether the model reads pairs of texts; before `fit`, whether its method is for pairs."""
        return self._config.pairs

    @property
    def budget(self) -> Budget:
        """The budget of a rationale. Setting it changes a trained model at once, without training."""
        return self._config.budget

    @budget.setter
    def budget(self, budget: Budget | float | str) -> None:
        budget = Budget.parse(budget)
        if self._trained is not None:
            self._trained = self._trained.with_budget(budget)
        self._params = {**self._params, "budget": budget}
        self._config = replace(self._config, budget=budget)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints besides the budget. Setting them changes a trained model at once, without training."""
        return self._config.constraints

    @constraints.setter
    def constraints(self, constraints: Iterable[Constraint | str]) -> None:
        config = with_constraints(self._config, parse_constraints(constraints))
        if self._trained is not None:
            self._trained = self._trained.with_constraints(config.constraints)
        self._params = {**self._params, "constraints": config.constraints}
        self._config = config

    @property
    def thresholds(self) -> dict[str, float]:
        """For models with several labels: the probability from which a text has each label. They are calibrated on dev
        for the best F1. Setting them, some by name or one number for all, changes a trained model at once."""
        trained = self.trained
        if trained.task != "multi-label":
            raise AttributeError("only a model with several labels has thresholds")
        return dict(zip(trained.classes, trained.thresholds, strict=True))

    @thresholds.setter
    def thresholds(self, thresholds: Mapping[str, float] | Sequence[float] | float) -> None:
        self._trained = self.trained.with_thresholds(thresholds)

    def examples(self, texts: Iterable[Any], annotations: Iterable[Any] | None = None) -> Sequence[AnyExample]:
        """Split texts (or pairs) into words as this model does; the same kinds of input as for `explain`.

        Args:
            texts: strings or lists of tokens, (premise, hypothesis) tuples, or a table.
            annotations: human annotations of the texts, or alignments of the pairs.

        Raises:
            DataError: if a text is empty or an annotation does not fit its text; the message names the row.
        """
        if is_table(texts):
            texts = texts_of(texts, pairs=self.pairs, model_columns=self._columns)
        return make_examples(texts, None, annotations, pairs=self.pairs, rule=self.trained.encoder.rule)

    def label_of(self, example: AnyExample) -> Label | None:
        """Return the true label of an example as the user wrote it; None if it has none."""
        if example.label is None:
            return None
        if isinstance(example.label, tuple):
            return _as_written(self._labels(), example.label)
        return float(example.label) if self._classes is None else self._classes[int(example.label)]

    def _labels(self) -> Labels:
        """The numbering of this model's labels."""
        return self.trained.description.labels

    @property
    def _classes(self) -> tuple[Label, ...] | None:
        """`classes_` as Python values, of several labels their names; None for a regression and several targets."""
        description = self.trained.description
        if not description.classes:
            return None
        return tuple(as_label(name, description.label_type) for name in description.classes)

    @property
    def result_form(self) -> dict[str, Any]:
        """The arguments of `drawing.result_columns` that depend on the model."""
        description = self.trained.description
        return {
            "pairs": self.pairs,
            "classes": self._classes,
            "several": description.task == "multi-label",
            "targets": {target.name: target.classes for target in description.targets} or None,
            "separate": description.rationales != "shared",
        }

    @property
    def _columns(self) -> Mapping[str, str]:
        """The names of the columns it was trained on."""
        return self.trained.description.columns


def config_from_params(params: dict[str, Any], *, pairs: bool | None = None) -> Config:
    """Build the config from a user's parameters; a method or budget of None means the default."""
    settings = {name: value for name, value in params.items() if name != "method"}
    if settings.get("budget") is None:
        settings.pop("budget", None)
    else:
        settings["budget"] = Budget.parse(settings["budget"])
    return configure(params.get("method"), settings, pairs=pairs)


def _as_written(scheme: Labels, label: Sequence[Any]) -> Any:
    """The names of the labels that a text has, or the value of each target."""
    if scheme.task == "multi-label":
        return tuple(name for name, has in zip(scheme.classes, label, strict=True) if has)
    return {
        target.name: target.classes[value] if target.classes and value is not None else value
        for target, value in zip(scheme.targets, label, strict=True)
    }
