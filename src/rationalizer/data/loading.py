"""Load any corpus: generated corpora, datasets by name, users' own files."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Corpus
from rationalizer.data.corpus_files import assemble, read_corpus, read_splits
from rationalizer.data.dataset_registry import DATASETS, Dataset, ReadRequest, SplitTables
from rationalizer.data.generated_pairs import generated_pairs
from rationalizer.data.generated_reviews import generated_reviews
from rationalizer.data.generated_stays import generated_stays
from rationalizer.data.labels import Label, plain
from rationalizer.data.read_options import ReadOptions
from rationalizer.data.splitting import split_off_dev
from rationalizer.data.streaming import is_large, stream_corpus
from rationalizer.data.table_files import Row, Table
from rationalizer.suggestions import closest, did_you_mean
from rationalizer.text.errors import DataError

GENERATED: dict[str, Callable[..., Corpus]] = {
    "reviews": generated_reviews,
    "stays": generated_stays,
    "pairs": generated_pairs,
}
OPTION_NAMES = [item.name for item in fields(ReadOptions)]


def load_dataset(
    name: str,
    data_dir: str | Path | None = None,
    options: ReadOptions | None = None,
    *,
    aspect: str | None = None,
    **settings: Any,
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
        options: `columns`, `rule`, `dev_fraction` and `seed`. The seed chooses the texts held out for dev, and the
            halves of MNLI's dev split.
        aspect: of Beer and Hotels; default: the first one.
        settings: fields of `options`.
    """
    options = ReadOptions.merge(options, settings)
    dataset = _find(name)
    _refuse(dataset.name, options, allowed=("columns", "rule", "dev_fraction", "seed"))
    if dataset.aspects:
        aspect = aspect or dataset.aspects[0]
        if aspect not in dataset.aspects:
            raise ValueError(f"{dataset.name} has the aspects {', '.join(dataset.aspects)}, got {aspect!r}")
    elif aspect is not None:
        raise ValueError(f"{dataset.name} has no aspects, got aspect={aspect!r}; leave it out")
    label_columns = [label.format(aspect=aspect) for label in dataset.label_columns]
    extra_columns = [column.format(aspect=aspect) for column in dataset.extra_columns]
    names = options.columns.names() | {*label_columns, *extra_columns}
    request = ReadRequest(aspect or "", options.columns, names, dataset.splits)
    splits = _read(dataset, None if data_dir is None else Path(data_dir), request)
    if dataset.prepare is not None:
        splits = {split: [dataset.prepare(table, request) for table in tables] for split, tables in splits.items()}
        if "train" in splits and not any(table.rows for table in splits["train"]):
            problem = "no training rows" + (f" for aspect {aspect!r}" if aspect else "")
            remedy = f"add rows, or choose another aspect: {', '.join(dataset.aspects)}" if aspect else ""
            raise DataError(problem, remedy, path=splits["train"][0].path)
    columns = dataset.columns or options.columns
    if columns == Columns():
        present = next(iter(splits.values()))[0].columns
        columns = Columns(label=next((label for label in label_columns if label in present), label_columns[0]))
    if dataset.relabel is not None:
        splits = {
            split: [_relabelled(table, columns.label, dataset.relabel) for table in tables]
            for split, tables in splits.items()
        }
    options = replace(
        options,
        columns=columns,
        task=dataset.task,
        classes=dataset.classes or None,
        rule=options.rule or dataset.rule,
        dev_fraction=dataset.dev_fraction if options.dev_fraction is None else options.dev_fraction,
    )
    corpus_name = dataset.name if aspect is None else f"{dataset.name}-{aspect}"
    corpus = assemble(corpus_name, splits, options, drop_labels=dataset.drop_labels, budget=dataset.budget)
    if dataset.halve_dev and "dev" in splits and not corpus.test:
        dev, test = split_off_dev(corpus.dev, 0.5, seed=options.seed, stratify=True)
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
    options: ReadOptions | None = None,
    *,
    data_dir: str | Path | None = None,
    aspect: str | None = None,
    **settings: Any,
) -> Corpus:
    """Load a corpus: a generated one ("reviews", "stays" or "pairs"), a dataset by name, a file or a folder.

    A name wins over a file of the same name: write `./imdb` for a folder called imdb. An option that the source cannot
    use is an error. Files of more than 100 MB (25 MB if Parquet or gzipped) are not read into memory but through a
    cache on disk, which gives the same corpus (see `stream_corpus`); `stream` decides about other files.

    Args:
        source: name or path.
        options: how to read files. `seed` also chooses the texts of a generated corpus.
        data_dir: a dataset's local copy; None: download it from the Hub.
        aspect: of a dataset, or of "reviews".
        settings: fields of `options`.
    """
    options = ReadOptions.merge(options, settings)
    key = str(source).lower()
    if isinstance(source, str) and key in GENERATED:
        _refuse(key, options, allowed=("rule", "seed"), data_dir=data_dir)
        if aspect is not None and key != "reviews":
            _refuse(key, options, aspect=aspect)
        arguments: dict[str, Any] = {} if aspect is None else {"aspect": aspect}
        return GENERATED[key](seed=options.seed, rule=options.rule or "words", **arguments)
    if isinstance(source, str) and key in DATASETS:
        return load_dataset(key, data_dir, options, aspect=aspect)
    if not Path(source).exists():
        names = [*GENERATED, *DATASETS]
        close = closest(key, names)
        guess = f" (did you mean {close!r}?)" if close else ""
        raise DataError(
            f"{source} is neither a file, nor a folder, nor a dataset{guess}", f"the datasets are {', '.join(names)}"
        )
    _refuse("users' own files", options, allowed=OPTION_NAMES, data_dir=data_dir, aspect=aspect)
    stream = is_large(source) if options.stream is None else options.stream
    return stream_corpus(source, options) if stream else read_corpus(source, options)


def _refuse(source: str, options: ReadOptions, allowed: Collection[str] = (), **arguments: object) -> None:
    """Raise ValueError if an argument, or an option that is not allowed, has been given."""
    defaults = ReadOptions()
    ignored = {*allowed, "cache_dir", "on_progress"}  # they matter only for files that are streamed
    changed = {
        name: value
        for name in OPTION_NAMES
        if name not in ignored and (value := getattr(options, name)) != getattr(defaults, name) and value is not False
    }
    for name, value in {**arguments, **changed}.items():
        if value is not None:
            raise ValueError(f"{source} cannot be loaded with the option {name}; leave it out")
