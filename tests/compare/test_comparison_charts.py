"""Charts of a comparison, from rows made by hand."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

from rationalizer.compare.comparison_charts import charts, score_against_budget, score_against_size, training_cost
from rationalizer.compare.result_tables import ResultRow
from rationalizer.metrics import Summary
from rationalizer.text import Budget


def row(method, budget, sizes, scores):
    summaries = {"size": Summary.from_values(sizes), "macro_f1": Summary.from_values(scores)}
    return ResultRow("reviews", method, budget, "test", (0, 1), summaries, {}, {}, "reduced")


def test_score_against_size():
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
    bare = replace(rows[0], scores={"macro_f1": Summary.from_values([0.5])})
    assert score_against_size([bare]) is None


def test_score_against_budget():
    rows = [
        row("spectra", Budget.share(0.2), [0.2, 0.2], [0.9, 0.9]),
        row("spectra", Budget.share(0.1), [0.1, 0.12], [0.8, 0.9]),
        row("full-text", None, [1.0, 1.0], [0.95, 0.97]),
    ]
    root = ElementTree.fromstring(score_against_budget(rows, "macro_f1"))
    found = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"reviews (reduced), test: macro-F1 against budget", "10", "20", "budget, % of the words"} <= set(found)
    assert score_against_budget(rows, "token_f1") is None  # no annotations
    assert score_against_budget(rows[1:], "macro_f1") is None  # one budget is no sweep
    counted = [replace(each, budget=each.budget and Budget.count(5)) for each in rows]
    assert score_against_budget(counted, "macro_f1") is None


def test_training_cost():
    rows = [
        replace(
            row("spectra", Budget.share(share), [share], [0.5]),
            scores={"seconds_per_epoch": Summary.from_values(seconds)},
        )
        for share, seconds in ((0.1, [1.0, 2.0]), (0.2, [6.0, 3.0]))
    ]
    assert training_cost(rows) is None  # nothing to compare
    other = replace(rows[0], method="sfe", scores={"seconds_per_epoch": Summary.from_values([12.0])})
    found = [
        node.text
        for node in ElementTree.fromstring(training_cost([*rows, other])).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert {"reviews (reduced): seconds per epoch", "spectra", "3.00", "sfe", "12.0"} <= set(found)


def test_charts_follow_the_scores():
    rows = [row("spectra", Budget.share(share), [share], [0.5]) for share in (0.1, 0.2)]
    assert [name for name, _ in charts(rows)] == ["reviews-score-size.svg", "reviews-macro-f1.svg"]
    marked = [replace(each, scores=each.scores | {"token_f1": Summary.from_values([0.3])}) for each in rows]
    assert [name for name, _ in charts(marked)][-1] == "reviews-token-f1.svg"
