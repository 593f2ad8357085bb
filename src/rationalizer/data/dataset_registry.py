"""Datasets that can be loaded by name. A plugin registers each of them (see `rationalizer.discovery`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Corpus, Task
from rationalizer.data.corpus_files import SPLIT_NAMES, SplitNames
from rationalizer.data.labels import Label
from rationalizer.data.table_files import Table
from rationalizer.discovery import PluginRegistry
from rationalizer.text.budget import Budget
from rationalizer.text.word_splitting import SplitRule

SplitTables = dict[str, list[Table]]


@dataclass(frozen=True)
class ReadRequest:
    """What `Dataset.read_original` and `Dataset.prepare` are asked for."""

    aspect: str  # empty if the dataset has no aspects
    columns: Columns  # names that the user gave, else the usual ones
    names: Collection[str]  # of all columns to read
    splits: SplitNames


@dataclass(frozen=True)
class Dataset:
    """How to load a dataset.

    Loading has four steps: `read_original` reads the files as their authors published them (if it returns None, or is
    None, the folder is read like users' files); `prepare` converts each table to the columns of users'
    files; `relabel` maps labels to classes; rows whose label is in `drop_labels` are dropped and counted.

    Args:
        name: lower case, with hyphens.
        classes: class names by index; empty for regression. A single class means that there is nothing to
            predict: models learn from the annotations.
        budget: default budget.
        hub: name on the Hugging Face Hub.
        dev_fraction: share of train that is held out if there is no dev split.
        halve_dev: whether dev is halved into dev and test if there is no test split.
        splits: names of the split files. Without a train split the dataset is for evaluation only.
        rule: how texts are split into words; "spaces" if they are tokenized.
        aspects: the first one is the default.
        label_columns: the first one present is used; `{aspect}` is replaced by the aspect.
        extra_columns: further columns that are read if present; `{aspect}` is replaced.
        drop_labels: labels of unusable rows.
        read_original: reads a folder in the authors' format; returns None if it does not hold their files.
        original_files: names of these files, for error messages.
        prepare: converts a table to the columns of users' files.
        columns: the columns after `prepare`, if it renames them.
        relabel: maps a label to a class.
        pairs: whether the examples are pairs of texts.
        several: whether a text may have several of the classes, or none.
        texts: published number of texts in train and dev; a copy with fewer is called "reduced".
        augment: adds this dataset's training texts to another corpus: `augment(corpus, this)`.
    """

    name: str
    classes: tuple[str, ...] = ()
    budget: Budget = field(default_factory=lambda: Budget.share(0.2))
    hub: str | None = None
    dev_fraction: float = 0.1
    halve_dev: bool = False
    splits: SplitNames = field(default_factory=lambda: SPLIT_NAMES)
    rule: SplitRule | None = None
    aspects: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ("label",)
    extra_columns: tuple[str, ...] = ()
    drop_labels: tuple[Label, ...] = ()
    read_original: Callable[[Path, ReadRequest], SplitTables | None] | None = None
    original_files: str = ""
    prepare: Callable[[Table, ReadRequest], Table] | None = None
    columns: Columns | None = None
    relabel: Callable[[Label], Label] | None = None
    pairs: bool = False
    several: bool = False
    texts: int | None = None
    augment: Callable[[Corpus, Corpus], Corpus] | None = None

    @property
    def task(self) -> Task:
        if self.several:
            return "multi-label"
        return "classification" if self.classes else "regression"


DATASETS: PluginRegistry[Dataset] = PluginRegistry("dataset")

# Published results to print beside our own, by dataset and aspect ("hotels-location"):
# (measure, method, variant) -> (mean, minimum, maximum). Measures as in `Metric.paper`.
PublishedFigures = Mapping[tuple[str, str, str | None], tuple[float, float, float]]
PUBLISHED: PluginRegistry[PublishedFigures] = PluginRegistry("published result")


def register_dataset(dataset: Dataset) -> Dataset:
    """Make a dataset known by its name."""
    return DATASETS.register(dataset.name)(dataset)


def find_dataset(name: str | None) -> Dataset | None:
    """Return the dataset of a name that may end with an aspect, such as "hotels-location"; None if there is none.

    The longest match wins: beer-binary is a dataset, not an aspect of beer.
    """
    if name is None:
        return None
    matching = (known for known in DATASETS if f"{name}-".startswith(f"{known}-"))
    return DATASETS.get(max(matching, key=len, default=""))
