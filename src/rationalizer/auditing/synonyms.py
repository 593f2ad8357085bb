"""Words of similar meaning: neighbours among word vectors that an independent model does not set against each other."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rationalizer.inference.bag_of_words import BagOfWords
from rationalizer.text import BUNDLED, load_vectors

CANDIDATES = 20_000  # most frequent words of the vectors
NEIGHBOURS = 10
SIMILARITY = 0.55  # least cosine


def find_synonyms(words: Iterable[str], reader: BagOfWords) -> dict[str, str]:
    """A synonym for each word that has one, lower-cased.

    Vectors of opposites are similar ("good", "bad"), so the reader must weigh both words in the same direction.
    """
    vectors = load_vectors(BUNDLED)
    rows = {word: row for row, word in enumerate(vectors.words)}
    known = [word for word in sorted(set(words)) if word in rows and word in reader.rows]
    candidates = [word for word in vectors.words[:CANDIDATES] if word in reader.rows]
    if not known or not candidates:
        return {}
    table = vectors.decoded()
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-9)
    others = table[[rows[word] for word in candidates]]
    weights = (reader.weights - reader.weights.mean(1, keepdim=True)).numpy()
    found = {}
    for start in range(0, len(known), 1024):
        part = known[start : start + 1024]
        similarity = table[[rows[word] for word in part]] @ others.T
        nearest = np.argsort(-similarity, axis=1)[:, : NEIGHBOURS + 1]
        for word, row, columns in zip(part, similarity, nearest, strict=True):
            own = weights[reader.rows[word]]
            for column in columns:
                other = candidates[column]
                if row[column] >= SIMILARITY and other != word and own @ weights[reader.rows[other]] > 0:
                    found[word] = other
                    break
    return found
