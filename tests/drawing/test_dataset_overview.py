"""The overview of a dataset, on explanations made by hand."""

import numpy as np
import pytest

from rationalizer.drawing.dataset_overview import excerpt, overview
from tests.drawing.samples import GUITAR, explain


def said(text, selected, label, sure):
    other = {"good": "bad", "bad": "good"}[label]
    return explain(text, selected, label=label, probabilities={label: sure, other: 1 - sure})


TEXTS = [
    said("A lovely room.", [1], "good", 0.9),
    said("Lovely, lovely staff.", [0, 2], "good", 0.6),
    said("A dirty room.", [1], "bad", 0.8),
    said("A lovely view, dirty floor.", [4], "bad", 0.7),
]


def test_words_by_prediction_count_texts_and_ignore_case():
    good, bad = overview(TEXTS).groups
    assert (good.name, good.texts, bad.name, bad.texts) == ("good", 2, "bad", 2)
    assert [(use.word, use.selected, use.seen) for use in good.words] == [(("lovely",), 2, 2)]
    assert [(use.word, use.selected, use.seen, use.documents) for use in bad.words] == [(("dirty",), 2, 2, (2, 3))]
    undecided = said("Lovely, but dirty.", [0], "bad", 0.55)
    lovely = overview([*TEXTS, undecided]).groups[1].words[1]
    assert (lovely.word, lovely.selected, lovely.seen) == (("lovely",), 1, 2)  # of texts 3 and 4


def test_notable_texts():
    seen = overview(TEXTS, ["good", "bad", "good", "bad"], examples=2)
    assert seen.uncertain == (1, 3)
    assert seen.surprising == (2, 1)
    assert seen.best == (0, 3)
    assert seen.class_results.confusions.tolist() == [[1, 1], [1, 1]]
    assert [(c.name, c.precision, c.recall) for c in seen.class_results.by_class] == [
        ("good", 0.5, 0.5),
        ("bad", 0.5, 0.5),
    ]
    assert seen.class_results.calibration.error == pytest.approx((0.1 + 0.6 + 0.8 + 0.3) / 4)


def test_every_class_has_an_example():
    texts = [explain("a", [0], label=c, probabilities={"x": 0.0, "y": 0.0, "z": 0.0, c: 0.9 - k / 9})
             for k, c in enumerate("xxxyzz")]  # fmt: skip
    assert overview(texts, list("xxxyzz"), examples=2).best == (0, 3, 4)
    assert overview(texts, examples=2).best == (0, 3, 4)


def test_errors_are_sorted_by_probability_of_the_true_class():
    sure = explain("a", [0], label="x", probabilities={"x": 0.6, "y": 0.39, "z": 0.01})
    surest = explain("b", [0], label="x", probabilities={"x": 0.7, "y": 0.3, "z": 0.0})
    assert overview([surest, sure], ["y", "z"]).surprising == (1, 0)


def test_regression_groups_are_halves():
    values = [explain(f"w{k}", [0], label=v, probabilities=None) for k, v in enumerate([0.1, 0.9, 0.5])]
    seen = overview(values, [0.1, 0.5, 0.2], examples=1)
    assert [(group.name, group.texts) for group in seen.groups] == [("up to 0.5", 2), ("above 0.5", 1)]
    assert (seen.best, seen.surprising, seen.uncertain, seen.class_results) == ((0,), (1,), (), None)


def test_units_of_pairs_are_aligned_words():
    (group,) = overview([GUITAR]).groups
    assert sorted(use.word for use in group.words) == [
        ("guitar", "instrument"),
        ("man", "person"),
        ("playing", "playing"),
        ("stage", "public"),
    ]
    assert all((use.selected, use.seen) == (1, 1) for use in group.words)


def test_excerpts_keep_their_highlights():
    words = [f"w{k}" for k in range(60)]
    whole = explain(" ".join(words), [3, 30, 31])
    part = excerpt(whole, ("w30",))
    assert part.text == "… " + " ".join(words[18:43]) + " …"
    assert [part.text[slice(*place)] for place in part.offsets] == list(part.tokens)
    assert [part.text[slice(*span)] for span in part.spans] == ["w30 w31"]
    assert np.flatnonzero(part.selected).tolist() == [12, 13]
    assert excerpt(whole, ("w3",)).text.startswith("w0 w1")
    assert excerpt(GUITAR, ("man", "person")) is GUITAR


def test_empty_overview():
    assert overview([]).groups == ()
    with pytest.raises(ValueError, match="explanations, but 1 true labels"):
        overview(TEXTS, ["good"])
