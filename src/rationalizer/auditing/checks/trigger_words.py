"""Do single words without meaning for the label change it, or change what is selected?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rationalizer.auditing.altered_texts import insert_word, main_text, selected_words
from rationalizer.auditing.checks.base import CheckResult, check, measured, not_applicable
from rationalizer.auditing.context import AuditContext
from rationalizer.constraints.stopwords import STOPWORDS
from rationalizer.text import is_punctuation

PART = "Robustness"
WORDS = 20  # words that are tried
SEARCHED, CONFIRMED = 40, 300  # texts of the search, and other texts on which its result is confirmed
FLIPPED = 0.2  # more labels may not change because of one neutral word
DISPLACED = 0.3  # in more texts it may not displace over half of the rationale while the label stays


@check("triggers", PART, "Is there a neutral word that flips the label, or the rationale, of many texts?")
def triggers(context: AuditContext) -> CheckResult:
    words = _neutral_words(context)
    order = context.random("triggers").permutation(len(context.examples)).tolist()
    search, confirm = order[: min(SEARCHED, len(order) // 2)], order[len(order) // 2 :][:CONFIRMED]
    if not words:
        return not_applicable(
            "The texts have few English function words, and no reader can tell which words are neutral."
        )
    trials = [(word, end) for word in words for end in (False, True)]
    rates = np.array([_effects(context, trial, search).mean(1) for trial in trials])
    flip, displace = (trials[int(np.argmax(rates[:, k]))] for k in range(2))
    flipped = float(_effects(context, flip, confirm)[0].mean())
    displaced = float(_effects(context, displace, confirm)[1].mean())
    # A model that draws words at random changes its answers without any insertion.
    weights, outputs = context.second_run
    chance = _changes(context, [selected_words(row) for row in weights], outputs, range(len(weights))).mean(1)
    sentence = (
        f"Of {len(words)} neutral words, {_describe(flip)} of a text flips the most labels: {flipped:.1%} of "
        f"{len(confirm)} other texts (limit {FLIPPED:.0%}). {_describe(displace)} replaces over half of the rationale, "
        f"with the same label, in {displaced:.1%} (limit {DISPLACED:.0%})."
    )
    if chance.any():
        sentence += (
            f" Without any insertion, a second run does so in {chance[0]:.1%} and {chance[1]:.1%} of the texts; only "
            "what exceeds this counts."
        )
    return measured(
        flipped - chance[0] > FLIPPED or displaced - chance[1] > DISPLACED,
        flipped,
        f"{flipped:.1%}",
        sentence,
        displaced=displaced,
        word=flip[0],
        displacing=displace[0],
        without_insertion=chance.tolist(),
    )


def _neutral_words(context: AuditContext) -> list[str]:
    """Frequent English function words, or other frequent words if the texts have few of them; with a reader, those that
    matter least to it. Without one, nothing tells which other words are neutral."""
    counts = Counter(token.lower() for tokens in context.tokens for token in set(tokens) if not is_punctuation(token))
    frequent = [word for word, _ in counts.most_common() if word in STOPWORDS][: 2 * WORDS]
    if len(frequent) < WORDS // 3:
        frequent = [word for word, _ in counts.most_common(2 * WORDS)] if context.reader is not None else []
    if context.reader is not None:
        importance = context.reader.models[0].importance(frequent)
        frequent = [frequent[k] for k in np.argsort(importance, kind="stable")]
    return frequent[:WORDS]


def _effects(context: AuditContext, trial: tuple[str, bool], numbers: Sequence[int]) -> NDArray[np.bool_]:
    """(2, texts): what the word changes, see `_changes`."""
    word, at_end = trial
    examples = [context.examples[number] for number in numbers]
    places = [len(main_text(example).tokens) if at_end else 0 for example in examples]
    texts = [insert_word(example, word, place) for example, place in zip(examples, places, strict=True)]
    weights, outputs = context.model.select_and_predict(texts)
    masks = [np.delete(selected_words(row), place) for row, place in zip(weights, places, strict=True)]
    return _changes(context, masks, outputs, numbers)


def _changes(
    context: AuditContext,
    masks: Sequence[NDArray[np.bool_]],
    outputs: NDArray[np.float32],
    numbers: Sequence[int],
) -> NDArray[np.bool_]:
    """(2, texts): whether the label changes; whether it stays and over half of the selected words are dropped."""
    changed = context.label_changes(outputs, numbers)
    before = [context.selected[number] for number in numbers]
    displaced = [2 * int((a & b).sum()) < int(a.sum()) for a, b in zip(before, masks, strict=True)]
    return np.stack([changed, np.array(displaced) & ~changed])


def _describe(trial: tuple[str, bool]) -> str:
    return f"“{trial[0]}” at the {'end' if trial[1] else 'beginning'}"
