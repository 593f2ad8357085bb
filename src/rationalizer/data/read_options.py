"""How files are read: one object that travels from the command line to the row parser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Task
from rationalizer.data.csv_dialect import Dialect
from rationalizer.suggestions import did_you_mean
from rationalizer.text.errors import InputError
from rationalizer.text.word_splitting import SplitRule

# Batches of a file that are read and written together: texts of similar length are then batched together, which needs
# less padding. A larger number gains little.
BATCHES_PER_ROUND = 8

# Called with a title and the number of rows (None if unknown); gives a context whose function takes the rows done.
OnProgress = Callable[[str, int | None], AbstractContextManager[Callable[[int], object]]]


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading users' files.

    Every function that reads files takes a `ReadOptions`, or the same settings as keywords:
    `read_corpus("x.csv", ReadOptions(skip_bad=True))` is `read_corpus("x.csv", skip_bad=True)`.
    A keyword that is None has its default.

    Args:
        columns: the names of the columns.
        task: one of `Task`; by default inferred from the labels (see `labels.infer_labels`). "multi-label" splits cells
            such as "food;service" at ";", "|" and ",".
        classes: the classes in order; by default inferred from the training labels.
        rule: how texts are split into words; by default "words", or "spaces" if the file has tokens.
        dev_fraction: share of train held out for dev if there is no dev file; by default a tenth, at most 20,000 rows.
        seed: chooses the rows held out.
        dialect: delimiter, encoding and header of text files; by default detected.
        skip_bad: leave out rows that cannot be used and list them in `Corpus.skipped`, instead of raising an error that
            names all of them.
        stream: whether the examples stay on disk; by default only for large files.
        cache_dir: where they are kept; by default `~/.cache/rationalizer`.
        on_progress: callback that shows the progress of reading large files.
    """

    columns: Columns = field(default_factory=Columns)
    task: Task | None = None
    classes: tuple[str, ...] | None = None
    rule: SplitRule | None = None
    dev_fraction: float | None = None
    seed: int = 0
    dialect: Dialect = field(default_factory=Dialect)
    skip_bad: bool = False
    stream: bool | None = None
    cache_dir: Path | None = None
    on_progress: OnProgress | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.task not in (None, *get_args(Task)):
            raise InputError(f"task must be one of {', '.join(get_args(Task))}, got {self.task!r}")
        if self.classes is not None:
            object.__setattr__(self, "classes", tuple(self.classes))
        if self.cache_dir is not None:
            object.__setattr__(self, "cache_dir", Path(self.cache_dir))

    @classmethod
    def merge(cls, options: ReadOptions | None, settings: Mapping[str, Any]) -> ReadOptions:
        """Return the options, updated with the settings that are not None."""
        known = [item.name for item in fields(cls)]
        unknown = next((name for name in settings if name not in known), None)
        if unknown is not None:
            raise TypeError(f"unknown option {unknown!r}; {did_you_mean(unknown, known)}")
        return replace(options or cls(), **{name: value for name, value in settings.items() if value is not None})

    def split_rule(self, columns: Columns) -> SplitRule:
        """How texts in these columns are split into words."""
        return self.rule or ("spaces" if columns.are_tokenized else "words")
