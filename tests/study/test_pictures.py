"""Pictures of a comparison, from rows made by hand."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

from rationalizer.metrics import Spread
from rationalizer.study.pictures import score_against_size
from rationalizer.study.table import Row
from rationalizer.text import Budget


def row(method, budget, sizes, scores):
    summaries = {"size": Spread.of(sizes), "macro_f1": Spread.of(scores)}
    return Row("reviews", method, budget, "test", (0, 1), summaries, {}, {}, "reduced")


def test_comparisons_show_score_against_size():
    rows = [
        row("spectra", Budget.share(0.1), [0.1, 0.12], [0.8, 0.9]),
        row("spectra", Budget.share(0.2), [0.2, 0.2], [0.9, 0.9]),
    ]
    picture = score_against_size([*rows, row("full-text", None, [1.0, 1.0], [0.95, 0.97])])
    found = [node.text for node in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert "reviews (reduced), test: macro-F1 against rationale size" in found
    assert found.count("spectra") == 1
    assert "100" in found  # per cent
    assert picture.count("spread") - picture.split("</style>")[0].count("spread") == 3
    bare = replace(rows[0], scores={"macro_f1": Spread.of([0.5])})
    assert score_against_size([bare]) is None
