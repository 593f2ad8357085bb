"""The one door to every source of data: datasets of the literature, users' own files, embedded corpora."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Corpus, Task
from rationalizer.data.corpus_files import assemble, read_corpus, read_splits
from rationalizer.data.csv_dialect import Dialect
from rationalizer.data.dataset_registry import DATASETS, Dataset, ReadRequest, SplitTables
from rationalizer.data.generated_pairs import generated_pairs
from rationalizer.data.generated_reviews import generated_reviews
from rationalizer.data.generated_stays import generated_stays
from rationalizer.data.labels import Label, plain
from rationalizer.data.read_options import OnProgress, ReadOptions
from rationalizer.data.splitting import split_off_dev
from rationalizer.data.streaming import is_large, stream_corpus
from rationalizer.data.table_files import Row, Table
from rationalizer.suggestions import closest, did_you_mean
from rationalizer.text.errors import DataError
from rationalizer.text.word_splitting import SplitRule

GENERATED: dict[str, Callable[..., Corpus]] = {
    "reviews": generated_reviews,
    "stays": generated_stays,
    "pairs": generated_pairs,
}


def load_dataset(
    name: str,
    data_dir: str | Path | None = None,
    *,
    aspect: str | None = None,
    columns: Columns | None = None,
    rule: SplitRule | None = None,
    dev_fraction: float | None = None,
    seed: int = 0,
) -> Corpus:
    """Load a dataset by name, with its task, classes, budget and splits.

    "beer-binary" is Beer with classes instead of ratings: positive from 0.6, negative up to 0.4, others dropped. The
    annotations of "hatexplain" are what any annotator marked; `Columns(rationale_mask="rationale_majority")` uses what
    more than half of them marked. Each pair of HANS has its heuristic as `group`; `Columns(group="subcase")` uses the
    subcases.

    Args:
        name: see `DATASETS`.
        data_dir: a local copy, in the authors' format or as users' own files (see `read_corpus`; one aspect, in the
            column `label`, or for Beer in a column named after it). None: download it from the Hub.
        aspect: of Beer and Hotels.
        columns: names of the columns, if not the usual ones.
        rule: how texts are split into words.
        dev_fraction: share of train to hold out if there is no dev split.
        seed: chooses the texts held out for dev, and the halves of MNLI's dev split.
    """
    dataset = _find(name)
    if dataset.aspects:
        aspect = aspect or dataset.aspects[0]
        if aspect not in dataset.aspects:
            raise ValueError(f"{dataset.name} has the aspects {', '.join(dataset.aspects)}, got {aspect!r}")
    elif aspect is not None:
        raise ValueError(f"{dataset.name} has no aspects, got aspect={aspect!r}; leave it out")
    label_columns = [label.format(aspect=aspect) for label in dataset.label_columns]
    request = ReadRequest(
        aspect or "",
        columns or Columns(),
        (columns or Columns()).names()
        | {*label_columns, *(name.format(aspect=aspect) for name in dataset.extra_columns)},
        dataset.splits,
    )
    splits = _read(dataset, None if data_dir is None else Path(data_dir), request)
    if dataset.prepare is not None:
        splits = _map_tables(splits, lambda table: dataset.prepare(table, request))  # type: ignore[misc]
        if "train" in splits and not any(table.rows for table in splits["train"]):
            problem = "no training rows" + (f" for aspect {aspect!r}" if aspect else "")
            remedy = f"add rows, or choose another aspect: {', '.join(dataset.aspects)}" if aspect else ""
            raise DataError(problem, remedy, path=splits["train"][0].path)
    columns = dataset.columns or columns
    if columns is None:
        present = next(iter(splits.values()))[0].columns
        label = next((label for label in label_columns if label in present), label_columns[0])
        columns = Columns(label=label)
    if dataset.relabel is not None:
        relabel, label_column = dataset.relabel, columns.label
        splits = _map_tables(splits, lambda table: _relabelled(table, label_column, relabel))
    corpus = assemble(
        dataset.name if aspect is None else f"{dataset.name}-{aspect}",
        splits,
        ReadOptions(
            columns=columns,
            task=dataset.task,
            classes=dataset.classes or None,
            rule=rule or dataset.rule,
            dev_fraction=dataset.dev_fraction if dev_fraction is None else dev_fraction,
            seed=seed,
        ),
        drop_labels=dataset.drop_labels,
        budget=dataset.budget,
    )
    if dataset.halve_dev and "dev" in splits and not corpus.test:
        dev, test = split_off_dev(corpus.dev, 0.5, seed=seed, stratify=True)
        corpus = replace(corpus, dev=dev, test=test)
    return corpus


def _find(name: str) -> Dataset:
    key = name.lower()
    if key not in DATASETS:
        raise ValueError(f"there is no dataset {name!r}; {did_you_mean(key, DATASETS)}")
    return DATASETS[key]


def _read(dataset: Dataset, path: Path | None, request: ReadRequest) -> SplitTables:
    if path is None:
        if dataset.hub is None:
            raise DataError(f"{dataset.name} is not on the Hub; pass data_dir with a local copy of its files")
        from rationalizer.data.hub_datasets import read_hub

        return read_hub(dataset.hub, request.names, dataset.splits)
    if not path.exists():
        raise DataError(f"{path}: there is no such folder; pass data_dir with a local copy of {dataset.name}")
    original = dataset.read_original(path, request) if dataset.read_original else None
    return original or read_splits(path, request.names, dataset.splits, dataset.original_files)


def _map_tables(splits: SplitTables, function: Callable[[Table], Table]) -> SplitTables:
    return {split: [function(table) for table in tables] for split, tables in splits.items()}


def _relabelled(table: Table, column: str | None, relabel: Callable[[Label], Label]) -> Table:
    if column not in table.columns:
        return table  # `assemble` reports the missing column
    rows: list[Row] = []
    for number, row in table.numbered():
        try:
            rows.append(row | {column: relabel(plain(row.get(column)))})
        except ValueError as error:
            raise DataError.from_error(error, path=table.path, row=number) from None
    return replace(table, rows=rows)


def load(
    source: str | Path,
    *,
    data_dir: str | Path | None = None,
    aspect: str | None = None,
    columns: Columns | None = None,
    task: Task | None = None,
    classes: Sequence[str] | None = None,
    rule: SplitRule | None = None,
    dev_fraction: float | None = None,
    seed: int = 0,
    dialect: Dialect | None = None,
    skip_bad: bool = False,
    stream: bool | None = None,
    cache_dir: str | Path | None = None,
    on_progress: OnProgress | None = None,
) -> Corpus:
    """The corpus that `source` names: "reviews", "stays" or "pairs" (the embedded ones), a dataset of the
    literature, a file or a folder.

    A name wins over a file of the same name: write `./imdb` for a folder called imdb. `seed` chooses the
    rows held out for dev, and the texts of an embedded corpus. An option that the source cannot use is an error.

    Files of more than 100 MB (of Parquet, or packed by gzip: 25 MB) are not read into memory, but through a cache on
    disk in `cache_dir`, which gives the same corpus (see `stream_corpus`; `on_progress` shows how far the reading is).
    `stream` says whether others are, too, or none.
    """
    key = str(source).lower()
    own: dict[str, object] = {"dialect": dialect, "skip_bad": skip_bad or None, "stream": stream or None}
    if isinstance(source, str) and key in GENERATED:
        _refuse(key, data_dir=data_dir, columns=columns, task=task, classes=classes, **own)
        _refuse(key, dev_fraction=dev_fraction)
        if aspect is not None and key != "reviews":
            _refuse(key, aspect=aspect)
        how: dict[str, Any] = {"seed": seed, "rule": rule or "words"} | ({} if aspect is None else {"aspect": aspect})
        return GENERATED[key](**how)
    if isinstance(source, str) and key in DATASETS:
        _refuse(key, task=task, classes=classes, **own)
        return load_dataset(
            key, data_dir, aspect=aspect, columns=columns, rule=rule, dev_fraction=dev_fraction, seed=seed
        )
    if not Path(source).exists():
        close = closest(key, [*GENERATED, *DATASETS])
        guess = f" (did you mean {close!r}?)" if close else ""
        raise DataError(
            f"{source} is neither a file, nor a folder, nor a dataset{guess}; "
            f"the datasets are {', '.join([*GENERATED, *DATASETS])}"
        )
    _refuse("users' own files", data_dir=data_dir, aspect=aspect)
    given: dict[str, Any] = {"columns": columns, "task": task, "classes": classes, "rule": rule, "seed": seed}
    given |= {"dev_fraction": dev_fraction, "dialect": dialect, "skip_bad": skip_bad}
    if is_large(source) if stream is None else stream:
        return stream_corpus(source, **given, cache_dir=cache_dir, on_progress=on_progress)
    return read_corpus(source, **given)


def _refuse(source: str, **options: object) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ValueError(f"{source} cannot be loaded with the option {given[0]}; leave it out")
