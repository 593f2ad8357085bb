"""Do dropped words reach the prediction?"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.auditing.altered_texts import NEW, main_text, rearrange, with_words
from rationalizer.auditing.audited_model import Weights
from rationalizer.auditing.checks.base import CheckResult, check, measured, not_applicable
from rationalizer.auditing.context import AuditContext
from rationalizer.text import AnyExample

PART = "Dropped words"
FREQUENT = 1000  # of the texts' words to replace dropped words by
# Other gaps change the shapes of tensors, and with them the last digits of sums.
ROUNDING = 1e-4
MOVED_LABELS = 0.02  # more labels may not change when the same words stand at other positions; a single one always may
NOTHING_DROPPED = "Every text is selected completely: there are no dropped words."


@check(
    "replaced-words", PART, "Do predictions stay the same, bit for bit, with other words in place of the dropped ones?"
)
def replaced_words(context: AuditContext) -> CheckResult:
    if not context.has_dropped_words:
        return not_applicable(NOTHING_DROPPED)
    rng = context.random("replaced-words")
    frequent = _frequent_words(context)
    made_up = ["".join(rng.choice(list(string.ascii_lowercase), size)) for size in (1, 7, 7, 40)]
    worst = np.zeros(len(context.examples))
    for words in (frequent, frequent[::-1], made_up):
        altered = [
            with_words(example, _replace(main_text(example).tokens, selected, words, rng))
            for example, selected in zip(context.examples, context.selected, strict=True)
        ]
        worst = np.maximum(worst, _change(context, context.model.predict_from(altered, context.weights)))
    changed = int((worst > 0).sum())
    largest = float(worst.max())
    sentence = (
        "Three times other words in place of all dropped ones: no bit of any prediction changed."
        if not changed
        else f"Dropped words change the predictions of {changed} of {len(worst)} texts, by up to {largest:.2g}."
    )
    return measured(changed > 0, largest, f"{largest:.2g}", sentence, texts_changed=changed, texts=len(worst))


@check("removed-words", PART, "Does the prediction stay the same when dropped words are removed or added?")
def removed_words(context: AuditContext) -> CheckResult:
    if not context.has_dropped_words:
        return not_applicable(NOTHING_DROPPED)
    if not context.model.ignores_gaps:
        return not_applicable(
            "The model does not promise this: the gaps between selected words are visible (see moved-words)."
        )
    rng = context.random("removed-words")
    frequent = _frequent_words(context)
    removed, added = [], []
    for example, weights, selected in zip(context.examples, context.weights, context.selected, strict=True):
        tokens = main_text(example).tokens
        kept = np.flatnonzero(selected).tolist() or [0]
        removed.append(rearrange(example, weights, [tokens[k] for k in kept], kept))
        origins = [k for position in range(len(tokens)) for k in (position, NEW)[: 2 - bool(selected[position])]]
        added.append(rearrange(example, weights, _fill(tokens, origins, frequent, rng), origins))
    worst = np.maximum(*(_change(context, _predict(context, altered)) for altered in (removed, added)))
    largest = float(worst.max())
    return measured(
        largest > ROUNDING,
        largest,
        f"{largest:.2g}",
        f"Without the dropped words, and with twice as many, predictions change by at most {largest:.2g} "
        f"(rounding: up to {ROUNDING:g}).",
        texts_changed=int((worst > ROUNDING).sum()),
    )


@check("moved-words", PART, "Do labels stay the same with other gaps between the same selected words?")
def moved_words(context: AuditContext) -> CheckResult:
    if not context.has_dropped_words:
        return not_applicable(NOTHING_DROPPED)
    rng = context.random("moved-words")
    altered = [
        _move(example, weights, selected, rng)
        for example, weights, selected in zip(context.examples, context.weights, context.selected, strict=True)
    ]
    outputs = _predict(context, altered)
    changed = int(context.label_changes(outputs, range(len(outputs))).sum())
    share = changed / len(outputs)
    largest = float(_change(context, outputs).max())
    return measured(
        changed > max(1, MOVED_LABELS * len(outputs)),
        share,
        f"{share:.1%}",
        f"With the gaps between the selected words at random places, {share:.1%} of the labels change "
        f"(limit {MOVED_LABELS:.0%}); predictions change by up to {largest:.2g}.",
        largest_change=largest,
    )


@check("same-path", PART, "Is the prediction that users get the one from the selected words?")
def same_path(context: AuditContext) -> CheckResult:
    outputs = context.model.predict(context.examples)
    if outputs is None:
        return not_applicable("The adapter has no other way to predict than from selected words.")
    largest = float(np.abs(outputs - context.outputs).max(initial=0.0))
    sentence = (
        "The prediction that users get is, bit for bit, the one from the selected words alone."
        if largest == 0
        else f"The prediction that users get differs from the one from the selected words by up to {largest:.2g}."
    )
    return measured(largest > 0, largest, f"{largest:.2g}", sentence)


def _frequent_words(context: AuditContext) -> list[str]:
    counts = Counter(token for tokens in context.tokens for token in tokens)
    return [word for word, _ in counts.most_common(FREQUENT)]


def _replace(
    tokens: Sequence[str], selected: NDArray[np.bool_], words: Sequence[str], rng: np.random.Generator
) -> list[str]:
    drawn = rng.integers(len(words), size=len(tokens))
    return [token if keep else words[k] for token, keep, k in zip(tokens, selected, drawn, strict=True)]


def _fill(tokens: Sequence[str], origins: Sequence[int], words: Sequence[str], rng: np.random.Generator) -> list[str]:
    return [tokens[k] if k != NEW else words[int(rng.integers(len(words)))] for k in origins]


def _move(
    example: AnyExample, weights: Weights, selected: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[AnyExample, Weights]:
    """The dropped words at random places between the selected ones. The first word stays: a text's beginning is not a
    gap."""
    tokens = main_text(example).tokens
    kept, dropped = np.flatnonzero(selected[1:]) + 1, np.flatnonzero(~selected[1:]) + 1
    places = np.sort(rng.integers(len(kept) + 1, size=len(dropped)))
    order = np.argsort(np.concatenate([np.arange(len(kept)) + 0.5, places]), kind="stable")
    origins = [0, *np.concatenate([kept, dropped])[order].tolist()]
    return rearrange(example, weights, [tokens[k] for k in origins], origins)


def _predict(context: AuditContext, altered: Sequence[tuple[AnyExample, Weights]]) -> NDArray[np.float32]:
    return context.model.predict_from([text for text, _ in altered], [weights for _, weights in altered])


def _change(context: AuditContext, outputs: Any) -> NDArray[np.float64]:
    """(texts,) the largest change of a probability, or the change of the value."""
    return np.abs(outputs - context.outputs).reshape(len(outputs), -1).max(1)
