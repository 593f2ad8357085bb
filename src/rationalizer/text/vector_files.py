"""Read word vectors from text files and archives, in chunks; error messages name the line."""

from __future__ import annotations

import gzip
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rationalizer.suggestions import closest
from rationalizer.text.errors import DataError, short_repr

BUNDLED = "glove-6b-100d"
GLOVE_PACKAGE = "glove-6b-50d"
MAX_NUMBER = 1e6  # larger numbers mean a damaged file, and their products overflow
_CHUNK = 4096  # lines whose numbers are parsed at once


class _Line(NamedTuple):
    number: int
    word: str
    numbers: bytes


@contextmanager
def open_vector_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain file, a .gz file, or a file in a .zip archive, to read bytes."""
    inside = next((parent for parent in path.parents if parent.suffix == ".zip" and parent.is_file()), None)
    archive = inside or path
    if not archive.is_file():
        raise _no_such_source(path)
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as zipped:
                member = _member(zipped, archive, path.relative_to(archive).as_posix() if inside else None)
                with zipped.open(member) as file:
                    yield file
        elif path.suffix == ".gz":
            with gzip.open(path) as file:
                yield file  # type: ignore[misc]
        else:
            with path.open("rb") as file:
                yield file
    except (zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"damaged archive ({error})", "copy it again", path=archive) from error


def _no_such_source(path: Path) -> DataError:
    name, folder = path.name, path.parent
    others: list[str] = []
    with suppress(OSError):  # an unreadable folder suggests nothing
        others = sorted(entry.name for entry in folder.iterdir())
    # Names that differ only in case are suggested first.
    written = {other.lower(): other for other in [*others, BUNDLED, GLOVE_PACKAGE]}
    close = closest(name.lower(), written, cutoff=0.75)
    meant = None if close is None else written[close]
    hint = "" if meant is None else f"; did you mean {str(folder / meant) if meant in others else meant!r}?"
    return DataError(
        f"{path}: no such file, and no vectors of that name{hint}{'' if hint else ';'} pass "
        f"{BUNDLED!r} (included in the package), {GLOVE_PACKAGE!r} (needs the extra `glove`), a "
        "file of vectors (text, .gz, .zip or .npz), or 'none' to learn vectors from scratch"
    )


def _member(zipped: zipfile.ZipFile, archive: Path, name: str | None) -> str:
    names = [info.filename for info in zipped.infolist() if not info.is_dir()]
    if name is None and len(names) == 1:
        return names[0]
    if name in names:
        return str(name)
    problem = "holds several files" if name is None else f"has no file {name!r}"
    first = names[0] if names else "NAME"
    raise DataError(f"the archive {problem}", f"pass one of {', '.join(names)} as {archive}/{first}", path=archive)


def read_text(
    path: Path, file: IO[bytes], wanted: Collection[str], limit: int
) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
    """Yield chunks of words and their vectors: the file's first `limit` words, and all wanted words.

    If a word occurs twice, its first vector is used. The number of values is checked on every line, even if the word is
    skipped.
    """
    known: set[str] = set()
    lines: list[_Line] = []
    dimension = 0
    for number, line in enumerate(file, 1):
        line = line.rstrip()
        if number == 1:
            if b"\0" in line:
                raise DataError("binary data", "convert the vectors to word2vec's text format", path=path)
            parts = line.split(b" ")
            if len(parts) == 2 and parts[0].isdigit() and parts[1].isdigit():
                dimension = int(parts[1])
                continue
            dimension = len(parts) - 1
        if line.count(b" ") == dimension:
            start, _, numbers = line.partition(b" ")
        else:
            start, numbers = _word_with_spaces(path, number, line, dimension)
        # Large files have a few words with invalid bytes, which occur in no text and must not be an error.
        word = start.decode("utf-8", "replace")
        if (len(known) < limit or word in wanted) and word not in known:
            known.add(word)
            lines.append(_Line(number, word, numbers))
            if len(lines) == _CHUNK:
                yield [line.word for line in lines], _parse_lines(path, lines, dimension)
                lines = []
    if dimension == 0:
        raise DataError("no vectors", "each line must be a word and its numbers", path=path)
    if lines:
        yield [line.word for line in lines], _parse_lines(path, lines, dimension)


def _word_with_spaces(path: Path, number: int, line: bytes, dimension: int) -> tuple[bytes, bytes]:
    # GloVe 840B has words with spaces, such as ". . .". If the last part of the word is a number, there are too many
    # values instead.
    parts = line.rsplit(b" ", dimension)
    if len(parts) == dimension + 1 and not _is_number(parts[0].rsplit(b" ", 1)[-1]):
        return parts[0], b" ".join(parts[1:])
    count = line.count(b" ")
    raise DataError(
        f"expected {dimension} numbers, got {count}",
        "the file is damaged or mixes dimensions; copy it again",
        path=path,
        line=number,
    )


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_lines(path: Path, lines: list[_Line], dimension: int) -> NDArray[np.float32]:
    """Parse the numbers of all lines at once, which is several times faster; line by line only to locate an error."""
    text = b" ".join([line.numbers for line in lines])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # some NumPy versions only warn about text that is not a number
        try:
            vectors = np.fromstring(text, dtype=np.float32, sep=" ")
        except (ValueError, DeprecationWarning):
            vectors = np.empty(0, np.float32)
    if vectors.size != len(lines) * dimension or not (np.abs(vectors) <= MAX_NUMBER).all():
        vectors = np.concatenate([_parse_line(path, line, dimension) for line in lines])
    return vectors.reshape(len(lines), dimension)


def _parse_line(path: Path, line: _Line, dimension: int) -> NDArray[np.float32]:
    try:
        vector = np.array(line.numbers.split(b" "), dtype=np.float32)
    except ValueError as error:
        raise DataError(
            f"expected {dimension} numbers after the word {short_repr(line.word)} ({error})",
            path=path,
            line=line.number,
        ) from None
    good = np.abs(vector) <= MAX_NUMBER  # False for NaN
    if not good.all():
        number = vector[~good][0]
        problem = "not finite" if not np.isfinite(number) else f"too large (the maximum is {MAX_NUMBER:g})"
        raise DataError(
            f"the vector of {short_repr(line.word)} has the number {number:g}, which is {problem}",
            "copy the file again, or delete the line",
            path=path,
            line=line.number,
        )
    return vector
