"""The scikit-learn estimator interface, without importing scikit-learn: what `clone`, pipelines and searches use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rationalizer.data import make_examples
from rationalizer.estimator.model_state import config_from_params
from rationalizer.estimator.predict_methods import PredictMethods
from rationalizer.inference.several_targets import truth_table
from rationalizer.models.config import flat_settings
from rationalizer.plurals import count_of


class ScikitLearnMethods(PredictMethods):
    """Parameters by name and a score, for `Rationalizer`."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters: those passed, and every other setting with its default. `deep` has no effect.

        `fit` does not change them. If `method` or `budget` is None, the kind of data decides; the settings of methods
        are then those of the default method for texts.
        """
        config = config_from_params(self._params, pairs=self._is_for_pairs(self._params))
        return {**flat_settings(config.to_json()), **self._params}

    def set_params(self, **settings: Any) -> Self:
        """Change parameters.

        A trained model follows a new `budget` or new `constraints` at once, unless `method` has been changed since the
        training. All other parameters take effect at the next `fit`. Parameters that have their defaults get those of
        a new `method` or `encoder`.
        """
        params = {**self._chosen_params(self._params), **settings}
        config = config_from_params(params, pairs=self._is_for_pairs(params))
        if self._trained is None:
            self._config = config
        elif params["method"] in (None, self._config.method):
            if "constraints" in settings:  # first, because the fitted method may refuse them
                self.constraints = config.constraints
            if "budget" in settings:
                fitted = {"method": self._config.method, "budget": settings["budget"]}
                self.budget = config_from_params(fitted, pairs=self._config.pairs).budget
        self._params = params
        return self

    def _is_for_pairs(self, params: dict[str, Any]) -> bool | None:
        """True if the model was trained on pairs with this method. Methods for texts may have the same name."""
        return True if self._config.pairs and params["method"] == self._config.method else None

    def _chosen_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Leave out the settings that have the default of their method and encoder.

        `get_params` lists all settings, so a clone gets them all as parameters. Another method or encoder, or pairs of
        texts, have other settings and other defaults.
        """
        pairs = self._is_for_pairs(params)
        base: dict[str, Any] = {
            name: params[name] for name in ("method", "encoder", "objective", "frozen") if name in params
        }
        defaults = flat_settings(config_from_params(base, pairs=pairs).to_json())
        # This default depends on the number of epochs.
        others = {name: value for name, value in params.items() if name != "full_text_epochs"}
        full = flat_settings(config_from_params(others, pairs=pairs).to_json())
        if "full_text_epochs" in full:
            defaults["full_text_epochs"] = full["full_text_epochs"]
        kept = ("budget", "constraints", "encoder")
        return {
            name: value
            for name, value in params.items()
            if name in kept or name not in defaults or value != defaults[name]
        }

    def score(self, texts: Iterable[Any], labels: Iterable[Any], sample_weight: Any = None) -> float:
        """Return the accuracy on labelled texts (or pairs); for a regression, R². For several labels, as in
        scikit-learn, the share of texts whose labels are all correct."""
        if self._labels().names:
            return self._score_several(texts, labels, sample_weight)
        predicted = np.asarray(self.predict(texts))
        truth = list(labels)
        if len(truth) != len(predicted):
            raise ValueError(
                f"got {count_of(len(predicted), 'text')} but {count_of(len(truth), 'label')}; pass one label per text"
            )
        scheme = self._labels()
        values = np.array([scheme.encode(label) for label in truth], dtype=np.float64)
        if self._classes is None:
            spread = np.average((values - np.average(values, weights=sample_weight)) ** 2, weights=sample_weight)
            error = np.average((values - predicted) ** 2, weights=sample_weight)
            return float(1 - error / spread) if spread else float(error == 0)
        numbers = np.array([scheme.encode(label) for label in predicted.tolist()])
        return float(np.average(numbers == values, weights=sample_weight))

    def _score_several(self, texts: Iterable[Any], labels: Any, sample_weight: Any) -> float:
        scheme = self._labels()
        if scheme.task != "multi-label":
            raise ValueError("score is for one label or several yes/no labels; for several targets use evaluate")
        texts = list(texts)
        truth = truth_table(make_examples(texts, labels, scheme=scheme))  # type: ignore[arg-type]
        right = ((self.predict(texts) == truth) | np.isnan(truth)).all(1)
        return float(np.average(right, weights=sample_weight))

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels the model can predict, in the order of `predict_proba`; only a trained classifier has them. For
        several targets a list with the classes of each, None for numbers."""
        if self._trained is not None and self.trained.description.targets:
            found = [
                np.array(target.classes) if target.classes else None for target in self.trained.description.targets
            ]
            return found  # type: ignore[return-value]
        if self._trained is None or self._classes is None:
            raise AttributeError("only a trained classifier has classes_")
        return np.array(self._classes)

    def __sklearn_is_fitted__(self) -> bool:
        return self._trained is not None

    @property
    def _estimator_type(self) -> str:
        # Before `fit` the task is unknown, and "classifier" is safe: scikit-learn stratifies its splits only if the
        # labels are classes, so a search over regressions works too.
        return "classifier" if self._trained is None or self._classes is not None else "regressor"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        classifier = self._estimator_type == "classifier"
        return Tags(
            estimator_type=self._estimator_type,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if classifier else None,
            regressor_tags=None if classifier else RegressorTags(),
            input_tags=InputTags(string=True, two_d_array=False),
        )
