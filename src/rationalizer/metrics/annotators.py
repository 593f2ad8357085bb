"""Agreement among annotators, and of the model with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from rationalizer.metrics._validation import as_masks, as_scores, require_same_count, require_same_lengths
from rationalizer.metrics.plausibility import auprc


@dataclass(frozen=True)
class AnnotatorAgreement:
    """Agreement of a person, a model, or chance with the annotators."""

    token_f1: float
    auprc: float


@dataclass(frozen=True)
class AnnotatorComparison:
    """Leave-one-out comparison: each person of a text is left out in turn and replaced by a model or by chance.

    Token-F1 is computed against each of the other people, for three selections of equal size: the annotation of the
    person left out, the model's rationale, and random words (in expectation). AUPRC is computed against the annotation
    of the person left out, for three rankings of the words: by the share of the other people who marked them, by the
    model's scores, and at random. Words that equally many people marked are in random order, because AUPRC favours
    ties.
    """

    person: AnnotatorAgreement
    model: AnnotatorAgreement
    chance: AnnotatorAgreement
    texts: int  # number of texts with at least two annotators
    skipped: int
    people: float  # mean number of annotators per text
    marked: float  # mean share of a text's words that a person marked


def compare_with_annotators(
    people: Sequence[Sequence[Any] | None], selections: Sequence[Sequence[Any] | None], scores: Sequence[Any]
) -> AnnotatorComparison:
    """Compare a model with the people who annotated the same texts. Scores are means over texts; the score of a text is
    the mean over the people left out and over those they are compared with.

    Args:
        people: per text, what each person marked: one 0/1 per token; None if nobody did.
        selections: per text and person, the model's selection with as many words as the person marked.
        scores: per text, one number per token, larger for more important ones.
    """
    total = require_same_count(people=people, selections=selections, scores=scores)
    rows = []
    random = np.random.default_rng(0)
    for document, (annotated, selected, ranking) in enumerate(zip(people, selections, scores, strict=True)):
        if annotated is None or len(annotated) < 2:
            continue
        if selected is None or len(selected) != len(annotated):
            raise ValueError(f"document {document}: needs one selection for each of its {len(annotated)} people")
        masks, own = as_masks(annotated, f"people[{document}]"), as_masks(selected, f"selections[{document}]")
        ranks = as_scores([ranking] * len(masks), "scores")
        require_same_lengths(people=masks, selections=own, scores=ranks)
        rows.append(_compare_text(np.array(masks), np.array(own), ranks[0], random))
    if not rows:
        raise ValueError(f"none of the {total} texts has at least two annotators")
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


def _compare_text(masks: Any, own: Any, ranking: Any, random: np.random.Generator) -> tuple[float, ...]:
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


@dataclass(frozen=True)
class PairAgreement:
    """Agreement of two people, or of a model and a person, on the texts that both annotated."""

    texts: int
    token_f1: float | None  # mean over the texts in which either marked something; None if there is none
    same_label: float | None  # share of the texts labelled by both with the same label; None if there is none


def agreement_of_pair(
    first: Mapping[Any, Set[Any]],
    second: Mapping[Any, Set[Any]],
    first_labels: Mapping[Any, Any] | None = None,
    second_labels: Mapping[Any, Any] | None = None,
) -> PairAgreement:
    """Compare two annotators.

    Args:
        first, second: for each text that this annotator annotated, the set of the words, or links, marked.
        first_labels, second_labels: the labels chosen; for several labels of a text, a list.
    """
    shared = first.keys() & second.keys()
    f1 = [2 * len(first[k] & second[k]) / (len(first[k]) + len(second[k])) for k in shared if first[k] or second[k]]
    labels = [((first_labels or {}).get(key), (second_labels or {}).get(key)) for key in shared]
    same = [_as_set(one) == _as_set(other) for one, other in labels if one is not None and other is not None]
    return PairAgreement(len(shared), float(np.mean(f1)) if f1 else None, float(np.mean(same)) if same else None)


def _as_set(label: Any) -> frozenset[str]:
    return frozenset(map(str, label if isinstance(label, (list, tuple, set)) else [label]))
