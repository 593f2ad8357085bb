import pickle

import numpy as np
import pytest

from rationalizer.metrics import (
    METRICS,
    PairEvaluation,
    Scores,
    TextEvaluation,
    aopc,
    auprc,
    compute_scores,
    faithfulness,
    iou_scores,
    macro_f1,
    mask_to_spans,
    token_scores,
)
from rationalizer.metrics.plausibility_context import token_f1_ceiling

TRUTH = ["good", "bad", "good"]
PREDICTIONS = ["good", "good", "good"]
MASKS = [[1, 1, 0, 0], [0, 0, 0], [0, 1]]
WEIGHTS = [[0.9, 0.6, 0.0, 0.0], [0.0, 0.0, 0.0], [0.2, 1.0]]
GOLD = [[1, 0, 0, 0], [0, 1, 1], None]


def model(masks):
    p = np.array([1 / (1 + np.exp(-float(np.sum(mask)))) for mask in masks])
    return np.stack([1 - p, p], axis=1)


def everything(**changes):
    arguments = {
        "task": "classification",
        "truth": TRUTH,
        "predictions": PREDICTIONS,
        "masks": MASKS,
        "classes": ["bad", "good"],
        "weights": WEIGHTS,
        "annotations": GOLD,
        "probabilities": model,
        "seconds_per_epoch": 1.5,
    }
    return compute_scores(TextEvaluation(**(arguments | changes)))


def test_scores_equal_those_of_single_functions():
    scores = everything()
    spans = [mask_to_spans(mask) for mask in MASKS]
    annotated_spans = [[(0, 1)], [(1, 3)], None]
    tokens, iou = token_scores(MASKS, GOLD), iou_scores(spans, annotated_spans)
    hard, curve = faithfulness(model, MASKS), aopc(model, WEIGHTS)
    assert scores.as_dict() == {
        "documents": 3,
        "accuracy": pytest.approx(2 / 3),
        "macro_f1": macro_f1(TRUTH, PREDICTIONS, ["bad", "good"]),
        "annotated": 2,
        "token_precision": tokens.precision,
        "token_recall": tokens.recall,
        "token_f1": tokens.f1,
        "token_f1_eraser": token_scores(MASKS, GOLD, convention="eraser").f1,
        "token_f1_micro": token_scores(MASKS, GOLD, convention="micro").f1,
        "token_f1_paper": token_scores(MASKS, GOLD, convention="paper").f1,
        "iou_precision": iou.precision,
        "iou_recall": iou.recall,
        "iou_f1": iou.f1,
        "iou_f1_micro": iou_scores(spans, annotated_spans, average="micro").f1,
        "auprc": auprc(WEIGHTS, GOLD).auprc,
        "comprehensiveness": hard.comprehensiveness,
        "sufficiency": hard.sufficiency,
        "aopc_comprehensiveness": curve.comprehensiveness,
        "aopc_sufficiency": curve.sufficiency,
        "size": pytest.approx((0.5 + 0 + 0.5) / 3),
        "annotated_size": 0.25,
        "annotated_share": pytest.approx((1 / 4 + 2 / 3) / 2),
        "size_min": 0.0,
        "size_quarter": 0.25,
        "size_median": 0.5,
        "size_three_quarters": 0.5,
        "size_max": 0.5,
        "tokens": 1.0,
        "spans": pytest.approx(2 / 3),
        "empty": pytest.approx(1 / 3),
        "full": 0.0,
        "seconds_per_epoch": 1.5,
    }
    assert {finding.kind for finding in scores.findings} == {"empty_rationales", "no_better_than_majority"}


def test_conventions_differ():
    scores = everything()
    assert (scores.token_f1, scores.token_f1_paper) == pytest.approx((1 / 3, 2 / 3))


def test_missing_inputs_are_not_measured():
    bare = compute_scores(
        TextEvaluation(task="regression", truth=[0.1, 0.9, 0.4], predictions=[0.2, 0.8, 0.4], masks=MASKS)
    )
    assert set(bare.as_dict()) == {
        "documents",
        "mse",
        "mae",
        "r2",
        "size",
        "size_min",
        "size_quarter",
        "size_median",
        "size_three_quarters",
        "size_max",
        "tokens",
        "spans",
        "empty",
        "full",
    }
    assert everything(annotations=[None, None, [0, 0]]).as_dict().keys().isdisjoint({"token_f1", "iou_f1", "auprc"})
    assert everything(annotations=[None, None, [0, 0]]).annotated == 0
    assert everything(weights=None).as_dict().keys().isdisjoint({"auprc", "aopc_sufficiency"})
    assert everything(weights=None).comprehensiveness is not None


def test_ceiling_of_the_budget():
    """Of the second text two words are marked, but only one may be selected; of the first, a word does not count."""
    counted = [[1, 1, 1, 0], [1, 1, 1], [1, 1]]
    scores = everything(annotations=[[1, 0, 0, 1], [0, 1, 1], None], counted=counted, limits=[2, 1, 1])
    assert scores.token_f1_ceiling == pytest.approx((1 + 2 / 3) / 2)
    assert scores.token_f1_micro_ceiling == pytest.approx(2 * 2 / (2 + 3))
    assert scores.annotated_size == pytest.approx((2 / 3 + 0) / 2)
    assert token_f1_ceiling([1, 2], [2, 1], exactly=True) == pytest.approx((2 / 3, 4 / 6))


def test_annotated_spans_are_not_merged():
    masks, gold = [[1, 1, 0, 0]] * 3, [[1, 1, 1, 1]] * 3
    weights = [[1.0] * 4] * 3
    assert everything(masks=masks, annotations=gold, weights=weights).iou_recall == 1
    assert (
        everything(masks=masks, annotations=gold, weights=weights, annotated_spans=[[(0, 2), (2, 4)]] * 3).iou_recall
        == 0.5
    )


def test_full_text_model():
    full = [[0.0, 1.0]] * 3
    assert everything(full=full).sufficiency == faithfulness(model, MASKS, full=full).sufficiency
    assert everything(full=full).aopc_sufficiency == aopc(model, WEIGHTS, full=full).sufficiency


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"masks": MASKS[:2]}, "masks has 2, truth has 3"),
        ({"annotations": [[1], [0, 1, 1], None]}, "document 0: .*masks has 4, annotations has 1"),
        ({"weights": [*WEIGHTS[:2], [0.5]]}, "document 2: .*weights has 1"),
        (
            {"weights": [*WEIGHTS[:2], [0.5]], "annotations": None, "probabilities": None},
            "document 2: .*weights has 1",
        ),
        ({"weights": [*WEIGHTS[:2], [0.5, np.nan]]}, r"document 2: weights\[1\] is nan"),
        ({"annotations": None, "annotated_spans": [[(0, 1)], None, None]}, "without annotations"),
        ({"task": "regression", "truth": [0.0] * 3, "predictions": [0.0] * 3}, "leave `probabilities` out"),
        ({"predictions": ["good", "good", "great"]}, "document 2: predictions is great"),
    ],
)
def test_errors(changes, message):
    with pytest.raises(ValueError, match=message):
        everything(**changes)


def test_scores_are_a_mapping_with_attributes():
    scores = Scores(accuracy=0.5, mse=None)
    assert dict(scores) == scores.as_dict() == {"accuracy": 0.5}
    assert (scores["accuracy"], scores.accuracy, scores.mse) == (0.5, 0.5, None)
    assert scores.replace(accuracy=None, mse=1.0) == {"mse": 1.0}
    assert pickle.loads(pickle.dumps(scores)) == scores
    with pytest.raises(AttributeError, match="acuracy"):
        _ = scores.acuracy
    with pytest.raises(ValueError, match="acuracy"):
        Scores(acuracy=0.5)
    assert list(everything()) == [name for name in METRICS if name in everything()]


def test_pairs():
    scores = compute_scores(
        PairEvaluation(
            task="classification",
            truth=["a", "b"],
            predictions=["a", "a"],
            alignments=[[[1, 0], [0, 0.5]], [[0, 0]]],
            annotations=[[(0, 0)], None],
            constraints=[{"budget": 1}, {}],
            highlights=[([1, 0], None), (None, None)],
        )
    )
    expected = {"accuracy": 0.5, "aligned": 1, "alignment_precision": 0.5, "alignment_recall": 1, "alignments": 1}
    expected |= {"violation": 0.5, "empty": 0.5, "full": 0, "highlighted": 1, "premise_marked": 1, "premise_words": 1}
    assert {name: scores[name] for name in expected} == expected
    assert scores.hypothesis_marked is None
    assert scores.findings == ()
