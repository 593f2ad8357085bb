"""The model and the texts of `evaluate` and `audit`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rationalizer.cli.base import warn
from rationalizer.cli.options import TableOptions, resolve_source
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.data import DataSource
    from rationalizer.models import TrainedModel
    from rationalizer.text import AnyExample


def load_trained(folder: Path, budget: str | None, constraints: list[str] | None, device: str) -> TrainedModel:
    """Load a model, with another budget or other constraints if these are given."""
    from rationalizer.models import TrainedModel

    trained = TrainedModel.load(folder, device)
    if budget is not None:
        trained = trained.with_budget(budget)
    return trained.with_constraints(constraints) if constraints else trained


def find_data(
    run: Path,
    stored: DataSource | None,
    source: str | None,
    reading: TableOptions,
    data_dir: Path | str | None,
    aspect: str | None,
) -> DataSource:
    """Return the data that the command line describes, or else those that the model was trained on (`stored`)."""
    if source is not None:
        return resolve_source(source, reading, data_dir, aspect)
    if reading.is_set() or data_dir or aspect:
        raise ValueError("--data-dir, --aspect, --column and similar options describe a SOURCE; add a SOURCE")
    if stored is None:
        raise ValueError(f"{run} does not record its training data; add a SOURCE")
    return stored


def read_scored_examples(
    trained: TrainedModel, data: DataSource, split: str | None, *, whole_file: bool
) -> tuple[str, Sequence[AnyExample], Sequence[AnyExample]]:
    """Return the name of the split to score, its examples, and the training texts of the same data; with `whole_file`,
    all rows of a file and none."""
    from dataclasses import replace

    from rationalizer.data import BadRows, pick_split, read_examples
    from rationalizer.text import DataError

    if data.is_file and whole_file:
        if split is not None:
            raise ValueError(f"all rows of the file {data.source} are scored; omit --split")
        bad = BadRows(skip=data.options.skip_bad)
        rows = read_examples(
            data.source,
            columns=data.options.columns,
            model_columns=trained.description.columns,
            labels=trained.description.labels,
            rule=trained.encoder.rule,
            dialect=data.options.dialect,
            bad=bad,
        )
        warn(bad.messages())
        return "all rows", rows, ()
    corpus = data.load(trained.encoder.rule, on_progress=show_progress)
    chosen, examples = pick_split(corpus, split)
    if corpus.targets != trained.description.targets:
        both = (trained.description.targets, corpus.targets)
        own, other = (", ".join(one.name for one in each) or "one label" for each in both)
        raise DataError(f"the model predicts {own}, but {data.name} has {other}; choose other data")
    if corpus.task != trained.task:
        raise DataError(f"the model's task is {trained.task}, but that of {data.name} {corpus.task}; choose other data")
    if len(corpus.classes) == 1 and corpus.task == "classification":  # no label to predict, only annotations to score
        return chosen, [replace(example, label=None) for example in examples], ()
    if sorted(corpus.classes) != sorted(trained.classes):
        own, other = (", ".join(classes) or "numbers" for classes in (trained.classes, corpus.classes))
        raise DataError(f"the model predicts {own}, but the labels of {data.name} are {other}; choose other data")
    if corpus.classes != trained.classes:  # the same classes in another order
        index = {k: trained.classes.index(name) for k, name in enumerate(corpus.classes)}
        if corpus.task == "multi-label":
            order = sorted(index, key=index.__getitem__)
            return chosen, [replace(one, label=tuple(one.label[k] for k in order)) for one in examples], ()
        examples = [replace(example, label=index[example.label]) for example in examples]
        return chosen, examples, ()
    return chosen, examples, corpus.train


def read_training_examples(
    trained: TrainedModel, stored: DataSource | None, folder: Path
) -> Sequence[AnyExample] | None:
    """Read the training texts of a run again, for baselines; None if they are not there any more, or have changed."""
    from rationalizer.training.runs import read_digest

    if stored is None:
        return None
    try:
        corpus = stored.load(trained.encoder.rule)
    except (ValueError, OSError, ImportError) as error:
        warn([f"note: the training texts cannot be read ({error}), so simple baselines are not shown"])
        return None
    if corpus.digest != read_digest(folder):
        warn([f"note: {stored.name} has changed since the training, so simple baselines are not shown"])
        return None
    return corpus.train
