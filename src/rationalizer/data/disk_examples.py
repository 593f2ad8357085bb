"""Examples in files instead of in memory: each is read when it is needed, in any order.

A folder of examples has

    examples.arrow   Arrow IPC, in record batches of `BATCH` examples
    lengths.npy      int64, `Example.length`
    labels.npy       int64 class indices, or float64 values; (examples, targets) for several labels or targets
    words.json       {token: number of occurrences}

so that training keeps only two numbers per example in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from rationalizer.text.errors import DataError
from rationalizer.text.example import AnyExample, LabelValue, PairExample

if TYPE_CHECKING:  # pyarrow takes as long to import as a short text to explain
    import pyarrow as pa

    from rationalizer.data.example_records import ExampleBatch

EXAMPLES, LENGTHS, LABELS, WORDS = "examples.arrow", "lengths.npy", "labels.npy", "words.json"
BATCH = 1024  # examples per record batch; a reader needs about 10 kB per batch, so about 10 bytes per example
Numbers = NDArray[np.int64]


class DiskExamples(Sequence[AnyExample]):
    """The examples of a folder, or some of them.

    Args:
        folder: the folder of examples.
        rows: the rows of the folder to use, in this order; by default all.
    """

    def __init__(self, folder: Path, rows: Numbers | None = None) -> None:
        self.folder = folder
        self._batches = _Batches(folder / EXAMPLES)
        self._lengths: Numbers = np.load(folder / LENGTHS)
        self._labels: NDArray[Any] = np.load(folder / LABELS)
        self.rows: Numbers = np.arange(len(self._labels)) if rows is None else rows

    def select(self, indices: NDArray[Any] | slice) -> DiskExamples:
        """Return the examples at these indices, or where a mask is True. Files and arrays are shared."""
        other = copy(self)
        other.rows = self.rows[indices]
        return other

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> AnyExample: ...
    @overload
    def __getitem__(self, index: slice) -> DiskExamples: ...
    def __getitem__(self, index: int | slice) -> AnyExample | DiskExamples:
        if isinstance(index, slice):
            return self.select(index)
        return self._decode(int(self.rows[index]))

    def __iter__(self) -> Iterator[AnyExample]:
        return map(self._decode, self.rows.tolist())

    def _decode(self, row: int) -> AnyExample:
        try:
            return self._batches[row // BATCH].decode(row % BATCH, _as_label(self._labels[row]))
        except (ValueError, TypeError, LookupError, OSError) as error:
            raise DataError(
                f"row {row + 1} is damaged ({error})",
                f"delete the folder {self.folder.parent}; it will be built again",
                path=self._batches.path,
            ) from None

    @property
    def labels(self) -> NDArray[Any]:
        return self._labels[self.rows]

    @property
    def lengths(self) -> Numbers:
        return np.asarray(self._lengths[self.rows])

    def word_counts(self) -> Counter[str]:
        """Count the occurrences of each token. If most examples of the folder are selected, the others are read and
        subtracted from the stored counts."""
        left_out = np.ones(len(self._labels), dtype=bool)
        left_out[self.rows] = False
        if 2 * left_out.sum() > len(left_out):
            return _count_words(self)
        others = copy(self)
        others.rows = np.flatnonzero(left_out)
        counts = Counter(json.loads((self.folder / WORDS).read_bytes()))
        counts.subtract(_count_words(others))
        return +counts


class _Batches:
    """The record batches of a memory-mapped file, for several threads and processes. The operating system counts the
    pages that were read as resident memory of the process, but frees them when memory is needed."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.path = path
        self._reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self._opened: dict[int, ExampleBatch] = {}
        self._lock = Lock()

    def __getitem__(self, number: int) -> ExampleBatch:
        from rationalizer.data.example_records import ExampleBatch

        batch = self._opened.get(number)
        if batch is None:
            with self._lock:
                batch = self._opened[number] = ExampleBatch(self._reader.get_batch(number))
        return batch

    def __getstate__(self) -> Path:
        return self.path

    def __setstate__(self, path: Path) -> None:
        self.__init__(path)  # type: ignore[misc]


class Writer:
    """Writes a folder of examples. The labels are written at the end, because their type depends on all of them. Memory
    grows with the number of different words, and by 8 bytes per example."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._waiting: list[AnyExample] = []
        self._lengths = array("q")
        self._words: Counter[str] = Counter()
        self._file: pa.RecordBatchFileWriter | None = None

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, example: AnyExample) -> None:
        self._waiting.append(example)
        self._lengths.append(example.length)
        for text in example.texts:
            self._words.update(text.tokens)
        if len(self._waiting) == BATCH:
            self._write_batch()

    def _write_batch(self) -> None:
        if self._waiting:
            import pyarrow as pa

            from rationalizer.data.example_records import encode, schema_for

            schema = schema_for(self._waiting[0])
            self._file = self._file or pa.ipc.new_file(str(self.folder / EXAMPLES), schema)
            self._file.write_batch(encode(self._waiting, schema))
            self._waiting.clear()

    def finish(self, labels: NDArray[Any]) -> None:
        """Write the remaining examples and the labels, and wait until all files are on the disk."""
        self._write_batch()
        if self._file is not None:
            self._file.close()
        np.save(self.folder / LENGTHS, np.frombuffer(self._lengths, dtype=np.int64))
        np.save(self.folder / LABELS, labels)
        (self.folder / WORDS).write_text(json.dumps(self._words))
        for path in self.folder.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def cached_text(compute: Callable[[], str], name: str, *parts: Sequence[AnyExample]) -> str:
    """Return a text computed from disk examples. It is stored in their cache, for the same rows."""
    rows = hashlib.sha256()
    for part in parts:
        rows.update(part.rows.tobytes() if isinstance(part, DiskExamples) else b"")
    stored = next(part for part in parts if isinstance(part, DiskExamples))
    path = stored.folder.parent / f"{name}-{rows.hexdigest()[:32]}"
    with suppress(OSError, ValueError):
        return without_checksum(path.read_bytes()).decode()
    value = compute()
    with suppress(OSError):  # the cache may be read-only
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        temporary.write_bytes(with_checksum(value.encode()))
        os.replace(temporary, path)
    return value


def with_checksum(content: bytes) -> bytes:
    """Return the checksum and the content."""
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def without_checksum(content: bytes) -> bytes:
    """Return the content without its checksum; ValueError if they do not match."""
    _, _, inside = content.partition(b"\n")
    if content != with_checksum(inside):
        raise ValueError("the checksum does not match the content")
    return inside


def word_counts(examples: Sequence[AnyExample]) -> Counter[str]:
    """Count the occurrences of each token."""
    return examples.word_counts() if isinstance(examples, DiskExamples) else _count_words(examples)


def lengths(examples: Sequence[AnyExample]) -> Numbers:
    """Return `Example.length` of each example, by which batches are sorted."""
    if isinstance(examples, DiskExamples):
        return examples.lengths
    return np.array([example.length for example in examples], dtype=np.int64)


def words_of_sides(examples: Sequence[AnyExample]) -> Numbers:
    """Return the number of words of each text: (examples, 1), or (examples, 2) for pairs."""
    column = lengths(examples)[:, None]
    if len(examples) and isinstance(examples[0], PairExample):
        return np.concatenate(PairExample.sides(column), axis=1)
    return column


def labels(examples: Sequence[AnyExample]) -> NDArray[Any]:
    """Return the class indices, or the values of a regression; for several labels or targets one column for each, NaN
    where none is given."""
    if isinstance(examples, DiskExamples):
        return examples.labels
    several = len(examples) and isinstance(examples[0].label, tuple)
    return np.array([example.label for example in examples], dtype=np.float64 if several else None)


def _as_label(stored: Any) -> LabelValue:
    """The label of an example, from an entry or a row of the array."""
    if np.ndim(stored) == 0:
        value: int | float = stored.item()
        return value
    return tuple(None if np.isnan(x) else int(x) if x.is_integer() else x for x in stored.tolist())


def _count_words(examples: Sequence[AnyExample]) -> Counter[str]:
    return Counter(chain.from_iterable(text.tokens for example in examples for text in example.texts))
