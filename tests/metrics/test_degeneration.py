"""Each failure mode is produced on purpose and must be found; honest rationales must pass."""

import numpy as np
import pytest

from rationalizer.metrics import find_degeneration, label_skill, position_skill, size_skill
from rationalizer.metrics.degeneration import LABEL_SKILL, POSITION_SKILL, _probe_recall
from rationalizer.metrics.label_probe import shuffle_runs
from rationalizer.metrics.token_spans import mask_to_spans


def select(length, tokens):
    mask = np.zeros(length, dtype=bool)
    mask[np.asarray(tokens)] = True
    return mask


def fifth(length):
    return max(1, round(0.2 * length))


def lengths(documents, seed=0, shortest=6, longest=60):
    return np.random.default_rng(seed).integers(shortest, longest, documents)


def scattered(sizes, seed=1):
    rng = np.random.default_rng(seed)
    return [select(n, rng.choice(n, fifth(n), replace=False)) for n in sizes]


def one_span(sizes, seed=2):
    rng = np.random.default_rng(seed)
    return [select(n, rng.integers(n - fifth(n) + 1) + np.arange(fifth(n))) for n in sizes]


def kinds(findings):
    return {finding.kind for finding in findings}


def labels(documents, classes=2, seed=3):
    return np.random.default_rng(seed).integers(0, classes, documents)


@pytest.mark.parametrize("rationales", [scattered, one_span])
def test_honest_rationales_have_no_findings(rationales):
    truth = labels(400)
    predictions = np.where(np.arange(400) % 5 == 0, 1 - truth, truth)  # 80% right
    assert find_degeneration(rationales(lengths(400)), truth=truth, predictions=predictions) == []


def test_empty_rationales():
    masks = scattered(lengths(100))
    masks[0][:] = False
    assert find_degeneration(masks) == []  # one in a hundred is not yet reported
    masks[7][:] = False
    (finding,) = find_degeneration(masks)
    assert (finding.kind, finding.value) == ("empty_rationales", 0.02)
    assert "2.0%" in finding.message


def test_full_rationales():
    masks = scattered(lengths(98)) + [np.ones(30, bool)] * 2
    (finding,) = find_degeneration(masks)
    assert (finding.kind, finding.value) == ("full_rationales", 0.02)
    assert (
        find_degeneration(scattered(lengths(98)) + [np.ones(1, bool)] * 20) == []
    )  # a one-word text is always complete


@pytest.mark.parametrize(
    "places",
    [
        lambda n: np.arange(fifth(n)),
        lambda n: n - 1 - np.arange(fifth(n)),
        lambda n: int(0.4 * n) + np.arange(fifth(n)),
        lambda n: np.arange(0, n, 5),
    ],
    ids=["first", "last", "middle", "every fifth"],
)
def test_same_positions_in_every_text(places):
    masks = [select(n, places(n)) for n in lengths(200)]
    assert position_skill(masks) > POSITION_SKILL
    assert kinds(find_degeneration(masks)) == {"ignores_text"}


def test_position_skill_of_chance_is_small_and_of_a_mixture_between():
    sizes = lengths(500)
    assert position_skill(scattered(sizes)) < 0.1
    assert position_skill(one_span(sizes)) < 0.1
    mixed = [select(n, np.arange(fifth(n))) for n in sizes[:250]] + scattered(sizes[250:])
    assert 0.35 < position_skill(mixed) < 0.65
    rng = np.random.default_rng(0)
    early = [select(n, rng.integers(max(1, int(0.3 * n))) + np.arange(fifth(n))) for n in sizes]
    assert 0.2 < position_skill(early) < POSITION_SKILL  # a bias that real texts have


def test_position_skill_is_leave_one_out():
    assert position_skill(scattered(lengths(25, shortest=200, longest=300))) < 0.1


def test_positions_count_from_both_ends():
    sizes = lengths(100, shortest=40, longest=200)
    assert position_skill([select(n, [2]) for n in sizes]) == 1
    assert position_skill([select(n, [n - 3]) for n in sizes]) == 1


def test_position_needs_enough_documents_and_choices():
    first = [select(n, [0]) for n in lengths(30)]
    assert kinds(find_degeneration(first)) == {"ignores_text"}
    assert find_degeneration(first[:19]) == []
    assert position_skill([np.ones(4), np.zeros(4)]) == 0


@pytest.mark.parametrize(("majority", "classes"), [(0.5, 2), (0.9, 2), (0.4, 4)])
def test_constant_and_random_predictors_are_no_better_than_majority(majority, classes):
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(500) < majority, 0, rng.integers(1, classes, 500))
    masks = scattered(lengths(500))
    constant = find_degeneration(masks, truth=truth, predictions=np.zeros(500, int))
    assert kinds(constant) == {"no_better_than_majority"}
    assert constant[0].value == pytest.approx(1 / classes)
    guessing = find_degeneration(masks, truth=truth, predictions=rng.permutation(truth))
    assert kinds(guessing) == {"no_better_than_majority"}
    # Rare classes recognized: better, though accuracy is hardly above the majority's.
    better = np.where(rng.random(500) < 0.6, truth, 0)
    assert find_degeneration(masks, truth=truth, predictions=better) == []


def test_predictions_of_classes_that_do_not_occur_count_as_wrong():
    truth, masks = ["a", "b"] * 50, scattered(lengths(100))
    assert kinds(find_degeneration(masks, truth=truth, predictions=["c"] * 100)) == {"no_better_than_majority"}
    # Names that would sort into the place of the right class.
    near = ["0" if label == "a" else "aa" for label in truth]
    assert kinds(find_degeneration(masks, truth=truth, predictions=near)) == {"no_better_than_majority"}
    assert find_degeneration(masks, truth=truth, predictions=truth) == []


def test_regression_no_better_than_the_mean():
    rng = np.random.default_rng(0)
    truth, masks = rng.random(300), scattered(lengths(300))
    for useless in (np.full(300, truth.mean()), rng.permutation(truth)):
        (finding,) = find_degeneration(masks, truth=truth, predictions=useless, task="regression")
        assert finding.kind == "no_better_than_majority"
        assert finding.value == pytest.approx(np.mean((truth - useless) ** 2))
    useful = truth + rng.normal(scale=0.2, size=300)
    assert find_degeneration(masks, truth=truth, predictions=useful, task="regression") == []


@pytest.mark.parametrize("count", [8, 12, 20])
@pytest.mark.parametrize("classes", [2, 3, 8])
def test_few_texts_with_perfect_predictions_have_no_finding(count, classes):
    masks = scattered(lengths(count, shortest=12))
    balanced = np.arange(count) % classes
    for truth in (balanced, np.where(np.arange(count) < classes, balanced, 0)):  # and one text per rare class
        assert find_degeneration(masks, truth=truth, predictions=truth) == []
        found = find_degeneration(masks, truth=truth, predictions=np.zeros(count, int))
        assert kinds(found) == {"no_better_than_majority"}


@pytest.mark.parametrize("count", [8, 12, 20])
def test_few_texts_with_perfect_regression_have_no_finding(count):
    masks = scattered(lengths(count, shortest=12))
    outlier = np.eye(count)[0]
    for truth in (np.linspace(0, 1, count), outlier):
        assert find_degeneration(masks, truth=truth, predictions=truth, task="regression") == []
        for constant in (truth.mean(), 0.3):
            found = find_degeneration(masks, truth=truth, predictions=np.full(count, constant), task="regression")
            assert kinds(found) == {"no_better_than_majority"}


@pytest.mark.parametrize("classes", [2, 3])
def test_label_encoded_by_position(classes):
    rng = np.random.default_rng(0)
    sizes, truth = lengths(300, shortest=12), labels(300, classes)
    by_token = [select(n, [y]) for n, y in zip(sizes, truth, strict=True)]
    by_region = [
        select(n, rng.integers(n * y // classes, n * (y + 1) // classes, 3)) for n, y in zip(sizes, truth, strict=True)
    ]
    for masks in (by_token, by_region):
        assert label_skill(masks, truth) > 0.8
        assert "label_from_position" in kinds(find_degeneration(masks, truth=truth, predictions=truth))
        assert label_skill(masks, rng.permutation(truth)) < LABEL_SKILL


def test_label_encoded_for_a_rare_class():
    rng = np.random.default_rng(0)
    truth = (rng.random(600) < 0.1).astype(int)
    # The rare class always selects the first token, the frequent one in a fifth of its texts.
    first = (truth == 1) | (rng.random(600) < 0.2)
    masks = [select(n, [0 if f else rng.integers(1, n)]) for n, f in zip(lengths(600), first, strict=True)]
    assert label_skill(masks, truth) == pytest.approx(0.8, abs=0.1)  # recalls 1 and 0.8


def test_probe_is_cross_validated():
    scores = [_probe_recall(scattered(lengths(60, seed), seed), labels(60, seed=seed)) for seed in range(10)]
    assert 0.4 < np.mean(scores) < 0.6


def test_label_encoded_by_position_in_regression():
    truth = np.random.default_rng(0).random(300)
    masks = [select(n, [0 if y > 0.5 else n - 1]) for n, y in zip(lengths(300), truth, strict=True)]
    assert "label_from_position" in kinds(find_degeneration(masks, truth=truth, predictions=truth, task="regression"))


@pytest.mark.parametrize("rationales", [scattered, one_span])
def test_longer_texts_of_one_class_have_no_finding(rationales):
    rng = np.random.default_rng(0)
    truth = labels(500)
    sizes = np.where(truth, rng.integers(6, 15, 500), rng.integers(20, 60, 500))
    assert label_skill(rationales(sizes), truth) < LABEL_SKILL


def test_shuffled_runs_keep_their_lengths_and_reach_every_position():
    rng = np.random.default_rng(0)
    mask = np.array([1, 1, 0, 1, 0, 0], bool)
    seen = set()
    for _ in range(300):
        spans = mask_to_spans(shuffle_runs(mask, rng))
        assert sorted(end - start for start, end in spans) == [1, 2]
        seen.add(tuple(spans))
    # Two runs among three unselected tokens: 4 slots, 2 of them taken, in either order.
    assert len(seen) == 4 * 3
    assert shuffle_runs(np.zeros(3, bool), rng).tolist() == [False] * 3
    assert shuffle_runs(np.ones(3, bool), rng).tolist() == [True] * 3
    assert shuffle_runs(np.zeros(0, bool), rng).tolist() == []


def test_label_skill_without_two_frequent_classes_is_zero():
    masks = scattered(lengths(20))
    assert label_skill(masks, ["a"] * 20) == 0
    assert label_skill(masks, ["a"] * 16 + ["b"] * 4) == 0


def test_findings_are_deterministic():
    masks, truth = one_span(lengths(300)), labels(300)
    assert label_skill(masks, truth) == label_skill(masks, truth)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: find_degeneration([[1], [0]], truth=["a"]), "masks has 2, truth has 1"),
        (lambda: find_degeneration([[1], [0, 3]]), r"document 1: masks\[1\] is 3"),
        (lambda: find_degeneration([[1]], task="ranking"), "got 'ranking'"),
        (lambda: find_degeneration([]), "no documents"),
        (
            lambda: find_degeneration([[1]], truth=[np.nan], predictions=[1.0], task="regression"),
            "document 0: truth is nan",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def masks_of_sizes(sizes, lengths, seed=0):
    """Masks with these numbers of tokens at random positions."""
    rng = np.random.default_rng(seed)
    masks = [np.zeros(length, dtype=bool) for length in lengths]
    for mask, size in zip(masks, sizes, strict=True):
        mask[rng.choice(len(mask), size, replace=False)] = True
    return masks


def test_size_tells_the_label():
    rng = np.random.default_rng(1)
    truth, lengths = rng.integers(0, 2, 300), rng.integers(20, 60, 300)
    for sizes in (4 * truth, 5 + 3 * truth, np.where(truth, 5, rng.choice([3, 8], 300))):
        masks = masks_of_sizes(sizes, lengths)
        assert size_skill(masks, truth) > 0.9
        kinds = {finding.kind for finding in find_degeneration(masks, truth=truth)}
        assert "label_from_size" in kinds
        assert "label_from_position" not in kinds


def test_size_that_follows_from_the_length_is_no_code():
    """A fixed share selects more words of the class with longer texts."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 400)
    lengths = rng.integers(20, 60, 400) + 25 * truth
    masks = masks_of_sizes(np.ceil(0.2 * lengths).astype(int), lengths)
    assert size_skill(masks, truth) < 0.15
    assert size_skill(masks_of_sizes(rng.integers(1, 20, 400), lengths), truth) < 0.15


def test_size_skill_without_enough_classes():
    assert size_skill(masks_of_sizes([1, 2, 3], [5, 5, 5]), [0, 1, 1]) == 0


def test_size_tells_a_number():
    rng = np.random.default_rng(3)
    truth = rng.random(300)
    masks = masks_of_sizes((1 + 18 * truth).astype(int), [40] * 300)
    assert "label_from_size" in {finding.kind for finding in find_degeneration(masks, truth=truth, task="regression")}
