"""How well people agree with each other, and a model in the place of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rationalizer.metrics._validation import as_masks, as_scores, require_same_count, require_same_lengths
from rationalizer.metrics.plausibility import auprc


@dataclass(frozen=True)
class AnnotatorAgreement:
    """Agreement with people of one who marks words: a person, a model, or chance."""

    token_f1: float
    auprc: float


@dataclass(frozen=True)
class AnnotatorComparison:
    """Each person of a text in turn is left out; then those who take their place are compared with the others.

    Token-F1: with each of the others, the person left out, the model (which selects as many words as that person
    marked) and so many words drawn at random (in expectation). AUPRC: with the person left out, the share of the others
    who marked each word, the model's scores, and random ones. Words that as many people marked come in random order,
    since ties are worth more than they should be to AUPRC.
    """

    person: AnnotatorAgreement
    model: AnnotatorAgreement
    chance: AnnotatorAgreement
    texts: int  # with two people or more
    skipped: int
    people: float  # a text, in the mean
    marked: float  # share of a text's words that a person marked, in the mean


def compare_with_annotators(
    people: Sequence[Sequence[Any] | None], selections: Sequence[Sequence[Any] | None], scores: Sequence[Any]
) -> AnnotatorComparison:
    """A model beside the people who marked the same texts. Means over texts, of each the mean over the people left out
    (and over those that they are compared with).

    Args:
        people: per text, what each person marked: one 0/1 per token; None where nobody did.
        selections: per text and person, what the model selects with as many words as the person marked.
        scores: per text, one number per token, larger for more important ones.
    """
    total = require_same_count(people=people, selections=selections, scores=scores)
    rows = []
    random = np.random.default_rng(0)
    for document, (marks, chosen, ranking) in enumerate(zip(people, selections, scores, strict=True)):
        if marks is None or len(marks) < 2:
            continue
        if chosen is None or len(chosen) != len(marks):
            raise ValueError(f"document {document}: a selection for each of its {len(marks)} people is needed")
        masks, own = as_masks(marks, f"people[{document}]"), as_masks(chosen, f"selections[{document}]")
        ranks = as_scores([ranking] * len(masks), "scores")
        require_same_lengths(people=masks, selections=own, scores=ranks)
        rows.append(_compared(np.array(masks), np.array(own), ranks[0], random))
    if not rows:
        raise ValueError(f"none of the {total} texts was marked by two people or more; there is nothing to compare")
    person, model, chance, person_area, model_area, chance_area, count, share = np.mean(rows, axis=0).tolist()
    return AnnotatorComparison(
        AnnotatorAgreement(person, person_area),
        AnnotatorAgreement(model, model_area),
        AnnotatorAgreement(chance, chance_area),
        len(rows),
        total - len(rows),
        count,
        share,
    )


def _compared(masks: Any, own: Any, ranking: Any, random: np.random.Generator) -> tuple[float, ...]:
    many, n = masks.shape
    sizes = masks.sum(axis=1)
    pairs = [(i, j) for i in range(many) for j in range(many) if i != j]  # i is left out, j one of the others
    left, other = np.array(pairs).T
    total = np.maximum(sizes[left] + sizes[other], 1)
    person = 2 * (masks[left] & masks[other]).sum(axis=1) / total
    model = 2 * (own[left] & masks[other]).sum(axis=1) / np.maximum(own[left].sum(axis=1) + sizes[other], 1)
    chance = 2 * (sizes[left] * sizes[other] / n) / total
    marked = [i for i in range(many) if sizes[i]]
    drawn = [random.random(n) for _ in marked]
    others = [np.delete(masks, i, axis=0).sum(axis=0) + order for i, order in zip(marked, drawn, strict=True)]
    rankings = (others, [ranking] * len(marked), drawn)
    areas = (auprc(each, [masks[i] for i in marked]).auprc if marked else 0.0 for each in rankings)
    return (person.mean(), model.mean(), chance.mean(), *areas, many, masks.mean())
