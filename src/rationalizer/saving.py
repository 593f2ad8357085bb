"""A user's model as files: saved with its card, loaded, shared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rationalizer.drawing import AnyExplanation, Explanations
from rationalizer.hub import hub_client as hub
from rationalizer.hub import locate, write_card
from rationalizer.models.atomic_files import write_record
from rationalizer.models.config import flat_settings
from rationalizer.models.devices import check_device
from rationalizer.models.trained_model import TrainedModel
from rationalizer.sklearn_api import Estimator
from rationalizer.text import AnyExample, is_punctuation
from rationalizer.training.runs import SCORES, RunRecord, read_run_record

# What a card shows without a wish: sentences of nobody's data.
TEXT = "The room was spotless but the staff was rude."
PAIR = ("A man plays a guitar on the street.", "A musician performs outside.")


class Saved(Estimator):
    """What can be kept, sent and had again; `Rationalizer` does the rest."""

    _record: RunRecord | None  # of the run that it comes from

    def save(self, directory: str | Path, *, example: Any = None, compact: bool = False) -> None:
        """Writes the model and its card, `README.md`: data, scores, budget, limits, an example.

        Args:
            directory: where to; made if need be.
            example: a text, or a (premise, hypothesis) tuple, to be drawn on the card. By default a sentence that is
                in nobody's data, if the model knows its words.
            compact: in less space: weights are rounded to 16 and 8 bits, and the package's word vectors not copied.
        """
        self._save(Path(directory), None, example, compact)

    def push_to_hub(
        self,
        name: str,
        *,
        private: bool = False,
        revision: str | None = None,
        token: str | None = None,
        example: Any = None,
        compact: bool = False,
    ) -> str:
        """Saves the model to the Hugging Face Hub (extra `hub`), where `Rationalizer.load(name)` finds it.

        Args:
            name: "org/name"; the repository is made if there is none.
            private: whether one that is made is seen by its owners only.
            revision: the branch to send to, if not the main one.
            token: of the Hub, if not the one of `hf auth login` or HF_TOKEN.
            example, compact: see `save`.

        Returns:
            The address of what was sent.
        """
        with tempfile.TemporaryDirectory() as folder:
            self._save(Path(folder), name, example, compact)
            return hub.push(Path(folder), name, private=private, revision=revision, token=token)

    def _save(self, folder: Path, name: str | None, example: Any, compact: bool) -> None:
        self.trained.save(folder, compact=compact)
        if self._record is not None:
            record = self._record
            if name is not None:  # it travels: without the place of the data, a path of this machine
                record = {**record, "data": {**record["data"], "source": None}}
            write_record(folder / SCORES, record)
        drawn = self._example(example)
        write_card(folder, self.trained, name=name, record=self._record, example=drawn)

    def _example(self, given: Any) -> AnyExplanation | None:
        if given is not None:
            return self.explain([given])[0]
        (usual,) = self._examples([PAIR if self.pairs else TEXT])
        words = [word for text in usual.texts for word in text.tokens if not is_punctuation(word)]
        return self.explain_examples([usual])[0] if all(map(self.trained.encoder.knows, words)) else None

    @classmethod
    def load(cls, model: str | Path, device: str = "cpu", *, revision: str | None = None) -> Self:
        """A model that was saved or trained, one that comes with the package, or one of the Hugging Face Hub.

        Args:
            model: a folder; "sentiment" or "nli"; or "org/name" (extra `hub`).
            device: as of `fit`.
            revision: of a model of the Hub: a branch, tag or commit; also as "org/name@revision".
        """
        folder = locate(model, revision)
        loaded = cls.of(TrainedModel.load(folder, check_device(device)))
        loaded._record = read_run_record(folder)
        return loaded

    @classmethod
    def of(cls, trained: TrainedModel) -> Self:
        model = cls.__new__(cls)
        model._given = {"method": trained.config.method, **flat_settings(trained.config.to_json())}
        model._config = trained.config
        model._trained = trained
        model._record = None
        return model

    if TYPE_CHECKING:

        @property
        def pairs(self) -> bool: ...

        def explain(self, texts: Any) -> Any: ...

        def explain_examples(self, examples: Sequence[AnyExample]) -> Explanations: ...

        def _examples(self, texts: Iterable[Any]) -> Sequence[AnyExample]: ...
