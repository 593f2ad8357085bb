"""Linear probes: how much of a label can be predicted from the form of a rationale, without its words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rationalizer.metrics._validation import Floats, Mask
from rationalizer.metrics.token_spans import mask_to_spans

FOLDS = 5  # of the cross-validation
_ENDS = 5
_BINS = 10


def mean_recall(codes: NDArray[np.int64], guesses: NDArray[np.int64]) -> tuple[float, Floats]:
    """The mean recall over the classes, and the number of documents of each class."""
    counts = np.bincount(codes).astype(np.float64)
    return float(np.mean(np.bincount(codes, weights=codes == guesses) / counts)), counts


def position_features(mask: Mask) -> Floats:
    """A constant, the distribution over ten sections of the text, and whether each of the first and last five tokens is
    selected."""
    selected = np.flatnonzero(mask)
    histogram = np.bincount(selected * _BINS // max(len(mask), 1), minlength=_BINS) / max(len(selected), 1)
    ends = np.zeros(2 * _ENDS)
    first, last = mask[:_ENDS], mask[::-1][:_ENDS]
    ends[: len(first)] = first
    ends[_ENDS : _ENDS + len(last)] = last
    return np.concatenate([[1.0], histogram, ends])


def shuffle_runs(mask: Mask, rng: np.random.Generator) -> Mask:
    """Move the runs of selected tokens to random positions in random order, still separated."""
    lengths = rng.permutation([end - start for start, end in mask_to_spans(mask)])
    runs = len(lengths)
    slots = len(mask) - int(mask.sum()) + 1  # before, between and after the unselected tokens
    gaps = np.sort(rng.choice(slots, runs, replace=False))
    starts = gaps + np.concatenate([[0], np.cumsum(lengths)[:-1]])[:runs]
    moved = np.zeros(len(mask), dtype=np.bool_)
    for start, length in zip(starts, lengths, strict=True):
        moved[int(start) : int(start + length)] = True
    return moved


def assign_folds(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """A fold for each document, class by class, so that every fold has every class."""
    order = np.lexsort((np.random.default_rng(0).permutation(len(codes)), codes))
    fold = np.empty(len(codes), dtype=np.int64)
    fold[order] = np.arange(len(codes)) % FOLDS
    return fold


def cross_validated(features: Floats, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class that a ridge probe, fitted on the other folds, predicts for each row."""
    fold = assign_folds(codes)
    targets = np.eye(codes.max() + 1)[codes]
    weights = 1 / np.bincount(codes)[codes] * len(codes) / targets.shape[1]
    guesses = np.empty(len(codes), dtype=np.int64)
    for held_out in range(FOLDS):
        rest, now = fold != held_out, fold == held_out
        x = features[rest] * weights[rest, None]
        coefficients = np.linalg.solve(x.T @ features[rest] + np.eye(features.shape[1]), x.T @ targets[rest])
        guesses[now] = (features[now] @ coefficients).argmax(axis=1)
    return guesses
