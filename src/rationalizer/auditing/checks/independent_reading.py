"""Do the selected words support the label for a reader who does not know the model's codes?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rationalizer.auditing.altered_texts import with_words
from rationalizer.auditing.checks.base import CheckResult, check, measured, not_applicable
from rationalizer.auditing.context import AuditContext
from rationalizer.auditing.form_probe import bootstrap_mean
from rationalizer.auditing.synonyms import find_synonyms

PART = "Independent reading"
NO_READER = "An independent reader needs single texts of at least two classes."
MIN_AGREEMENT = 0.1  # an independent reader of whole texts must exceed chance by this, or it cannot judge
SUPPORT = 0.5  # of what whole texts tell the reader beyond random words: a rationale that tells it more is no leak
LOST_LABELS = 0.25  # synonyms may change this share of labels more than they change for the independent reader
MIN_REPLACED = 0.2  # of the selected words must have a synonym


@check("independent-reader", PART, "Does an independent reader find the label in the selected words?")
def independent_reader(context: AuditContext) -> CheckResult:
    reader = context.reader
    if reader is None:
        return not_applicable(NO_READER)
    numbers = np.arange(len(context.tokens))
    rng = context.random("independent-reader")
    shuffled = [_random_words(mask, rng) for mask in context.selected]
    whole = [np.ones(len(tokens), dtype=np.bool_) for tokens in context.tokens]
    if len(np.unique(context.predicted)) < 2:
        return not_applicable("The model predicts one label only.")
    chance = 1 / len(np.unique(context.predicted))
    hits = {
        # Without words there is nothing to read: not even the more frequent label counts as found.
        name: np.where([mask.any() for mask in masks], _read(context, masks, numbers) == context.predicted, chance)
        for name, masks in (("rationale", context.selected), ("random", shuffled), ("whole", whole))
    }
    balance = _class_balance(context.predicted)
    agreement = {name: float((balance * hit).mean()) for name, hit in hits.items()}
    if agreement["whole"] < chance + MIN_AGREEMENT * (1 - chance):
        return not_applicable(
            f"The independent reader of whole texts agrees with the model's labels in only {agreement['whole']:.0%} of "
            "the texts: it is too weak to judge."
        )
    gain = bootstrap_mean(balance * (hits["rationale"] - hits["random"]), rng)
    sentence = (
        "A bag-of-words model that the audit trained on whole texts agrees with the model's label in "
        f"{agreement['rationale']:.0%} of the texts if it reads the selected words, in {agreement['random']:.0%} if it "
        f"reads as many random words, in {agreement['whole']:.0%} if it reads everything (classes weighted equally)."
    )
    shown = f"{100 * gain.value:+.0f} points [{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]"
    if gain.low <= 0 and gain.high > SUPPORT * (agreement["whole"] - agreement["random"]):
        return replace(not_applicable(f"{sentence} Too few texts to tell the difference."), shown=shown)
    return measured(gain.low <= 0, gain.value, shown, sentence, **agreement, low=gain.low, high=gain.high)


@check("synonyms", PART, "Does the label survive synonyms in place of the selected words?")
def synonyms(context: AuditContext) -> CheckResult:
    reader = context.reader
    if reader is None:
        return not_applicable(NO_READER)
    words = {
        token.lower()
        for tokens, mask in zip(context.tokens, context.selected, strict=True)
        for token, selected in zip(tokens, mask, strict=True)
        if selected
    }
    table = find_synonyms(words, reader.models[0])
    replaced, total, altered = 0, 0, []
    for tokens, mask in zip(context.tokens, context.selected, strict=True):
        changed = [
            table.get(token.lower(), token) if selected else token for token, selected in zip(tokens, mask, strict=True)
        ]
        replaced += sum(new != old for new, old in zip(changed, tokens, strict=True))
        total += int(mask.sum())
        altered.append(tuple(changed))
    share = replaced / max(total, 1)
    if share < MIN_REPLACED:
        return not_applicable(f"Only {share:.0%} of the selected words have a synonym in the English word vectors.")
    texts = [with_words(example, tokens) for example, tokens in zip(context.examples, altered, strict=True)]
    numbers = np.arange(len(texts))
    kept = ~context.label_changes(context.model.predict_from(texts, context.weights), range(len(texts)))
    before = _read(context, context.selected, numbers)
    own = reader.read([_chosen(t, m) for t, m in zip(altered, context.selected, strict=True)], numbers).argmax(-1)
    loss = bootstrap_mean((own == before).astype(float) - kept, context.random("synonyms"))
    sentence = (
        f"With synonyms for {share:.0%} of the selected words, the model keeps {kept.mean():.0%} of its labels, "
        f"and the independent reader keeps {(own == before).mean():.0%} of its own."
    )
    return measured(
        loss.low > LOST_LABELS, float(kept.mean()), f"{kept.mean():.0%}", sentence, replaced=share, low=loss.low
    )


def _read(context: AuditContext, masks: Sequence[NDArray[np.bool_]], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    assert context.reader is not None
    texts = [_chosen(tokens, mask) for tokens, mask in zip(context.tokens, masks, strict=True)]
    return context.reader.read(texts, numbers).argmax(-1).astype(np.int64)


def _chosen(tokens: Sequence[str], mask: NDArray[np.bool_]) -> list[str]:
    return [tokens[k] for k in np.flatnonzero(mask).tolist()]


def _random_words(mask: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    return rng.permutation(mask)


def _class_balance(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """A factor for each text with which a mean over texts is the mean over classes."""
    counts = np.bincount(codes)
    balance: NDArray[np.float64] = len(codes) / (counts[codes] * (counts > 0).sum())
    return balance
