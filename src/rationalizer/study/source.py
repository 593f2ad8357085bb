"""Where a run's texts come from, in words that can be kept beside the run and read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from rationalizer.data import DATASETS, EMBEDDED, Columns, Corpus, DataError, holds_pairs, load, with_hans
from rationalizer.data.corpus import PAIR_BUDGET, TEXT_BUDGET
from rationalizer.data.tables import stem

SEED = 0  # of what is held out for dev: runs with other seeds learn from the same texts


@dataclass(frozen=True)
class Source:
    """A dataset by name ("reviews" and "pairs" are the embedded ones), a file or a folder, and how to read it."""

    source: str
    data_dir: str | None = None
    aspect: str | None = None
    columns: tuple[tuple[str, str], ...] = ()  # (what it holds, its name in the file)
    hans: str | None = None  # a copy of HANS (empty: the Hub's) whose training pairs are added

    @classmethod
    def of(
        cls,
        source: str,
        data_dir: str | Path | None = None,
        aspect: str | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Source:
        known = [field.name for field in fields(Columns)]
        for key in columns or {}:
            if key not in known:
                close = get_close_matches(key, known, n=1)
                guess = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
                raise ValueError(f"there is no column {key!r} to name; {guess}")
        if source.lower() in (*EMBEDDED, *DATASETS):
            source = source.lower()
        elif Path(source).exists():
            source = str(Path(source).absolute())
        return cls(
            source=source,
            data_dir=None if data_dir is None else str(Path(data_dir).absolute()),
            aspect=aspect,
            columns=tuple(sorted((columns or {}).items())),
        )

    @property
    def dataset(self) -> str | None:
        """The name of a dataset of the paper (presets go by it), None for other texts."""
        return self.source if self.source in DATASETS else None

    @property
    def name(self) -> str:
        """A short name for folders and tables; the aspect is part of it."""
        base, aspect = self.source, self.aspect
        if self.dataset is not None and aspect is None:
            aspect = next(iter(DATASETS[self.dataset].aspects), None)
        elif self.dataset is None and base not in EMBEDDED:
            base = stem(Path(base)) if self.is_file else Path(base).name
        name = base if aspect is None else f"{base}-{aspect}"
        return name if self.hans is None else f"{name}-hans"

    @property
    def is_file(self) -> bool:
        return Path(self.source).is_absolute() and Path(self.source).is_file()

    @property
    def budget(self) -> float | int:
        if self.dataset is not None:
            return DATASETS[self.dataset].budget
        if self.source in EMBEDDED:
            return self.load().budget
        return PAIR_BUDGET if self.pairs else TEXT_BUDGET

    @property
    def pairs(self) -> bool:
        """Whether the examples are pairs of texts."""
        if self.dataset is not None:
            return DATASETS[self.dataset].pairs
        return self.source == "pairs" if self.source in EMBEDDED else _holds_pairs(self)

    @property
    def renamed(self) -> Columns | None:
        """None for the usual names. A column with an empty name is not used."""
        return Columns(**{kind: name or None for kind, name in self.columns}) if self.columns else None

    def load(self) -> Corpus:
        return _load(self)

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "data_dir": self.data_dir,
            "aspect": self.aspect,
            "columns": dict(self.columns),
            "hans": self.hans,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Source:
        columns = tuple(sorted(stored["columns"].items()))
        return cls(stored["source"], stored["data_dir"], stored["aspect"], columns, stored.get("hans"))


@lru_cache
def _holds_pairs(source: Source) -> bool:
    return Path(source.source).exists() and holds_pairs(source.source, source.renamed)


@lru_cache(maxsize=1)  # the runs on one dataset follow each other
def _load(source: Source) -> Corpus:
    if source.hans is not None:  # the corpus without HANS was often the one before
        return with_hans(_load(replace(source, hans=None)), load("hans", data_dir=source.hans or None))
    return load(source.source, data_dir=source.data_dir, aspect=source.aspect, columns=source.renamed, seed=SEED)


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


def by_source(
    values: Sequence[str] | None, sources: Sequence[str], option: str, *, every: bool = False
) -> dict[str, str]:
    """Values that may be given for one source, as NAME=VALUE. `every`: one without a name is for all sources."""
    found: dict[str, str] = {}
    for value in values or ():
        name, equals, rest = value.partition("=")
        if equals and name in sources:
            found[name] = rest
        elif every or len(sources) == 1:
            found |= {source: value for source in sources if source not in found}
        else:
            raise ValueError(f"there are several sources; write {option} {sources[0]}={value}")
    return found
