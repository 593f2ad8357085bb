"""The habits of scikit-learn's estimators, without the library: what `clone`, pipelines and searches ask for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rationalizer.data.labels import Labels
from rationalizer.models.config import Config, configure
from rationalizer.text import Budget

if TYPE_CHECKING:
    from rationalizer.drawing import Label
    from rationalizer.models.trained_model import TrainedModel


class Estimator:
    """Settings that can be asked for and changed by name, and a score; `Rationalizer` does the rest."""

    # As the user gave them: scikit-learn's `clone` insists on the very same objects.
    _given: dict[str, Any]
    _config: Config
    _trained: TrainedModel | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings that were given, `method` and `budget` always among them. `deep` changes nothing."""
        return dict(self._given)

    def set_params(self, **settings: Any) -> Self:
        """Changes settings, for the next `fit`; a trained model goes on as it is (but see `budget`)."""
        given = {**self._given, **settings}
        config = configured(given)
        self._given = given
        if self._trained is None:
            self._config = config
        return self

    def score(self, texts: Iterable[Any], labels: Iterable[Any], sample_weight: Any = None) -> float:
        """The accuracy on texts (or pairs) with known labels; for a regression R², 1 at best, 0 for the mean."""
        found = np.asarray(self.predict(texts))
        truth = list(labels)
        if len(truth) != len(found):
            raise ValueError(f"there are {len(found)} texts but {len(truth)} labels; give one each")
        scheme = self._labels()
        values = np.array([scheme.encode(label) for label in truth], dtype=np.float64)
        if self.classes is None:
            spread = np.average((values - np.average(values, weights=sample_weight)) ** 2, weights=sample_weight)
            error = np.average((values - found) ** 2, weights=sample_weight)
            return float(1 - error / spread) if spread else float(error == 0)
        numbers = np.array([scheme.encode(label) for label in found.tolist()])
        return float(np.average(numbers == values, weights=sample_weight))

    def _labels(self) -> Labels:
        """How this model's labels are numbered."""
        description = self.trained.description
        return Labels(description.task, description.classes)

    @property
    def classes_(self) -> NDArray[Any]:
        """`classes` as an array, in the order of `predict_proba`'s columns; only a trained classifier has it."""
        if self._trained is None or self.classes is None:
            raise AttributeError("only a trained classifier has classes_")
        return np.array(self.classes)

    def __sklearn_is_fitted__(self) -> bool:
        return self._trained is not None

    @property
    def _estimator_type(self) -> str:
        # Before there are labels it is taken for a classifier. scikit-learn stratifies by labels only if they are
        # classes, so that a search over regressions goes as it should.
        return "classifier" if self._trained is None or self.classes is not None else "regressor"

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

    if TYPE_CHECKING:

        @property
        def trained(self) -> TrainedModel: ...

        @property
        def classes(self) -> tuple[Label, ...] | None: ...

        def predict(self, texts: Iterable[Any]) -> NDArray[Any]: ...


def configured(given: dict[str, Any], *, pairs: bool | None = None) -> Config:
    """The config of settings as a user gives them: a method or a budget of None is the usual one."""
    settings = {name: value for name, value in given.items() if name != "method"}
    if settings.get("budget") is None:
        settings.pop("budget", None)
    else:
        settings["budget"] = Budget.parse(settings["budget"])
    return configure(given.get("method"), settings, pairs=pairs)
