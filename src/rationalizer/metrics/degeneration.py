"""Degeneration: a model can have good scores while its rationales mean nothing.

`find_degeneration` compares measured values with the thresholds below. A finding is a reason to look at examples, not a
proof.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rationalizer.metrics._validation import (
    Floats,
    Mask,
    Task,
    as_label_pair,
    as_labels,
    as_masks,
    as_numbers,
    require_same_count,
    require_task,
)
from rationalizer.metrics.label_probe import FOLDS, cross_validated, mean_recall, position_features, shuffle_runs
from rationalizer.metrics.registry import METRICS
from rationalizer.plurals import count_of

# Shares of empty rationales (of texts with tokens) and of complete ones (of texts that are not short: a rationale of at
# least one token easily covers those) above these are reported.
EMPTY_SHARE = 0.01
FULL_SHARE = 0.01
FULL_LENGTH = 5
# `position_skill`, and `label_skill` or `size_skill`, above these are reported, given enough documents. Selecting a
# random fifth of the text within its first half has a position skill of 0.5; always the middle fifth has 0.8.
POSITION_SKILL = 0.7
POSITION_DOCUMENTS = 20
LABEL_SKILL = 0.3
LABEL_DOCUMENTS = 200
STANDARD_ERRORS = 2.0  # a predictor must exceed a constant prediction by this many

UNPREDICTED_TEXTS = 3  # documents of a class that is never predicted; fewer are not reported
NAMED_CLASSES = 5  # in a message
_ROUNDING = 1e-9
_SAMPLE = 5000  # documents, enough to measure a skill
_CONTROLS = 3
_SECTIONS = 20
_BINS = 10
_NEIGHBOURS = 20  # texts of similar length among which the control of `size_skill` exchanges sizes

FindingKind = Literal[
    "empty_rationales",
    "full_rationales",
    "ignores_text",
    "no_better_than_majority",
    "label_from_position",
    "label_from_size",
    "unpredicted_classes",
]


@dataclass(frozen=True)
class Finding:
    """A sign of degeneration: its kind, a message, and the measured value behind it."""

    kind: FindingKind
    message: str
    value: float


def find_degeneration(
    masks: Sequence[Any],
    *,
    truth: Sequence[Any] | None = None,
    predictions: Sequence[Any] | None = None,
    task: Task = "classification",
) -> list[Finding]:
    """Look for signs of degeneration; an empty list means that there are none.

    - `empty_rationales`, `full_rationales`: the share of texts with nothing, or everything, selected.
    - `ignores_text`: `position_skill`, how well a token's position predicts whether it is selected.
    - `no_better_than_majority` (needs `truth` and `predictions`): mean recall over the classes within two standard
      errors of 1 / classes, the value of any constant prediction; for regression, a squared error that is not two
      standard errors below that of predicting the mean. With so few texts that two standard errors exceed half of
      what a perfect predictor gains, only a predictor that gains nothing is reported.
    - `label_from_position` (needs `truth`): `label_skill`, how well the selected positions alone predict the label.
    - `label_from_size` (needs `truth`): `size_skill`, how well the number of selected tokens alone predicts the label.

    Args:
        masks: per document, the rationale: one 0/1 per token.
        truth: per document, the true class or number.
        predictions: per document, the predicted class or number.
        task: `"classification"` or `"regression"`.
    """
    require_task(task)
    rationales = as_masks(masks, "masks")
    arguments = {"masks": rationales, "truth": truth, "predictions": predictions}
    require_same_count(**{name: values for name, values in arguments.items() if values is not None})
    findings = [_empty(rationales), _full(rationales), _ignores_text(rationales)]
    if truth is not None and predictions is not None:
        findings.append(_no_better(truth, predictions, task))
    if truth is not None and len(rationales) >= LABEL_DOCUMENTS:
        classes = _as_classes(truth, task)
        sentence = "by its position: the selected positions alone, without the words, predict"
        findings.append(_encodes_label("label_from_position", sentence, label_skill(rationales, classes)))
        sentence = "by its size: the number of selected words alone, without the words, predicts"
        findings.append(_encodes_label("label_from_size", sentence, size_skill(rationales, classes)))
    return [finding for finding in findings if finding is not None]


def find_unpredicted_classes(
    truth: Sequence[Any], predictions: Sequence[Any], names: Sequence[str] | None = None
) -> Finding | None:
    """Look for classes that occur but are never predicted; `names` are the names of the classes 0, 1, ..., if `truth`
    and `predictions` are such numbers. The finding's value is the share of documents of these classes."""
    labels, guesses = as_label_pair(truth, predictions)
    found, counts = np.unique(labels, return_counts=True)
    predicted = set(guesses.tolist())
    missing = {
        str(name if names is None else names[name]): count
        for name, count in zip(found.tolist(), counts.tolist(), strict=True)
        if count >= UNPREDICTED_TEXTS and name not in predicted
    }
    if not missing or len(found) < 2:
        return None
    message = (
        f"the model never predicts {list_classes(missing)}; add training texts of rare classes, or raise their weight "
        "(class_weight)"
    )
    return Finding("unpredicted_classes", message, sum(missing.values()) / len(labels))


def list_classes(counts: Mapping[str, int]) -> str:
    """List classes with their numbers of texts; only the first if there are many."""
    first = list(counts.items())[:NAMED_CLASSES]
    listed = ", ".join(f"{name!r} ({count_of(count, 'text')})" for name, count in first)
    return listed + (f" and {len(counts) - NAMED_CLASSES} other classes" if len(counts) > NAMED_CLASSES else "")


def position_skill(masks: Sequence[Any]) -> float:
    """How well positions alone predict which tokens are selected: 0 is chance, 1 is certainty.

    For each text, guess the tokens at the positions that are selected most often in the *other* texts, as many as the
    text has selected. The skill is (share of correct guesses − share expected by chance) / (1 − that share), over all
    texts. Positions are counted from the start, from the end, and relative to the length; the largest of the three
    skills is returned. Texts with an empty or a full selection are ignored; with fewer than two others it is 0.
    """
    usable = [mask for mask in as_masks(masks, "masks") if mask.any() and not mask.all()]
    if len(usable) < 2:
        return 0.0
    sample = usable[:: -(-len(usable) // _SAMPLE)]
    return max(_position_skill(sample, positions) for positions in (_from_start, _from_end, _relative))


def label_skill(masks: Sequence[Any], truth: Sequence[Any]) -> float:
    """How well the selected positions alone, without the words, predict the class: 0 is chance, 1 is certainty.

    A linear probe (ridge regression on class indicators, classes weighted equally, 5-fold cross-validation) sees the
    distribution of the selection over ten equal sections of the text, and whether each of the first and last five
    tokens is selected. Its score a is the mean recall over classes; the skill is (a − b) / (1 − b). The baseline b is
    1/C, or, if larger, the probe's score after the runs of selected tokens are moved to random positions: a class with
    longer texts or rationales is not a code by position. Classes with fewer than five documents are ignored; with
    fewer than two others the skill is 0.
    """
    rationales, labels = as_masks(masks, "masks"), as_labels(truth, "truth")
    require_same_count(masks=rationales, truth=labels)
    rng = np.random.default_rng(0)
    sample, codes = _probed_texts(labels, rng)
    sampled = [rationales[i] for i in sample]
    return _skill(
        lambda: _probe_recall(sampled, codes),
        lambda: _probe_recall([shuffle_runs(mask, rng) for mask in sampled], codes),
        codes,
    )


def size_skill(masks: Sequence[Any], truth: Sequence[Any]) -> float:
    """How well the number of selected tokens alone predicts the class, beyond the text's length: 0 is chance, 1 is
    certainty.

    The probe of `label_skill` sees the number of selected tokens and their share, both in ten bins of equal frequency,
    whether there are none, and the length of the text, in such bins, too. The baseline is the largest of 1/C and the
    probe's score after texts of similar length have exchanged their numbers: a number that follows from the length, as
    under a fixed share, is not a code.
    """
    rationales, labels = as_masks(masks, "masks"), as_labels(truth, "truth")
    require_same_count(masks=rationales, truth=labels)
    rng = np.random.default_rng(0)
    sample, codes = _probed_texts(labels, rng)
    sizes = np.array([rationales[i].sum() for i in sample], dtype=np.float64)
    lengths = np.array([len(rationales[i]) for i in sample], dtype=np.float64)
    return _skill(
        lambda: _size_recall(sizes, lengths, codes),
        lambda: _size_recall(_exchange(sizes, lengths, rng), lengths, codes),
        codes,
    )


def _probed_texts(labels: NDArray[Any], rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A random sample of the texts of classes that are large enough for the probe, and the class of each."""
    sample = rng.permutation(len(labels))[:_SAMPLE]
    _, codes, counts = np.unique(labels[sample], return_inverse=True, return_counts=True)
    sample = sample[counts[codes] >= FOLDS]
    return sample, np.unique(labels[sample], return_inverse=True)[1]


def _skill(probe: Callable[[], float], control: Callable[[], float], codes: NDArray[np.int64]) -> float:
    """How far the probe's recall is above that of its controls, as a share of what is possible; 0 for one class."""
    classes = len(np.unique(codes))
    if classes < 2:
        return 0.0
    base = max(1 / classes, float(np.mean([control() for _ in range(_CONTROLS)])))
    return max(0.0, (probe() - base) / (1 - base)) if base < 1 else 0.0


def _exchange(sizes: Floats, lengths: Floats, rng: np.random.Generator) -> Floats:
    """Permute the sizes of texts of similar length."""
    order = np.lexsort((rng.random(len(sizes)), lengths))
    exchanged = np.empty_like(sizes)
    for start in range(0, len(order), _NEIGHBOURS):
        group = order[start : start + _NEIGHBOURS]
        exchanged[group] = sizes[rng.permutation(group)]
    return exchanged


def _size_recall(sizes: Floats, lengths: Floats, codes: NDArray[np.int64]) -> float:
    """The cross-validated probe's mean recall over the classes."""
    features = [np.ones((len(sizes), 1)), (sizes == 0)[:, None]]
    for values in (sizes, sizes / np.maximum(lengths, 1), lengths):
        bins = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)))
        features.append(np.eye(len(bins))[np.searchsorted(bins, values)])
    return mean_recall(codes, cross_validated(np.concatenate(features, axis=1), codes))[0]


def _empty(masks: list[Mask]) -> Finding | None:
    texts = [mask for mask in masks if len(mask)]
    share = float(np.mean([not mask.any() for mask in texts])) if texts else 0.0
    if share <= EMPTY_SHARE:
        return None
    return Finding("empty_rationales", f"{share:.1%} of the texts have an empty rationale; raise the budget", share)


def _full(masks: list[Mask]) -> Finding | None:
    texts = [mask for mask in masks if len(mask) >= FULL_LENGTH]
    share = float(np.mean([mask.all() for mask in texts])) if texts else 0.0
    if share <= FULL_SHARE:
        return None
    message = f"{share:.1%} of the texts are selected completely, which explains nothing; lower the budget"
    return Finding("full_rationales", message, share)


def _ignores_text(masks: list[Mask]) -> Finding | None:
    if sum(bool(mask.any() and not mask.all()) for mask in masks) < POSITION_DOCUMENTS:
        return None
    skill = position_skill(masks)
    if skill <= POSITION_SKILL:
        return None
    message = (
        "the same positions are selected in every text: "
        f"position alone predicts the selection with skill {_share(skill)} (0: chance, 1: certainty)"
    )
    return Finding("ignores_text", message, skill)


def _no_better(truth: Sequence[Any], predictions: Sequence[Any], task: str) -> Finding | None:
    if task == "regression":
        y, guess = as_numbers(truth, "truth"), as_numbers(predictions, "predictions")
        error, possible = (y - guess) ** 2, (y - y.mean()) ** 2
        margins = [STANDARD_ERRORS * float(gain.std()) / np.sqrt(len(y)) for gain in (possible - error, possible)]
        gain = float(np.mean(possible - error))
        if not _gains_nothing(gain, float(possible.mean()), *margins):
            return None
        message = (
            f"the predictor is {_no_better_text(gain, len(y))} predicting the mean: its squared error is "
            f"{error.mean():.4g}, that of the mean {y.var():.4g}{_chance_text(gain, f'{margins[0]:.4g}')}"
        )
        return Finding("no_better_than_majority", message, float(error.mean()))
    labels, guesses = as_label_pair(truth, predictions)
    names, codes = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        return None
    position = np.minimum(np.searchsorted(names, guesses), len(names) - 1)
    recall, counts = mean_recall(codes, np.where(names[position] == guesses, position, -1))
    chance = 1 / len(names)
    margin = STANDARD_ERRORS * float(np.sqrt(np.sum(chance * (1 - chance) / counts)) / len(names))
    if not _gains_nothing(recall - chance, 1 - chance, margin, margin):
        return None
    gain = recall - chance
    message = (
        f"the predictor is {_no_better_text(gain, len(codes))} always predicting one class: mean recall over the "
        f"{len(names)} classes is {_share(recall)}, that of one class {_share(chance)}"
        f"{_chance_text(gain, _share(margin))}"
    )
    return Finding("no_better_than_majority", message, recall)


def _share(value: float) -> str:
    """As in tables of scores."""
    return METRICS["accuracy"].format_value(value)


def _no_better_text(gain: float, documents: int) -> str:
    return "no better than" if gain <= 0 else f"not significantly better, on {documents} texts, than"


def _chance_text(gain: float, margin: str) -> str:
    if gain <= 0:
        return ""
    return f"; a difference below two standard errors ({margin}) can be chance, and more texts can tell"


def _gains_nothing(gain: float, possible: float, margin: float, possible_margin: float) -> bool:
    """Whether the gain over a constant is not significant or, with too few texts to tell, not positive."""
    if possible <= 0:
        return False  # all texts have the same number: a constant is perfect
    too_few = possible_margin > possible / 2
    return gain <= (_ROUNDING * possible if too_few else margin)


def _encodes_label(kind: FindingKind, sentence: str, skill: float) -> Finding | None:
    """The finding that something about the selection other than its words predicts the label."""
    if skill <= LABEL_SKILL:
        return None
    message = (
        f"the rationale may encode the label {sentence} the label with skill {_share(skill)} (0: chance, 1: certainty)"
    )
    return Finding(kind, message, skill)


def _as_classes(truth: Sequence[Any], task: str) -> Sequence[Any]:
    """The labels; for regression, whether each number is above the median."""
    if task != "regression":
        return truth
    numbers = as_numbers(truth, "truth")
    above: list[bool] = (numbers > np.median(numbers)).tolist()
    return above


def _position_skill(masks: list[Mask], positions: Callable[[int], NDArray[np.int64]]) -> float:
    width = max(_SECTIONS, *(len(mask) for mask in masks))
    selected, seen = np.zeros(width), np.zeros(width)
    for mask in masks:
        np.add.at(selected, positions(len(mask)), mask)
        np.add.at(seen, positions(len(mask)), 1)
    gained, possible = 0.0, 0.0
    for mask in masks:
        position, size = positions(len(mask)), int(mask.sum())
        own, length = np.bincount(position, mask, width), np.bincount(position, minlength=width)
        rate = ((selected - own) / np.maximum(seen - length, 1))[position]
        guess = np.argsort(-rate, kind="stable")[:size]
        chance = size / len(mask)
        gained += float(mask[guess].mean()) - chance
        possible += 1 - chance
    return max(0.0, gained / possible)


def _from_start(length: int) -> NDArray[np.int64]:
    return np.arange(length)


def _from_end(length: int) -> NDArray[np.int64]:
    return np.arange(length)[::-1]


def _relative(length: int) -> NDArray[np.int64]:
    return np.arange(length) * _SECTIONS // length


def _probe_recall(masks: list[Mask], codes: NDArray[np.int64]) -> float:
    """The cross-validated probe's mean recall over the classes."""
    guesses = cross_validated(np.array([position_features(mask) for mask in masks]), codes)
    return mean_recall(codes, guesses)[0]
