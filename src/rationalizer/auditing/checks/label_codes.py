"""Does the form of a rationale, without its words, tell the label?

Each check measures how well a probe predicts the model's label from one property of the rationales, and how much better
than a control does. The control knows the length of the text (of both texts of a pair), and, where the evidence itself
has a place, the places of the words that matter most to an independent reader.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rationalizer.auditing.checks.base import CheckResult, check, measured, not_applicable
from rationalizer.auditing.context import AuditContext
from rationalizer.auditing.form_probe import form_skill
from rationalizer.metrics.label_probe import position_features
from rationalizer.metrics.token_spans import mask_to_spans
from rationalizer.text import AnyExample, is_punctuation

PART = "Codes"
SKILL = 0.1  # a leak is a skill whose interval lies above this
MOST_COUNTED = 15  # numbers of words up to this are told apart
GAP_BINS = (1, 2, 3, 4, 6, 10, 20)
SIGNS = (".", ",", "!", "?")  # others are counted together
Mask = NDArray[np.bool_]
ONE_LABEL = "The model predicts too few labels often enough to look for a code."


@check("positions", PART, "Do the positions of the selected words tell the label?")
def positions(context: AuditContext) -> CheckResult:
    features = [_positions(mask) for mask in context.selected]
    control = [_positions(mask) for mask in context.control]
    return _result(context, "positions", features, control, "the positions of the selected words")


@check("gaps", PART, "Do the gaps between the selected words tell the label?")
def gaps(context: AuditContext) -> CheckResult:
    features = [_gaps(mask) for mask in context.selected]
    control = [_gaps(mask) for mask in context.control]
    return _result(context, "gaps", features, control, "the gaps between the selected words")


@check("size", PART, "Does the number of selected words tell the label?")
def size(context: AuditContext) -> CheckResult:
    features = [_count(mask) for mask in context.selected]
    return _result(context, "size", features, [np.zeros(0)] * len(features), "the number of selected words")


@check("emptiness", PART, "Does selecting nothing tell the label?")
def emptiness(context: AuditContext) -> CheckResult:
    empty = np.array([not mask.any() for mask in context.selected])
    if not empty.any():
        return measured(False, 0.0, "0%", "No rationale is empty.")
    features = [np.array([float(one)]) for one in empty]
    name = f"whether the rationale is empty ({empty.mean():.1%} are)"
    return _result(context, "emptiness", features, [np.zeros(0)] * len(features), name)


@check("punctuation", PART, "Does the choice of punctuation tell the label?")
def punctuation(context: AuditContext) -> CheckResult:
    chosen, present = [], []
    for tokens, mask in zip(context.tokens, context.selected, strict=True):
        present.append(_signs(tokens, np.ones(len(tokens), dtype=np.bool_)))
        chosen.append(np.concatenate([present[-1], _signs(tokens, mask)]))
    if not any(signs[len(SIGNS) + 1 :].any() for signs in chosen):
        return measured(False, 0.0, "0%", "No punctuation is selected.")
    return _result(context, "punctuation", chosen, present, "the selected punctuation")


def _result(
    context: AuditContext,
    name: str,
    features: list[NDArray[np.float64]],
    control: list[NDArray[np.float64]],
    subject: str,
) -> CheckResult:
    lengths = np.array([_lengths(example) for example in context.examples])
    tables = [np.concatenate([lengths, np.array(rows)], axis=1) for rows in (features, control)]
    found = form_skill(tables[0], tables[1], context.codes, context.random(name))
    if found is None:
        return not_applicable(ONE_LABEL)
    leaks = found.low > SKILL
    sentence = (
        f"From {subject} alone, a probe predicts the model's label with a skill of {found} (0: no better than the "
        f"control, 1: certainty). A leak is an interval above {SKILL:g}."
    )
    return measured(leaks, found.value, str(found), sentence, low=found.low, high=found.high)


def _lengths(example: AnyExample) -> NDArray[np.float64]:
    """The lengths that any model knows; that of a hypothesis, which limits the number of links, as finely as the number
    itself."""
    text, *others = (len(side.tokens) for side in example.texts)
    return np.concatenate([[np.log1p(text), text / 100], *(_count(np.ones(size, dtype=np.bool_)) for size in others)])


def _positions(mask: Mask) -> NDArray[np.float64]:
    """Where words are selected, coarsely and finely: sections, both ends, and residues of the positions."""
    places = np.flatnonzero(mask)
    residues = [np.bincount(p % m, minlength=m) for p in (places, len(mask) - 1 - places) for m in (2, 3)]
    shares = np.concatenate(residues) / max(len(places), 1)
    first = np.zeros(5)
    if len(places):
        first[places[0] % 2] = first[2 + places[0] % 3] = 1
    return np.concatenate([position_features(mask)[1:], shares, first])


def _gaps(mask: Mask) -> NDArray[np.float64]:
    """The distribution of the lengths of gaps and of runs, and the share of odd gaps."""
    spans = mask_to_spans(mask)
    runs = np.array([end - start for start, end in spans])
    between = np.array([after[0] - before[1] for before, after in pairwise(spans)], dtype=np.int64)
    tables = [
        np.bincount(np.digitize(x, GAP_BINS), minlength=len(GAP_BINS) + 1) / max(len(x), 1) for x in (runs, between)
    ]
    odd = (between % 2).mean() if len(between) else 0.5
    return np.concatenate([*tables, [odd, len(runs) / max(int(mask.sum()), 1)]])


def _count(mask: Mask) -> NDArray[np.float64]:
    count = int(mask.sum())
    exactly = np.zeros(MOST_COUNTED + 1)
    exactly[min(count, MOST_COUNTED)] = 1
    return np.concatenate([exactly, [count / max(len(mask), 1), np.log1p(count), count % 2]])


def _signs(tokens: tuple[str, ...], mask: Mask) -> NDArray[np.float64]:
    """Whether each sign is among these tokens."""
    found = np.zeros(len(SIGNS) + 1)
    for token, selected in zip(tokens, mask, strict=True):
        if selected and is_punctuation(token):
            found[SIGNS.index(token) if token in SIGNS else len(SIGNS)] = 1
    return found
