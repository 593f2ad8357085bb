"""Hand-computed cases, an oracle written from ERASER's definitions over sets, and scikit-learn's curve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import auc, precision_recall_curve

from rationalizer.metrics import auprc, iou_scores, mask_to_spans, token_scores


@st.composite
def documents(draw, gold_nonempty=False):
    """Draw pairs of masks, as two lists of documents."""
    predicted, gold = [], []
    for _ in range(draw(st.integers(1, 6))):
        length = draw(st.integers(1, 12))
        masks = st.lists(st.booleans(), min_size=length, max_size=length)
        predicted.append(draw(masks))
        gold.append(draw(masks.filter(any) if gold_nonempty else masks))
    return predicted, gold


def tokens(masks):
    return [{i for i, token in enumerate(mask) if token} for mask in masks]


def harmonic(p, r):
    return 2 * p * r / (p + r) if p and r else 0.0


def eraser_token_macro(predicted, gold):
    rows = []
    for guess, truth in zip(tokens(predicted), tokens(gold), strict=True):
        if guess or truth:
            p = len(guess & truth) / len(guess) if guess else 0
            r = len(guess & truth) / len(truth) if truth else 0
            rows.append((p, r, harmonic(p, r)))
    return np.mean(rows, axis=0) if rows else None


def eraser_iou(predicted, gold, average):
    """Over lists of spans, by enumerating tokens."""
    hits = []
    for guesses, truths in zip(predicted, gold, strict=True):
        best = [
            max(
                (len(set(range(*g)) & set(range(*t))) / len(set(range(*g)) | set(range(*t))) for t in truths),
                default=0,
            )
            for g in guesses
        ]
        hits.append(sum(iou >= 0.5 for iou in best))
    if average == "micro":
        p = sum(hits) / max(sum(map(len, predicted)), 1)
        r = sum(hits) / max(sum(map(len, gold)), 1)
    else:
        ps = [h / len(g) for h, g in zip(hits, predicted, strict=True) if g]
        rs = [h / len(t) for h, t in zip(hits, gold, strict=True) if t]
        p, r = (float(np.mean(values)) if values else 0.0 for values in (ps, rs))
    return p, r, harmonic(p, r)


# Document 0: 1 of 2 selected right, 1 of 1 found. Document 1: nothing selected. Document 2: not annotated.
# Document 3: annotated as having no rationale, 2 tokens selected.
PREDICTED = [[1, 1, 0, 0], [0, 0, 0], [1, 0], [1, 1, 0]]
GOLD = [[1, 0, 0, 0], [1, 1, 0], None, [0, 0, 0]]


@pytest.mark.parametrize(
    ("convention", "precision", "recall", "f1", "counted"),
    [
        ("macro", (1 / 2 + 0) / 2, (1 + 0) / 2, (2 / 3 + 0) / 2, 2),
        ("eraser", (1 / 2 + 0 + 0) / 3, (1 + 0 + 0) / 3, (2 / 3 + 0 + 0) / 3, 3),
        ("micro", 1 / 4, 1 / 3, 2 / 7, 3),
        ("paper", 1 / 2, 1, 2 / 3, 1),
    ],
)
def test_conventions_by_hand(convention, precision, recall, f1, counted):
    scores = token_scores(PREDICTED, GOLD, convention=convention)
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx((precision, recall, f1))
    assert (scores.documents, scores.skipped) == (counted, 4 - counted)


def test_default_counts_empty_selections_as_zero():
    assert token_scores([[1, 0], [0, 0]], [[1, 0], [1, 0]]).f1 == 0.5
    assert token_scores([[1, 0], [0, 0]], [[1, 0], [1, 0]], convention="paper").f1 == 1.0


def test_paper_takes_f1_of_the_means():
    predicted, gold = [[1, 0, 0, 0], [1, 1, 1, 1]], [[1, 1, 1, 1], [1, 0, 0, 0]]
    # P = 1, 1/4 and R = 1/4, 1: every document has F1 0.4, the means 5/8 and 5/8.
    assert token_scores(predicted, gold, convention="paper").f1 == pytest.approx(5 / 8)
    assert token_scores(predicted, gold, convention="macro").f1 == pytest.approx(0.4)


def test_all_selections_empty_is_zero_under_every_convention():
    for convention in ("macro", "eraser", "micro", "paper"):
        scores = token_scores([[0, 0], [0]], [[1, 0], [1]], convention=convention)
        assert (scores.precision, scores.recall, scores.f1) == (0, 0, 0)


@given(documents())
def test_eraser_tokens_against_sets(pair):
    predicted, gold = pair
    expected = eraser_token_macro(predicted, gold)
    if expected is None:
        with pytest.raises(ValueError, match="annotation"):
            token_scores(predicted, gold, convention="eraser")
        return
    scores = token_scores(predicted, gold, convention="eraser")
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx(tuple(expected))


@given(documents(gold_nonempty=True))
def test_token_properties(pair):
    predicted, gold = pair
    macro = token_scores(predicted, gold)
    assert token_scores(predicted, gold, convention="eraser") == macro  # they differ on empty annotations only
    assert 0 <= macro.f1 <= min(1, (macro.precision + macro.recall) / 2 + 1e-12)  # F1 lies below the mean
    assert token_scores(gold, gold).f1 == 1
    assert token_scores(predicted, gold, convention="paper").f1 >= macro.f1 - 1e-12
    # Unannotated documents are left out, whatever is selected there.
    more = token_scores([*predicted, [1, 0]], [*gold, None])
    assert (more.f1, more.skipped) == (macro.f1, macro.skipped + 1)
    # Micro precision and recall change places with the arguments.
    there, back = (token_scores(a, b, convention="micro") for a, b in ((predicted, gold), (gold, predicted)))
    assert (there.precision, there.f1) == pytest.approx((back.recall, back.f1))


def test_iou_by_hand():
    predicted = [[(0, 2), (5, 8)], [], [(0, 1)], [(3, 4)]]
    gold = [[(0, 4), (6, 7)], [(0, 2)], None, []]
    # Document 0: (0,2) on (0,4) is 1/2, a hit; (5,8) on (6,7) is 1/3, none.
    macro = iou_scores(predicted, gold)
    assert (macro.precision, macro.recall) == pytest.approx(((1 / 2 + 0) / 2, (1 / 2 + 0) / 2))
    assert (macro.documents, macro.skipped) == (3, 1)
    micro = iou_scores(predicted, gold, average="micro")
    assert (micro.precision, micro.recall) == pytest.approx((1 / 3, 1 / 3))
    assert iou_scores(predicted, gold, threshold=0.3).precision == pytest.approx(1 / 2)


def test_iou_keeps_adjacent_spans_apart():
    # Two predicted spans hit one human span: ERASER's recall is then 2.
    scores = iou_scores([[(0, 2), (2, 4)]], [[(0, 4)]])
    assert (scores.precision, scores.recall) == (1, 2)
    assert iou_scores([[(0, 4)]], [[(0, 4)]]).f1 == 1


@given(documents(), st.sampled_from(["macro", "micro"]))
def test_iou_against_sets(pair, average):
    predicted, gold = ([mask_to_spans(mask) for mask in masks] for masks in pair)
    scores = iou_scores(predicted, gold, average=average)
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx(eraser_iou(predicted, gold, average))
    assert scores.recall <= 1  # the runs of a mask never share a human span


def test_auprc_by_hand():
    # Ranked: hit, miss, hit. Points (recall, precision): (0, 1), (1/2, 1), (1/2, 1/2), (1, 2/3).
    expected = 1 / 2 * 1 + 1 / 2 * (1 / 2 + 2 / 3) / 2
    assert auprc([[0.9, 0.5, 0.1]], [[1, 0, 1]]).auprc == pytest.approx(expected)
    # All tied: one step from (0, 1) to (1, 1/4).
    assert auprc([[2, 2, 2, 2]], [[0, 1, 0, 0]]).auprc == pytest.approx((1 + 1 / 4) / 2)
    both = auprc([[0.9, 0.5, 0.1], [2, 2, 2, 2], [1.0]], [[1, 0, 1], [0, 1, 0, 0], None])
    assert both.auprc == pytest.approx((expected + 0.625) / 2)
    assert (both.documents, both.skipped) == (2, 1)


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=25).filter(
        lambda pairs: any(truth for _, truth in pairs)
    ),
    st.sampled_from([1.0, 1e-9, 1e9]),
)
def test_auprc_agrees_with_scikit_learn(pairs, scale):
    scores, gold = [score * scale for score, _ in pairs], [truth for _, truth in pairs]
    precision, recall, _ = precision_recall_curve(gold, scores)
    assert auprc([scores], [gold]).auprc == pytest.approx(auc(recall, precision))


@given(documents(gold_nonempty=True), st.randoms(use_true_random=False))
def test_auprc_depends_on_ranks_only(pair, random):
    _, gold = pair
    scores = [[random.choice([0.0, 0.25, 0.5, 1.0]) for _ in mask] for mask in gold]
    moved = [[3 * score**3 - 7 for score in row] for row in scores]
    assert auprc(moved, gold).auprc == pytest.approx(auprc(scores, gold).auprc)
    assert auprc([np.array(mask, float) for mask in gold], gold).auprc == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: token_scores([[1], [1, 0]], [[1], [1]]), "document 1: .*predicted has 2, annotations has 1"),
        (lambda: token_scores([[1]], [[1], [1]]), "predicted has 1, annotations has 2"),
        (
            lambda: token_scores([[1], [0.3, 1]], [[1], [1, 0]]),
            r"document 1: predicted\[0\] is 0.3.*weights > 0",
        ),
        (lambda: token_scores([[1]], [[np.nan]]), r"document 0: annotations\[0\] is nan"),
        (lambda: token_scores([[[1]]], [[1]]), "document 0: predicted must be one-dimensional"),
        (lambda: token_scores([[1]], [[1]], convention="mean"), "got 'mean'"),
        (lambda: token_scores([[1], [1]], [None, [0]]), "none of the 2 documents"),
        (lambda: token_scores([], []), "no documents"),
        (lambda: iou_scores([[(0, 1)]], [None]), "none of the 1 documents"),
        (lambda: iou_scores([[], [(2, 1)]], [[], []]), r"document 1: predicted .*\[2, 1\)"),
        (lambda: iou_scores([[]], [[]], threshold=0), "got 0"),
        (lambda: iou_scores([[]], [[]], average="mean"), "got 'mean'"),
        (lambda: auprc([[1], [1, np.nan]], [[1], [1, 0]]), r"document 1: scores\[1\] is nan"),
        (lambda: auprc([[1], [1]], [[1], [1, 0]]), "document 1: .*scores has 1, annotations has 2"),
        (lambda: auprc([[1]], [[0]]), "none of the"),
    ],
)
def test_errors_name_the_document(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_strings_as_scores_raise():
    with pytest.raises(TypeError, match="document 0: scores"):
        auprc([["good"]], [[1]])
