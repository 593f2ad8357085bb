"""The data source of a run, as a value that can be stored with the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Corpus, default_budget
from rationalizer.data.corpus_files import holds_pairs
from rationalizer.data.csv_dialect import Dialect
from rationalizer.data.dataset_registry import DATASETS
from rationalizer.data.file_content import stem
from rationalizer.data.loading import GENERATED, load
from rationalizer.data.read_options import OnProgress, ReadOptions
from rationalizer.data.streaming import is_large
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError
from rationalizer.text.word_splitting import SplitRule

NOTE = "note.txt"  # in a folder of data: a remark for readers of results


@dataclass(frozen=True)
class DataSource:
    """A generated corpus or a dataset by name, a file or a folder, and how to read it.

    The seed of `options` stays 0: runs with different seeds learn from the same texts.
    """

    source: str
    data_dir: str | None = None
    aspect: str | None = None
    hans: str | None = None  # folder with a copy of HANS (empty: download from the Hub); its training pairs are added
    options: ReadOptions = field(default_factory=ReadOptions)

    @classmethod
    def resolve(
        cls,
        source: str,
        data_dir: str | Path | None = None,
        aspect: str | None = None,
        options: ReadOptions | None = None,
        **settings: Any,
    ) -> DataSource:
        """Make paths absolute and check the options.

        Args:
            source: name or path.
            data_dir: a dataset's local copy.
            aspect: the aspect of a dataset.
            options: how to read files.
            settings: fields of `options`.
        """
        if source.lower() in (*GENERATED, *DATASETS):
            source = source.lower()
        elif Path(source).exists():
            source = str(Path(source).absolute())
        options = ReadOptions.merge(options, settings)
        if options.cache_dir is not None:
            options = replace(options, cache_dir=options.cache_dir.absolute())
        return cls(source, None if data_dir is None else str(Path(data_dir).absolute()), aspect, options=options)

    @property
    def dataset(self) -> str | None:
        """The name of a registered dataset (presets are chosen by it); None for other data."""
        return self.source if self.source in DATASETS else None

    @property
    def name(self) -> str:
        """A short name for folders and tables; includes the aspect."""
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

    def load(self, rule: SplitRule | None = None, on_progress: OnProgress | None = None) -> Corpus:
        """Load the corpus, its texts split into words by `rule` (default: as the data requires). `on_progress` reports
        progress on large files."""
        if self.streams:  # through the cache on disk
            options = replace(self.options, rule=rule, on_progress=on_progress)
            return load(self.source, options, data_dir=self.data_dir, aspect=self.aspect)
        return _load(self, rule, self._file_stamps())

    @property
    def streams(self) -> bool:
        """Whether the texts stay on disk."""
        stream = self.options.stream
        if self.source in (*GENERATED, *DATASETS) or not Path(self.source).exists():
            return bool(stream)
        return is_large(self.source) if stream is None else stream

    @property
    def path(self) -> Path | None:
        """The file or folder with the data; None for generated data and data from the Hub."""
        if self.data_dir is not None:
            return Path(self.data_dir)
        return Path(self.source) if Path(self.source).is_absolute() else None

    def note(self, rule: SplitRule | None = None) -> str:
        """Return a remark on this copy of a dataset: the content of `note.txt` in its folder, such as "rebuilt", or
        that it has fewer texts than were published; else an empty string."""
        file = None if self.path is None else self.path / NOTE
        if file is not None and file.is_file():
            return " ".join(file.read_text(encoding="utf-8").split())
        published = None if self.dataset is None else DATASETS[self.dataset].texts
        if published is None:
            return ""
        corpus = self.load(rule)
        count = len(corpus.train) + len(corpus.dev) + sum(corpus.dropped.get(split, 0) for split in ("train", "dev"))
        return f"reduced to {count / published:.0%} of its texts" if count < published else ""

    def _file_stamps(self) -> tuple[tuple[str, int, int], ...]:
        """Paths, times and sizes of the files: they differ after a file has changed."""
        if self.path is None or not self.path.exists():
            return ()
        files = sorted(self.path.rglob("*")) if self.path.is_dir() else [self.path]
        return tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files if path.is_file())

    def to_json(self) -> dict[str, Any]:
        options = self.options
        return {
            "source": self.source,
            "data_dir": self.data_dir,
            "aspect": self.aspect,
            "columns": options.columns.renamed(),
            "task": options.task,
            "dialect": None if options.dialect == Dialect() else options.dialect.to_json(),
            "skip_bad": options.skip_bad,
            "hans": self.hans,
            "stream": options.stream,
            "cache_dir": None if options.cache_dir is None else str(options.cache_dir),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> DataSource:
        settings = {key: stored.get(key) for key in ("task", "skip_bad", "stream", "cache_dir")}
        settings["columns"] = Columns.from_names(stored["columns"])
        settings["dialect"] = None if stored["dialect"] is None else Dialect(**stored["dialect"])
        options = ReadOptions.merge(None, settings)
        return cls(stored["source"], stored["data_dir"], stored["aspect"], stored["hans"], options)


@lru_cache
def _holds_pairs(source: DataSource) -> bool:
    options = source.options
    return Path(source.source).exists() and holds_pairs(source.source, options.columns, options.dialect)


@lru_cache(maxsize=1)  # runs on the same data follow each other
def _load(source: DataSource, rule: SplitRule | None, stamps: tuple[tuple[str, int, int], ...]) -> Corpus:
    if source.hans is not None:  # the corpus without HANS is often in the cache
        augment = DATASETS["hans"].augment
        assert augment is not None
        hans = load("hans", data_dir=source.hans or None, rule=rule)
        return augment(replace(source, hans=None).load(rule), hans)
    return load(source.source, replace(source.options, rule=rule), data_dir=source.data_dir, aspect=source.aspect)


def pick_split(corpus: Corpus, split: str | None) -> tuple[str, Sequence[Any]]:
    """Return the name and the examples of a split; default: test, or dev if there is no test split."""
    splits = {"train": corpus.train, "dev": corpus.dev, "test": corpus.test}
    if split is None:
        split = "test" if corpus.test else "dev"
    if split not in splits:
        raise ValueError(f"there is no split {split!r}; choose from {', '.join(splits)}")
    if not splits[split]:
        present = ", ".join(name for name, examples in splits.items() if examples)
        raise DataError(f"{corpus.name} has no {split} split", f"it has {present}")
    return split, splits[split]
