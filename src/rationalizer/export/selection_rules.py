"""From scores to a selection for one text or pair: budget, constraints, punctuation; without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints import BatchItem, Constraints
from rationalizer.constraints.layer_arguments import CONFLICT_REMEDY, TextRequirements, combine_text_constraints
from rationalizer.constraints.pair_layer_arguments import combine_pair_constraints
from rationalizer.constraints.selection_table import EXCESS_REMEDY, find_excess
from rationalizer.export.best_matchings import best_alignment
from rationalizer.export.best_sequences import best_sequence, sparsemax, top_k
from rationalizer.export.constrained_sequences import WordConstraints, best_constrained_sequence
from rationalizer.text import Budget, SentenceRule

Mask = NDArray[np.bool_]
Weights = NDArray[np.float32]
Method = Mapping[str, Any]  # the entry `method` of a manifest


def select_words(
    scores: Weights,
    counted: Mask,
    punctuation: Mask,
    method: Method,
    budget: Budget,
    constraints: Constraints,
    item: BatchItem,
    sentences: SentenceRule,
) -> Weights:
    """Return the weight of each token, 0 if it is not selected.

    Args:
        scores: (n,) of the tokens.
        counted, punctuation: which tokens can be selected, and which are read with the words around them.
        method: the decoder and its settings.
        budget: with its multiplier, if it is an average.
        constraints: all for single texts.
        item: the text.
        sentences: where sentences end.
    """
    least, most = budget.bounds_for(int(counted.sum()))
    z = np.zeros(len(scores), np.float32)
    if budget.multiplier is not None:
        scores = scores - np.float32(budget.multiplier)
    words = scores[counted].astype(np.float64)
    unit = None
    if constraints:
        layer, (text,) = combine_text_constraints(constraints, [item], sentences)
        unit = text.unit if text.together.any() else None
        own = _word_constraints(layer, text, counted)
        if method["decoder"] == "top-k":
            words = _prefer_more_words(np.where(counted, scores, 0.0).astype(np.float64), most)[counted]
        reason = find_excess(layer, text, counted, most)
        if reason is not None:
            raise item.conflict(constraints, reason, EXCESS_REMEDY)
        selected = best_constrained_sequence(words, float(method.get("transition", 0.0)), most, own)
        reason = text.find_conflict(counted, most) if text.must.any() else None
        if reason is not None or selected is None:
            reason = reason or f"no selection of at most {most} words satisfies all of them"
            raise item.conflict(constraints, reason, CONFLICT_REMEDY)
        z[counted] = selected
    elif method["decoder"] == "sparsemax":
        z[counted] = sparsemax(words / method["temperature"])
    elif method["decoder"] == "top-k":
        z[counted] = top_k(words, most)
    else:
        z[counted] = best_sequence(words, np.full(len(words), float(method["transition"])), least, most)
    return _with_punctuation(z, punctuation, unit)


def select_links(
    scores: Weights, counted: tuple[Mask, Mask], method: Method, budget: Budget, constraints: Constraints, pair: Any
) -> Weights:
    """Return the (m, n) alignment, 0 or 1; arguments as for `select_words`."""
    rows, columns = counted
    limit = budget.bounds_for(int(min(rows.sum(), columns.sum())))[1] if method["follows_budget"] else None
    settings: dict[str, Any] = {"budget": limit, "complete": method["complete"]}
    reason = None
    if constraints:
        layer, (links,) = combine_pair_constraints(constraints, [pair])
        settings["monotone"] = layer.monotone
        if layer.exactly is not None:
            settings |= {"budget": layer.exactly, "exactly": True}
        if links.must or links.never.any():
            fixed = -links.never.astype(np.int8)
            for link in links.must:
                fixed[link] = 1
            settings["fixed"] = fixed[np.ix_(rows, columns)]
        reason = links.find_conflict(rows, columns, monotone=layer.monotone)
    aligned = None
    if reason is None:
        aligned = best_alignment(scores[np.ix_(rows, columns)].astype(np.float64), **settings)
    if aligned is None:
        words = f"{int(rows.sum())} and {int(columns.sum())} words"
        most = "" if limit is None else f", budget {limit}"
        reason = reason or f"no alignment by {method['name']} satisfies all of them ({words}{most})"
        raise pair.conflict(constraints, reason, "leave a constraint out, or change it")
    z = np.zeros(scores.shape, np.float32)
    z[np.ix_(rows, columns)] = aligned
    return z


def _word_constraints(layer: Any, text: TextRequirements, counted: Mask) -> WordConstraints:
    fixes = text.must.any() or text.never.any()
    return WordConstraints(
        layer.spans,
        layer.shortest,
        layer.longest,
        text.unit[counted] if text.together.any() else None,
        text.fixed[counted].astype(np.int64) if fixes else None,
        None if layer.per_group is None else text.sentence[counted],
        layer.per_group,
    )


def _prefer_more_words(scores: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Scores with which one more word outweighs any difference between the scores of all others."""
    low, high = scores.min(), scores.max()
    shifted: NDArray[np.float64] = scores - low + (high - low + 1) * (most + 1)
    return shifted


def _with_punctuation(z: Weights, punctuation: Mask, unit: NDArray[Any] | None) -> Weights:
    """Extend a selection of words to the punctuation between them, as `WordBatch.with_punctuation` does."""
    if not punctuation.any():
        return z
    words = np.flatnonzero(~punctuation)
    marks = np.flatnonzero(punctuation)
    behind = np.searchsorted(words, marks)  # the index of the next word
    sides, same = [], []
    for neighbour in (behind - 1, behind):
        exists = (neighbour >= 0) & (neighbour < len(words))
        at = words[np.clip(neighbour, 0, len(words) - 1)]
        sides.append(np.where(exists, z[at], np.float32(0)))
        same.append(np.zeros(len(marks)) if unit is None else exists & (unit[at] == unit[marks]))
    extended = z.copy()
    extended[marks] = np.maximum(np.minimum(*sides), np.maximum(sides[0] * same[0], sides[1] * same[1]))
    return extended
