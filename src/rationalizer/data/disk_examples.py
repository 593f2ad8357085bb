"""Examples in files instead of in memory: any of them is read when it is asked for, in any order.

A folder of examples has

    examples.jsonl   one line each: what `packed` makes of it
    ends.bin         int64, where each line ends
    lengths.bin      int64, `Example.length`
    labels.bin       int64 numbers of classes, or float64 values
    words.json       {token: how often it comes}

so that all a training has in memory of an example are the numbers, 8 bytes each.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from rationalizer.data.example_records import Content, content, content_of, packed, unpacked
from rationalizer.text.errors import DataError
from rationalizer.text.example import AnyExample, PairExample

LINES, ENDS, LENGTHS, LABELS, WORDS = "examples.jsonl", "ends.bin", "lengths.bin", "labels.bin", "words.json"
Numbers = NDArray[np.int64]
T = TypeVar("T")
BLOCK = 1 << 13  # examples that are written, or read in their order, at once


class DiskExamples(Sequence[AnyExample]):
    """Some of the examples of a folder, or all.

    Args:
        folder: where they are.
        values: whether the labels are values, not classes.
        rows: which of them, and in which order; by default all.
    """

    def __init__(self, folder: Path, *, values: bool, rows: Numbers | None = None) -> None:
        self.folder = folder
        self.values = values
        self._lines = _Lines(folder / LINES)
        self._ends: Numbers = np.fromfile(folder / ENDS, dtype=np.int64)
        self._lengths: Numbers = np.fromfile(folder / LENGTHS, dtype=np.int64)
        self._labels: NDArray[Any] = np.fromfile(folder / LABELS, dtype=label_type(values=values))
        self.rows: Numbers = np.arange(len(self._labels)) if rows is None else rows

    def taken(self, places: NDArray[Any] | slice) -> DiskExamples:
        """Those at these places, or where `places` is true."""
        return self._with(self.rows[places])

    def _with(self, rows: Numbers) -> DiskExamples:
        other = copy(self)  # files and numbers are shared
        other.rows = rows
        return other

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> AnyExample: ...
    @overload
    def __getitem__(self, place: slice) -> DiskExamples: ...
    def __getitem__(self, place: int | slice) -> AnyExample | DiskExamples:
        if isinstance(place, slice):
            return self.taken(place)
        row = int(self.rows[place])
        return self._read(unpacked, self._between(row, row), row)

    def __iter__(self) -> Iterator[AnyExample]:
        return self._in_order(unpacked)

    def contents(self) -> Iterator[Content]:
        """Of every example what its fingerprint depends on: twice as fast as making the examples."""
        return self._in_order(content)

    def _in_order(self, make: Callable[[bytes, Any], T]) -> Iterator[T]:
        for block in range(0, len(self.rows), BLOCK):
            rows = self.rows[block : block + BLOCK]
            first, last = int(rows.min()), int(rows.max())
            if last - first < 2 * BLOCK:
                lines = self._between(first, last).split(b"\n")
                for row in rows.tolist():
                    yield self._read(make, lines[row - first], row)
            else:  # far apart: reading all that lies between would take longer
                for row in rows.tolist():
                    yield self._read(make, self._between(row, row), row)

    def _between(self, first: int, last: int) -> bytes:
        """The lines of these rows, and of those between."""
        return self._lines.between(int(self._ends[first - 1]) if first else 0, int(self._ends[last]))

    def _read(self, make: Callable[[bytes, Any], T], line: bytes, row: int) -> T:
        try:
            return make(line, self._labels[row].item())
        except (ValueError, TypeError, LookupError) as error:
            raise DataError(
                f"{self.folder / LINES}, line {row + 1}: not what was written ({error})",
                f"delete the folder {self.folder.parent}, which is made again",
            ) from None

    @property
    def labels(self) -> NDArray[Any]:
        return self._labels[self.rows]

    @property
    def lengths(self) -> Numbers:
        found: Numbers = self._lengths[self.rows]
        return found

    def word_counts(self) -> Counter[str]:
        """How often each token comes: of all, without those that are left out, if these are the fewer."""
        left_out = np.ones(len(self._labels), dtype=bool)
        left_out[self.rows] = False
        others = np.flatnonzero(left_out)
        if len(others) > len(self.rows):
            return _counted(self)
        counts = Counter(json.loads((self.folder / WORDS).read_bytes()))
        counts.subtract(_counted(self._with(others)))
        return +counts


def remembered(make: Callable[[], str], name: str, *parts: Sequence[AnyExample]) -> str:
    """A text that takes long to be made of stored examples, and is the same for the same rows: kept beside them."""
    rows = hashlib.sha256()
    for part in parts:
        rows.update(part.rows.tobytes() if isinstance(part, DiskExamples) else b"")
    stored = next(part for part in parts if isinstance(part, DiskExamples))
    path = stored.folder.parent / f"{name}-{rows.hexdigest()[:32]}"
    with suppress(OSError, ValueError):
        return unsigned(path.read_bytes()).decode()
    value = make()
    with suppress(OSError):  # a cache that may be read only
        beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        beside.write_bytes(signed(value.encode()))
        os.replace(beside, path)
    return value


def signed(content: bytes) -> bytes:
    """With its checksum before it."""
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def unsigned(content: bytes) -> bytes:
    """What was signed; ValueError if it is not the same any more."""
    _, _, inside = content.partition(b"\n")
    if content != signed(inside):
        raise ValueError("the checksum is of another content")
    return inside


def word_counts(examples: Sequence[AnyExample]) -> Counter[str]:
    """How often each token comes in the texts."""
    return examples.word_counts() if isinstance(examples, DiskExamples) else _counted(examples)


def contents(examples: Sequence[AnyExample]) -> Iterator[Content]:
    """Of every example what its fingerprint depends on."""
    return examples.contents() if isinstance(examples, DiskExamples) else map(content_of, examples)


def lengths(examples: Sequence[AnyExample]) -> Numbers:
    """What batches are sorted by."""
    if isinstance(examples, DiskExamples):
        return examples.lengths
    return np.array([example.length for example in examples], dtype=np.int64)


def words_of_sides(examples: Sequence[AnyExample]) -> Numbers:
    """(examples, 1), of pairs (examples, 2): how many words each text has."""
    found = lengths(examples)[:, None]
    if len(examples) and isinstance(examples[0], PairExample):
        return np.concatenate(PairExample.sides(found), axis=1)
    return found


def labels(examples: Sequence[AnyExample]) -> NDArray[Any]:
    """The numbers of the classes, or the values."""
    if isinstance(examples, DiskExamples):
        return examples.labels
    return np.array([example.label for example in examples])


def _counted(examples: Sequence[AnyExample]) -> Counter[str]:
    return Counter(chain.from_iterable(text.tokens for example in examples for text in example.texts))


class Writer:
    """Writes a folder of examples; their labels follow when all are there, since only all of them say what they mean.
    Memory does not grow with them, but with the number of different words."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.count = 0
        self._end = 0
        self._words: Counter[str] = Counter()
        self._ends: list[int] = []
        self._lengths: list[int] = []
        self._files: dict[str, BinaryIO] = {name: (folder / name).open("wb") for name in (LINES, ENDS, LENGTHS)}

    def add(self, example: AnyExample) -> None:
        line = packed(example) + b"\n"
        self._files[LINES].write(line)
        self._end += len(line)
        self._ends.append(self._end)
        self._lengths.append(example.length)
        for text in example.texts:
            self._words.update(text.tokens)
        self.count += 1
        if len(self._ends) == BLOCK:
            self._flush()

    def _flush(self) -> None:
        for name, numbers in ((ENDS, self._ends), (LENGTHS, self._lengths)):
            self._files[name].write(np.array(numbers, dtype=np.int64).tobytes())
            numbers.clear()

    def finish(self, labels: Iterator[NDArray[Any]]) -> None:
        """Closes the files; `labels` come in the examples' order, in pieces."""
        self._flush()
        for file in self._files.values():
            close(file)
        with (self.folder / LABELS).open("wb") as file:
            for piece in labels:
                file.write(piece.tobytes())
            close(file)
        with (self.folder / WORDS).open("wb") as file:
            file.write(json.dumps(self._words).encode())
            close(file)


def close(file: BinaryIO) -> None:
    """When all that was written is on the disk."""
    file.flush()
    os.fsync(file.fileno())
    file.close()


class _Lines:
    """Bytes of a file, for several threads and processes at once. Not a memory map: its pages would count as memory of
    the process, and grow with all that was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb", buffering=0)
        self._lock = Lock()

    def between(self, start: int, end: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._file.fileno(), end - start, start)
        with self._lock:  # on Windows, where no process inherits the file
            self._file.seek(start)
            return self._file.read(end - start)

    def __getstate__(self) -> Path:
        return self.path

    def __setstate__(self, path: Path) -> None:
        self.__init__(path)  # type: ignore[misc]


def label_type(*, values: bool) -> Any:
    """Of the numbers in the file of labels."""
    return np.float64 if values else np.int64
