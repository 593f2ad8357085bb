"""Are budget and constraints kept, and is the answer for a text always the same?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rationalizer.auditing.altered_texts import selected_words
from rationalizer.auditing.audited_model import Weights
from rationalizer.auditing.checks.base import CheckResult, check, measured, not_applicable
from rationalizer.auditing.context import AuditContext

PART = "Guarantees"
ALONE = 100  # texts that are also predicted one at a time
# Another batch changes the shapes of tensors, and with them the last digits of scores: near-equal scores may swap.
OTHER_WORDS = 0.01
ROUNDING = 1e-4


@check("budget", PART, "Does every rationale keep the budget?")
def budget(context: AuditContext) -> CheckResult:
    limits = context.model.limits(context.examples)
    if limits is None:
        return not_applicable("The model promises no budget.")
    counts = []
    for example, weights in zip(context.examples, context.weights, strict=True):
        if weights.ndim == 2:
            counts.append(int((weights != 0).sum()))
        else:
            counts.append(int((selected_words(weights) & context.model.counted(example)).sum()))
    least = context.model.least(context.examples) or [0] * len(counts)
    over = sum(count > limit for count, limit in zip(counts, limits, strict=True))
    under = sum(count < limit for count, limit in zip(counts, least, strict=True))
    unit = "links" if context.model.pairs else "words"
    if not over + under:
        sentence = f"All {len(counts)} rationales keep their budget."
    else:
        found = ((over, "more", "allows"), (under, "fewer", "requires"))
        sentences = [
            f"{count} of {len(counts)} rationales have {size} {unit} than their budget {verb}."
            for count, size, verb in found
            if count
        ]
        sentence = " ".join(sentences)
    return measured(over + under > 0, over + under, str(over + under), sentence)


@check("constraints", PART, "Does every rationale satisfy the constraints?")
def constraints(context: AuditContext) -> CheckResult:
    violated = context.model.violations(context.examples, context.weights)
    if violated is None:
        return not_applicable("The model has no constraints besides its budget (factors of your own are not checked).")
    count = sum(violated)
    sentence = (
        f"All {len(violated)} rationales satisfy the constraints."
        if not count
        else f"{count} of {len(violated)} rationales violate a constraint."
    )
    return measured(count > 0, count, str(count), sentence)


@check("batches", PART, "Is the answer for a text the same alone, in another batch and in another order?")
def batches(context: AuditContext) -> CheckResult:
    backwards = list(range(len(context.examples)))[::-1]
    alone = context.sample("batches", ALONE)
    halves = [backwards[::2], backwards[1::2]]
    calls: list[Sequence[int]] = [backwards, *halves, *([number] for number in alone)]
    other_words, compared, largest = 0, 0, 0.0
    for numbers in calls:
        texts = [context.examples[number] for number in numbers]
        weights = context.model.select(texts)
        outputs = context.model.predict_from(texts, [context.weights[number] for number in numbers])
        largest = max(largest, float(np.abs(outputs - context.outputs[list(numbers)]).max(initial=0.0)))
        compared += len(numbers)
        other_words += _other_words(weights, [context.weights[number] for number in numbers])
    share = other_words / max(compared, 1)
    sentence = (
        f"In other batches, in reverse order and alone: {other_words} of {compared} rationales differ, and predictions "
        f"from the same words differ by at most {largest:.2g} (rounding: up to {ROUNDING:g})."
    )
    again = _other_words(context.second_run[0], context.weights)
    if again:
        sentence += (
            f" In the same batches, {again} of {len(context.weights)} rationales differ as well (see repetition)."
        )
    leaks = share > OTHER_WORDS or largest > ROUNDING
    shown = f"{share:.0%} of rationales" if share > OTHER_WORDS else f"{largest:.2g}"
    return measured(leaks, largest, shown, sentence, other_rationales=other_words, compared=compared, again=again)


@check("repetition", PART, "Does a second run give the same bits?")
def repetition(context: AuditContext) -> CheckResult:
    weights, outputs = context.second_run
    same = [np.array_equal(a, b) for a, b in zip(weights, context.weights, strict=True)]
    equal = np.array([np.array_equal(a, b) for a, b in zip(outputs, context.outputs, strict=True)])
    changed = int((~(np.array(same) & equal)).sum())
    sentence = (
        "A second run gives the same words and the same bits."
        if not changed
        else f"A second run gives other words or other bits for {changed} of {len(same)} texts."
    )
    return measured(changed > 0, changed, str(changed), sentence)


def _other_words(rationales: Sequence[Weights], others: Sequence[Weights]) -> int:
    """How many rationales select other words."""
    return sum(not np.array_equal(a != 0, b != 0) for a, b in zip(rationales, others, strict=True))
