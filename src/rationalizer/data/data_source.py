"""Where a run's texts come from, in words that can be kept beside the run and read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast, get_args

from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Corpus, Task, default_budget
from rationalizer.data.corpus_files import holds_pairs
from rationalizer.data.csv_dialect import Dialect
from rationalizer.data.dataset_registry import DATASETS
from rationalizer.data.loading import GENERATED, load
from rationalizer.data.read_options import OnProgress
from rationalizer.data.streaming import is_large
from rationalizer.data.table_files import stem
from rationalizer.suggestions import did_you_mean
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError
from rationalizer.text.word_splitting import SplitRule

NOTE = "note.txt"  # in a folder of texts: what a reader of results must know of them
SEED = 0  # of what is held out for dev: runs with other seeds learn from the same texts


@dataclass(frozen=True)
class DataSource:
    """A dataset by name ("reviews", "stays" and "pairs" are embedded), a file or a folder, and how to read it."""

    source: str
    data_dir: str | None = None
    aspect: str | None = None
    columns: tuple[tuple[str, str], ...] = ()  # (what it holds, its name in the file)
    task: Task | None = None  # where the labels leave it open
    dialect: Dialect | None = None  # how text files are written, where it is given
    skip_bad: bool = False  # whether rows that cannot be used are left out
    hans: str | None = None  # a copy of HANS (empty: the Hub's) whose training pairs are added
    # Whether files stay on disk (None: large ones do), and where if not in the usual place. The texts are the same.
    stream: bool | None = field(default=None, compare=False)
    cache_dir: str | None = field(default=None, compare=False)

    @classmethod
    def resolve(
        cls,
        source: str,
        data_dir: str | Path | None = None,
        aspect: str | None = None,
        columns: Mapping[str, str] | None = None,
        *,
        task: str | None = None,
        dialect: Dialect | None = None,
        skip_bad: bool = False,
        stream: bool | None = None,
        cache_dir: str | Path | None = None,
    ) -> DataSource:
        known = [each.name for each in fields(Columns)]
        for key in columns or {}:
            if key not in known:
                raise ValueError(f"there is no column {key!r} to name; {did_you_mean(key, known)}")
        if source.lower() in (*GENERATED, *DATASETS):
            source = source.lower()
        elif Path(source).exists():
            source = str(Path(source).absolute())
        return cls(
            source=source,
            data_dir=None if data_dir is None else str(Path(data_dir).absolute()),
            aspect=aspect,
            columns=tuple(sorted((columns or {}).items())),
            task=_task(task),
            dialect=None if dialect == Dialect() else dialect,
            skip_bad=skip_bad,
            stream=stream,
            cache_dir=None if cache_dir is None else str(Path(cache_dir).absolute()),
        )

    @property
    def dataset(self) -> str | None:
        """The name of a dataset of the literature (presets go by it), None for other texts."""
        return self.source if self.source in DATASETS else None

    @property
    def name(self) -> str:
        """A short name for folders and tables; the aspect is part of it."""
        base, aspect = self.source, self.aspect
        if self.dataset is not None and aspect is None:
            aspect = next(iter(DATASETS[self.dataset].aspects), None)
        elif self.dataset is None and base not in GENERATED:
            base = stem(Path(base)) if self.is_file else Path(base).name
        name = base if aspect is None else f"{base}-{aspect}"
        return name if self.hans is None else f"{name}-hans"

    @property
    def is_file(self) -> bool:
        return Path(self.source).is_absolute() and Path(self.source).is_file()

    @property
    def budget(self) -> Budget:
        if self.dataset is not None:
            return DATASETS[self.dataset].budget
        if self.source in GENERATED:
            return self.load().budget
        return default_budget(pairs=self.pairs)

    @property
    def pairs(self) -> bool:
        """Whether the examples are pairs of texts."""
        if self.dataset is not None:
            return DATASETS[self.dataset].pairs
        return self.source == "pairs" if self.source in GENERATED else _holds_pairs(self)

    @property
    def column_names(self) -> Columns | None:
        """None for the usual names. A column with an empty name is not used."""
        return Columns(**{kind: name or None for kind, name in self.columns}) if self.columns else None

    def load(self, rule: SplitRule | None = None, on_progress: OnProgress | None = None) -> Corpus:
        """Load the corpus, its texts split into words by `rule` (default: as the data requires). `on_progress` reports
        progress on large files."""
        if self.streams:  # the cache on disk remembers it
            return _loaded(self, rule, on_progress)
        return _load(self, rule, self._stamps())

    @property
    def streams(self) -> bool:
        """Whether the texts stay on disk."""
        if self.source in (*GENERATED, *DATASETS) or not Path(self.source).exists():
            return bool(self.stream)
        return is_large(self.source) if self.stream is None else self.stream

    @property
    def path(self) -> Path | None:
        """The file or folder that the texts are in; None where they come from the package or from the Hub."""
        if self.data_dir is not None:
            return Path(self.data_dir)
        return Path(self.source) if Path(self.source).is_absolute() else None

    def note(self, rule: SplitRule | None = None) -> str:
        """What a reader of results must know of this copy of a dataset: what its folder says in a file `note.txt`, as
        "rebuilt", or that it has fewer texts than were published. Empty where there is nothing to say."""
        told = None if self.path is None else self.path / NOTE
        if told is not None and told.is_file():
            return " ".join(told.read_text(encoding="utf-8").split())
        published = None if self.dataset is None else DATASETS[self.dataset].texts
        if published is None:
            return ""
        corpus = self.load(rule)
        there = len(corpus.train) + len(corpus.dev) + sum(corpus.dropped.get(split, 0) for split in ("train", "dev"))
        return f"reduced to {there / published:.0%} of its texts" if there < published else ""

    def _stamps(self) -> tuple[tuple[str, int, int], ...]:
        """What tells whether the files have changed since they were read."""
        if self.path is None or not self.path.exists():
            return ()
        files = sorted(self.path.rglob("*")) if self.path.is_dir() else [self.path]
        return tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files if path.is_file())

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "data_dir": self.data_dir,
            "aspect": self.aspect,
            "columns": dict(self.columns),
            "task": self.task,
            "dialect": None if self.dialect is None else self.dialect.to_json(),
            "skip_bad": self.skip_bad,
            "hans": self.hans,
            "stream": self.stream,
            "cache_dir": self.cache_dir,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> DataSource:
        columns = tuple(sorted(stored["columns"].items()))
        dialect = None if stored["dialect"] is None else Dialect(**stored["dialect"])
        return cls(
            stored["source"],
            stored["data_dir"],
            stored["aspect"],
            columns,
            stored["task"],
            dialect,
            stored["skip_bad"],
            stored["hans"],
            stored.get("stream"),
            stored.get("cache_dir"),
        )


@lru_cache
def _holds_pairs(source: DataSource) -> bool:
    return Path(source.source).exists() and holds_pairs(source.source, source.column_names, source.dialect)


def _task(name: str | None) -> Task | None:
    if name is not None and name not in get_args(Task):
        raise ValueError(f"there is no task {name!r}; known are {', '.join(get_args(Task))}")
    return cast("Task | None", name)


@lru_cache(maxsize=1)  # the runs on one dataset follow each other
def _load(source: DataSource, rule: SplitRule | None, stamps: tuple[tuple[str, int, int], ...]) -> Corpus:
    if source.hans is not None:  # the corpus without HANS was often the one before
        augment = DATASETS["hans"].augment
        assert augment is not None
        hans = load("hans", data_dir=source.hans or None, rule=rule)
        return augment(replace(source, hans=None).load(rule), hans)
    return _loaded(source, rule, None)


def _loaded(source: DataSource, rule: SplitRule | None, on_progress: OnProgress | None) -> Corpus:
    return load(
        source.source,
        data_dir=source.data_dir,
        aspect=source.aspect,
        columns=source.column_names,
        task=source.task,
        rule=rule,
        seed=SEED,
        dialect=source.dialect,
        skip_bad=source.skip_bad,
        stream=source.stream,
        cache_dir=source.cache_dir,
        on_progress=on_progress,
    )


def pick_split(corpus: Corpus, split: str | None) -> tuple[str, Sequence[Any]]:
    """The split asked for, or without a wish the test split, or dev where there is none."""
    splits = {"train": corpus.train, "dev": corpus.dev, "test": corpus.test}
    if split is None:
        split = "test" if corpus.test else "dev"
    if split not in splits:
        raise ValueError(f"there is no split {split!r}; known are {', '.join(splits)}")
    if not splits[split]:
        there = ", ".join(name for name, examples in splits.items() if examples)
        raise DataError(f"{corpus.name} has no {split} split; it has {there}")
    return split, splits[split]
