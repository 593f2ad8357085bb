"""Save, load and share a model: its files and its model card, for `Rationalizer`."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any, Self

from rationalizer.drawing import AnyExplanation
from rationalizer.estimator.explain_methods import ExplainMethods
from rationalizer.hub import hub_client as hub
from rationalizer.hub import locate, write_card
from rationalizer.hub.publishing import (
    kept_private_data,
    record_without_private_data,
    remove_paths_from_encoder,
    without_private_data,
)
from rationalizer.models.atomic_files import write_record
from rationalizer.models.config import flat_settings
from rationalizer.models.trained_model import TrainedModel
from rationalizer.text import is_punctuation
from rationalizer.training.runs import SCORES, RunRecord, read_run_record

# The default example on a model card; not taken from any dataset.
TEXT = "The room was spotless but the staff was rude."
PAIR = ("A man plays a guitar on the street.", "A musician performs outside.")


class SavingMethods(ExplainMethods):
    """`save`, `load` and `push_to_hub`."""

    def save(self, directory: str | Path, *, example: Any = None, compact: bool = False) -> None:
        """Write the model and its card, `README.md`: data, scores, budget, limitations, an example.

        The folder stays usable on this machine, so it keeps what it needs there: the settings with the paths of local
        word vectors and encoders, the path of the training data (in `scores.json`, if the run had a folder), the words
        of the training texts (in the vocabulary), and six dev texts in `examples.json` for the web page, unless the
        model was trained with `keep_examples=0`. A Python warning says what was kept. `push_to_hub` sends neither paths
        nor texts.

        Args:
            directory: the folder to write to; created if necessary.
            example: a text, or a (premise, hypothesis) tuple, to be drawn on the card. By default a sentence that
                comes from no dataset, if the model knows its words.
            compact: save space: round weights to 16 and 8 bits, and do not copy the word vectors of the package.
        """
        self._write(Path(directory), self.trained, self._record, None, example, compact)
        if kept := kept_private_data(self.trained, self._record):
            warnings.warn(kept, stacklevel=2)

    def push_to_hub(
        self,
        name: str,
        *,
        private: bool = False,
        revision: str | None = None,
        token: str | None = None,
        example: Any = None,
        compact: bool = False,
        include_examples: bool = False,
    ) -> str:
        """Save the model to the Hugging Face Hub (extra `hub`), from where `Rationalizer.load(name)` loads it.

        Texts, the name and path of the data, and other local paths are not sent; of the paths of word vectors and of a
        pretrained encoder, only the last component is. The vocabulary is part of the model and holds the single words
        of the training texts.

        Args:
            name: "org/name"; the repository is created if necessary.
            private: whether a newly created repository is private.
            revision: the branch to push to, if not the main one.
            token: an access token, if not the one of `hf auth login` or HF_TOKEN.
            example, compact: see `save`.
            include_examples: also send `examples.json`, six dev texts to try on the web page.

        Returns:
            The URL of the commit.
        """
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            record = None if self._record is None else record_without_private_data(self._record)
            trained = without_private_data(self.trained, include_examples=include_examples)
            self._write(folder, trained, record, name, example, compact)
            remove_paths_from_encoder(folder)
            return hub.push(folder, name, private=private, revision=revision, token=token)

    def _write(
        self,
        folder: Path,
        trained: TrainedModel,
        record: RunRecord | None,
        name: str | None,
        example: Any,
        compact: bool,
    ) -> None:
        trained.save(folder, compact=compact)
        if record is not None:
            write_record(folder / SCORES, record)
        write_card(folder, trained, name=name, record=record, example=self._card_example(example))

    def _card_example(self, example: Any) -> AnyExplanation | None:
        if example is not None:
            return self.explain([example])[0]
        (default,) = self.examples([PAIR if self.pairs else TEXT])
        words = [word for text in default.texts for word in text.tokens if not is_punctuation(word)]
        return (
            self.explain_examples([default], reasons=None)[0] if all(map(self.trained.encoder.knows, words)) else None
        )

    @classmethod
    def load(cls, model: str | Path, device: str = "auto", *, revision: str | None = None) -> Self:
        """Load a model from a folder, from the package (a starter model) or from the Hugging Face Hub.

        Args:
            model: a folder; "sentiment", "nli" or "align"; or "org/name" (extra `hub`).
            device: "cpu", "cuda", "cuda:1", "mps"; or "auto", a GPU if available.
            revision: for a model of the Hub, a branch, tag or commit; "org/name@revision" means the same.
        """
        folder = locate(model, revision)
        loaded = cls.from_trained(TrainedModel.load(folder, device))
        loaded._record = read_run_record(folder)
        return loaded

    @classmethod
    def from_trained(cls, trained: TrainedModel) -> Self:
        """Wrap a trained model, such as the result of `training.run`."""
        model = cls.__new__(cls)
        model._params = {"method": trained.config.method, **flat_settings(trained.config.to_json())}
        model._config = model._own_config = trained.config
        model._trained = trained
        model._record = None
        return model
