"""Users' files that are larger than memory: read once, split into words once, and kept in a cache on disk.

Files are read row by row, and their examples are written to Arrow files (see `disk_examples`) in a folder named after a
hash of the files' bytes and of everything else that determines the content. The folder is built under a temporary name
and renamed when it is complete; its files' checksums are compared whenever it is used. From then on any example can be
read by its index, so a training visits all examples in a new random order each epoch, like examples in memory:
there is no shuffle buffer.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rationalizer import __version__
from rationalizer.data.bad_rows import BadRow, BadRows
from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Corpus, Target, default_budget
from rationalizer.data.corpus_files import check_one_kind, find_splits
from rationalizer.data.disk_examples import DiskExamples, Writer, with_checksum, without_checksum
from rationalizer.data.file_content import ending, stem
from rationalizer.data.labels import Labels
from rationalizer.data.read_options import OnProgress, ReadOptions
from rationalizer.data.single_examples import example_from_row
from rationalizer.data.splitting import dev_mask
from rationalizer.data.streamed_labels import LabelsBuilder, is_usable
from rationalizer.data.table_files import Table, columns_of, stream_table
from rationalizer.text.errors import DataError
from rationalizer.text.word_splitting import rule_version

# Bytes: larger files are streamed by default. In memory, short texts take ten times as much.
LARGE = 100_000_000
PACKED = 4  # approximate ratio by which Parquet and .gz files grow when they are unpacked
ROW = 70  # bytes as which a row counts at least: in memory, a short text takes ten times as much
LAYOUT = 6  # version of the cache format; caches in another format are not used
RECORD = "record.json"
ABANDONED = 24 * 3600  # seconds without a write after which a half-written cache is deleted
REPORT_EVERY = 1000  # rows

Parts = Mapping[str, Sequence[Path]]


def is_large(source: str | Path) -> bool:
    """Whether a file or folder is too large to be read into memory by default."""
    source = Path(source)
    paths = [path for part in find_splits(source).values() for path in part] if source.is_dir() else [source]
    return sum(map(_unpacked_size, paths)) > LARGE


def _unpacked_size(path: Path) -> int:
    """Return the approximate size of a file's texts, in bytes."""
    size = path.stat().st_size
    if path.suffix.lower() == ".gz":
        return PACKED * size
    if ending(path) != ".parquet":
        return size
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        found = read_metadata(path)
    except (ArrowException, OSError):  # reported when the file is read
        return PACKED * size
    unpacked = sum(found.row_group(k).total_byte_size for k in range(found.num_row_groups))
    # Repeated values take hardly any bytes, even unpacked.
    return max(PACKED * size, unpacked, ROW * found.num_rows)


def default_cache() -> Path:
    """`rationalizer` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rationalizer"


def _cache_key(parts: Parts, options: ReadOptions) -> str:
    """Return a hash of the files' bytes and of everything else that determines the content of the cache."""
    files = {name: [(path.name, _sha256(path)) for path in paths] for name, paths in parts.items()}
    names = ("columns", "rule", "task", "classes", "dialect", "skip_bad")
    settings = {name: value for name, value in asdict(replace(options, on_progress=None)).items() if name in names}
    content = [LAYOUT, __version__, rule_version(options.rule or "words"), files, settings]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def stream_corpus(source: str | Path, options: ReadOptions | None = None, **settings: Any) -> Corpus:
    """As `read_corpus`, with the same result, for files larger than memory: the examples stay on disk.

    They are kept in `cache_dir`, by default `~/.cache/rationalizer`, where a second call finds them. The settings are
    fields of `ReadOptions`.
    """
    source, options = Path(source), ReadOptions.merge(options, settings)
    parts = find_splits(source) if source.is_dir() else {"train": [source]}
    resolved = {
        path: options.columns.resolve(Table(path, columns_of(path, options.dialect), []))
        for paths in parts.values()
        for path in paths
    }
    first = resolved[parts["train"][0]]
    options = replace(options, rule=options.split_rule(first))
    cache, key = options.cache_dir or default_cache(), _cache_key(parts, options)
    record = _read_record(cache / key)
    if record is None:
        with _new_folder(cache, key) as folder, _progress(parts, options.on_progress) as on_rows:
            record = _write(folder, parts, options, resolved, on_rows)
    targets = tuple(Target(name, tuple(classes)) for name, classes in record["targets"])
    labels = Labels(record["task"], tuple(record["classes"]), targets)
    values = labels.task == "regression"
    stored = {name: DiskExamples(cache / key / name) for name in record["parts"]}
    stored = {name: part.select(is_usable(part.labels)) for name, part in stored.items()}
    train, dev, test = (stored.get(name, ()) for name in ("train", "dev", "test"))
    assert isinstance(train, DiskExamples)
    if not dev:
        mask = dev_mask(train.labels, options.dev_fraction, seed=options.seed, stratify=not values)
        train, dev = train.select(~mask), train.select(mask)
    return Corpus(
        source.name if source.is_dir() else stem(source),
        labels.task,
        labels.classes,
        train,
        dev,
        test,
        default_budget(pairs=first.are_pairs),
        rule=options.split_rule(first),
        columns=replace(first, weight=None).by_kind(),
        skipped=tuple(record["skipped"]),
        targets=labels.targets,
    )


def _write(
    folder: Path,
    parts: Parts,
    options: ReadOptions,
    resolved: Mapping[Path, Columns],
    on_rows: Callable[[int], object],
) -> dict[str, Any]:
    """Read the files once, and write their examples, labels and word counts into the folder."""
    bad = BadRows(skip=options.skip_bad)
    labels: Labels | None = None
    written = []
    for name in ("train", "dev", "test"):
        if name not in parts:
            continue
        writer, column = Writer(folder / name), LabelsBuilder(options.task)
        for path in parts[name]:
            column.begin(path)
            _write_file(path, options, resolved[path], writer, column, bad, on_rows)
        labels = labels or column.infer(options.task, options.classes)
        writer.finish(column.encode(labels, bad))
        if len(writer):
            written.append(name)
        if name == "train" and not bad.is_fatal and not len(writer):
            raise DataError("no training rows", path=parts["train"][0])
    bad.raise_if_any()
    check_one_kind(resolved)
    assert labels is not None
    record = {
        "task": labels.task,
        "classes": labels.classes,
        "targets": [(target.name, target.classes) for target in labels.targets],
        "parts": written,
        "skipped": bad.messages(),
        "files": {str(path.relative_to(folder)): _sha256(path) for name in written for path in _files(folder / name)},
    }
    with (folder / RECORD).open("wb") as file:
        file.write(with_checksum(json.dumps(record).encode()))
        file.flush()
        os.fsync(file.fileno())
    return record


def _write_file(
    path: Path,
    options: ReadOptions,
    columns: Columns,
    writer: Writer,
    column: LabelsBuilder,
    bad: BadRows,
    on_rows: Callable[[int], object],
) -> None:
    if columns.label is None:
        raise DataError("training needs labels", "pass the label column's name", path=path)
    rule = options.split_rule(columns)
    for number, row in enumerate(stream_table(path, options.columns.names(), dialect=options.dialect).rows, 1):
        if isinstance(row, BadRow):
            bad.add(path, number, row.error)
        else:
            try:
                label = column.parse(columns.read_label(row), number)
                writer.add(example_from_row(row, columns, None, rule))
                column.add(label, number)
            except ValueError as error:
                bad.add(path, number, error)
        if bad.is_full:
            bad.raise_if_any()
        if number % REPORT_EVERY == 0:
            on_rows(REPORT_EVERY)


@contextmanager
def _progress(parts: Parts, on_progress: OnProgress | None) -> Iterator[Callable[[int], object]]:
    if on_progress is None:
        yield lambda _: None
        return
    with on_progress("Reading", _count_rows(path for paths in parts.values() for path in paths)) as on_rows:
        yield on_rows


def _count_rows(paths: Iterator[Path]) -> int | None:
    """Return the number of rows; None if a file is not Parquet, which stores it."""
    from pyarrow.parquet import read_metadata

    count = 0
    for path in paths:
        if ending(path) != ".parquet":
            return None
        count += read_metadata(path).num_rows
    return count


@contextmanager
def _new_folder(cache: Path, key: str) -> Iterator[Path]:
    """Yield a temporary folder, which is renamed to `key` at the end, or deleted after an error."""
    cache.mkdir(parents=True, exist_ok=True)
    for left in cache.glob(".*.tmp"):  # left by a killed process
        with suppress(OSError):  # another process may delete it at the same time
            if time.time() - max(path.stat().st_mtime for path in (left, *_files(left))) > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{key}.", suffix=".tmp", dir=cache))
    try:
        yield folder
        _publish(folder, cache / key)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _publish(folder: Path, target: Path) -> None:
    """Rename the folder to `target`. A valid cache that another process has built there is kept: it is the same."""
    for attempt in range(10):
        try:
            os.rename(folder, target)
            return
        except OSError:  # the target exists
            if _read_record(target) is not None:
                return
            if attempt == 9:
                raise
            with suppress(OSError):  # move a damaged cache away, unless another process has done so
                os.rename(target, folder.with_name(f".{target.name}.{folder.name[-10:-4]}{attempt}.old.tmp"))
    raise AssertionError


def _read_record(folder: Path) -> dict[str, Any] | None:
    """Return the record of a cache; None if the cache is missing, incomplete or damaged."""
    try:
        record: dict[str, Any] = json.loads(without_checksum((folder / RECORD).read_bytes()))
        whole = all(_sha256(folder / name) == known for name, known in record["files"].items())
    except (OSError, ValueError):
        return None
    return record if whole else None


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
