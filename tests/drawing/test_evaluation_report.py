"""Reports contain all scores and the right example texts."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from rationalizer.drawing.evaluation_report import Report, evaluation_report
from rationalizer.metrics import Finding, Scores
from rationalizer.text import Budget
from tests.drawing.samples import GUITAR, HOSTILE, explain

SCORES = Scores(
    documents=6, accuracy=0.75, macro_f1=0.7341, token_f1=0.41, size=0.2, size_min=0.1, size_max=0.3, tokens=2, spans=1,
    empty=0, full=0,
)  # fmt: skip


def sure(text, probability, label="positive"):
    other = {"positive": "negative", "negative": "positive"}[label]
    return explain(text, [0, 1], label=label, probabilities={label: probability, other: 1 - probability})


EXPLANATIONS = [sure(f"text number {k} says much.", 0.5 + k / 20) for k in range(6)]
TRUTHS = ["positive", "negative", "positive", "negative", "positive", "negative"]
REPORT = Report(
    title="spectra <on> reviews",
    scores=SCORES,
    explanations=EXPLANATIONS,
    truths=TRUTHS,
    baselines={"TF-IDF + logistic regression": {"accuracy": 0.8, "macro_f1": 0.79}},
    findings=[Finding("empty_rationales", "12.0% of the texts have an empty rationale: raise the budget", 0.12)],
    facts={"method": "spectra", "budget": "20%"},
    budgets={Budget.share(b): SCORES.replace(macro_f1=0.5 + b, token_f1=None) for b in (0.3, 0.1, 0.2)},
    examples=2,
)


class Page(HTMLParser):
    """Text by section, the rows of tables, and the tags of a page."""

    def __init__(self, page):
        super().__init__()
        self.sections, self.rows, self.tags = {}, [], []
        self.heading, self.inside = "", ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.inside = tag if tag in ("h2", "td", "th") else self.inside
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.inside = "" if tag == self.inside else self.inside

    def handle_data(self, data):
        if self.inside == "h2":
            self.heading = data
        elif self.inside:
            self.rows[-1][-1] += data
        self.sections[self.heading] = self.sections.get(self.heading, "") + data


def test_report_contains_all_scores():
    page = Page(evaluation_report(REPORT))
    text = page.sections[""]
    assert "Possibly degenerate: 12.0% of the texts" in text
    assert "spectra <on> reviews" in text
    assert "No sign of degeneration" not in text
    assert list(page.sections) == [
        "",
        "Scores",
        "Classes",
        "Words selected per prediction",
        "Rationale sizes",
        "Scores and budget",
        "Calibration",
        "Examples of each class",
        "Most confident errors",
        "Lowest confidence",
    ]
    for row in (
        ["this model, from 20% of the words", ".750", ".734"],
        ["TF-IDF + logistic regression", ".800", ".790"],
    ):
        assert row in page.rows
    for row in (["method", "spectra"], ["macro-F1", ".734"], ["rationale size", ".200"]):
        assert row in page.rows
    assert "How much of each text was read" in page.sections["Rationale sizes"]
    assert page.rows[-6:] == [
        ["class", "precision", "recall", "F1", "texts"],
        ["positive", ".500", "1.000", ".667", "3"],
        ["negative", ".000", ".000", ".000", "3"],
        ["true label, predicted as", "positive", "negative"],
        ["positive", "3", "0"],
        ["negative", "3", "0"],
    ]


def test_examples_are_sorted_by_confidence():
    page = Page(evaluation_report(REPORT))
    right, wrong = page.sections["Examples of each class"], page.sections["Most confident errors"]
    assert right.index("text number 4") < right.index("text number 2")
    assert "text number 0" not in right
    assert wrong.index("text number 5") < wrong.index("text number 3")
    assert "text number 1" not in wrong
    assert wrong.count("wrong: the true label is negative") == 2
    least = page.sections["Lowest confidence"]
    assert least.index("text number 0") < least.index("text number 1")
    assert "text number 2" not in least
    assert "Most confident errors" not in Page(evaluation_report(replace(REPORT, truths=["positive"] * 6))).sections


def test_scores_of_a_regression_have_short_headings_and_full_names():
    scores = Scores(documents=6, mse=0.0574, mae=0.2124, r2=0.071)
    rows = Page(evaluation_report(replace(REPORT, scores=scores, budgets={}, baselines={"mean": {"mse": 0.063}}))).rows
    assert ["on the same texts", "MSE", "MAE", "R²"] in rows
    assert ["mean absolute error", ".2124"] in rows


def test_many_classes_have_few_words_each():
    names = [f"c{k}" for k in range(30)]
    explanations = [
        explain(
            " ".join(f"{name}word{j}" for j in range(10)),
            range(10),
            label=name,
            probabilities={each: float(each == name) for each in names},
        )
        for name in names
    ]
    html = evaluation_report(replace(REPORT, explanations=explanations, truths=names))
    section = html.split("<h2>Words selected per prediction</h2>")[1].split("</section>")[0]
    assert section.count("<summary>") == 25 * 8  # of 10 for each of the most frequent


def test_words_have_example_texts():
    """Every text selects "text" and "number"; as nothing is peculiar to the one prediction, the alphabet decides."""
    html = evaluation_report(REPORT)
    section = html.split("<h2>Words selected per prediction</h2>")[1].split("</section>")[0]
    assert section.count("<details>") == 2
    assert section.count("6 of 6") == 2
    first = section.split("<details>")[1]
    assert first.count('class="rz-text"') == 3
    assert "number" in first.split("</summary>")[0]
    assert "positive (6 texts)" in section


def test_examples_are_drawn_with_the_weights_of_their_words():
    asked = []

    def weigh(numbers):
        asked.append(list(numbers))
        return [replace(EXPLANATIONS[k], text=f"weighed {k} says much.") for k in numbers]

    page = Page(evaluation_report(replace(REPORT, weigh=weigh)))
    assert asked == [[4, 2], [5, 3], [0, 1]]  # only what is drawn is computed
    assert "weighed" in page.sections["Examples of each class"]
    assert "weighed" not in page.sections["Words selected per prediction"]


def test_long_class_names_do_not_widen_the_confusion_table():
    names = {"positive": "recommended to everybody", "negative": "not recommended at all"}
    texts = [replace(sure("text one", 0.9), label=names["positive"])]
    texts = [replace(one, probabilities={names["positive"]: 0.9, names["negative"]: 0.1}) for one in texts]
    rows = Page(evaluation_report(replace(REPORT, explanations=texts, truths=[names["negative"]]))).rows
    assert ["true label, predicted as", "1", "2"] in rows
    assert "recommended to everybody (1 text)" in evaluation_report(
        replace(REPORT, explanations=texts, truths=[names["negative"]])
    )


def test_calibration_is_drawn():
    html = evaluation_report(REPORT)
    section = html.split("<h2>Calibration</h2>")[1].split("</section>")[0]
    # Sure .50, .55, .60 (in two bins), .65, .70 and .75; 1, 0, 1, 0, 1, 0 of them right.
    error = (abs(1 - 0.5) + abs(1 - 1.15) + abs(1 - 1.35) + abs(0 - 0.75)) / 6
    assert f"{error:.3f}".removeprefix("0") in section
    assert section.count('class="dot0"') == 4


def test_without_truths_there_are_no_class_results():
    page = Page(evaluation_report(replace(REPORT, truths=None)))
    assert {"Classes", "Calibration", "Right, with the highest confidence", "Most confident errors"}.isdisjoint(
        page.sections
    )
    assert "Words selected per prediction" in page.sections
    assert "right" not in page.sections["Lowest confidence"]


def test_curves_are_sorted_by_budget():
    page = evaluation_report(REPORT)
    section = page.split("<h2>Scores and budget</h2>")[1].split("</section>")[0]
    assert section.count("<polyline") == 2  # accuracy, macro-F1; token-F1 was not measured at these budgets
    assert "accuracy and macro-F1 against budget" in section
    points = section.split('<polyline class="line c1"')[1].split('points="')[1].split('"')[0].split()
    xs = [float(point.split(",")[0]) for point in points]
    ys = [float(point.split(",")[1]) for point in points]
    assert xs == sorted(xs)
    assert ys == sorted(ys, reverse=True)
    assert "without training it again" in section
    one = replace(REPORT, budgets={Budget.share(0.1): SCORES})
    assert "Scores and budget" not in evaluation_report(one)
    words = replace(REPORT, budgets={Budget.count(3): SCORES, Budget.count(5): SCORES})
    assert "budget, words" in evaluation_report(words)
    of_pairs = replace(words, explanations=[GUITAR], truths=["neutral"])
    assert "budget, aligned pairs" in evaluation_report(of_pairs)
    with pytest.raises(ValueError, match=r"10%, 5"):
        evaluation_report(replace(REPORT, budgets={Budget.share(0.1): SCORES, Budget.count(5): SCORES}))


def test_regression():
    explanations = [
        explain(f"text {k}", [0], label=value, probabilities=None) for k, value in enumerate([0.1, 0.5, 0.9])
    ]
    scores = SCORES.replace(accuracy=None, macro_f1=None, mse=0.05)
    page = Page(
        evaluation_report(replace(REPORT, scores=scores, explanations=explanations, truths=[0.1, 0.7, 0.2], examples=1))
    )
    assert "text 0" in page.sections["Smallest errors"]
    assert "text 2" in page.sections["Largest errors"]
    assert "off by 0.7" in page.sections["Largest errors"]
    assert "Classes" not in page.sections
    assert "up to 0.5 (2 texts)" in page.sections["Words selected per prediction"]


def test_pairs_are_drawn():
    scores = SCORES.replace(token_f1=None, alignment_f1=0.8, alignments=4.0)
    html = evaluation_report(replace(REPORT, scores=scores, explanations=[GUITAR] * 3, truths=["neutral"] * 3))
    page = Page(html)
    assert "How many words of each pair were aligned" in page.sections["Rationale sizes"]
    assert html.count("<path") == 40  # twice two examples of "Most confident errors" and of "Lowest confidence"
    assert "man – person" in page.sections["Word pairs aligned per prediction"]
    assert ["alignment-F1", ".800"] in page.rows


def test_many_classes_are_listed_by_their_confusions():
    classes = [f"class {k}" for k in range(20)]
    probabilities = dict.fromkeys(classes, 1 / 20)
    explanations = [explain("a text", [0], label=classes[k % 3], probabilities=probabilities) for k in range(12)]
    page = Page(evaluation_report(replace(REPORT, explanations=explanations, truths=["class 1"] * 12)))
    assert page.rows[-3:] == [
        ["true label", "predicted", "texts"],
        ["class 1", "class 0", "4"],
        ["class 1", "class 2", "4"],
    ]


def test_words_of_the_most_frequent_of_many_predictions():
    names = [f"class {min(k, 60 - k):02}" for k in range(60)]  # "class 00" and "class 30" are of one text each
    probabilities = dict.fromkeys(sorted(set(names)), 1 / 31)
    explanations = [explain("a text", [0], label=name, probabilities=probabilities) for name in names]
    html = evaluation_report(replace(REPORT, explanations=explanations, truths=None))
    section = html.split("<h2>Words selected per prediction</h2>")[1].split("</section>")[0]
    titles = re.findall(r"<h3><bdi>(.*?)</bdi>", section)
    assert titles == [f"class {k:02} (2 texts)" for k in range(1, 26)]
    assert "25 most frequent of 31" in section
    examples = html.split("<h2>Examples of each class</h2>")[1].split("</section>")[0]
    assert examples.count("<article>") == 25


def test_without_findings_and_without_data():
    page = Page(evaluation_report(replace(REPORT, findings=())))
    assert "No sign of degeneration was found." in page.sections[""]
    nothing = Page(evaluation_report(replace(REPORT, explanations=[], truths=[], budgets={})))
    assert list(nothing.sections) == ["", "Scores"]
    with pytest.raises(ValueError, match="explanations, but 1 true labels"):
        evaluation_report(replace(REPORT, truths=["positive"]))


def test_values_are_escaped():
    report = replace(
        REPORT,
        title=HOSTILE,
        facts={HOSTILE: HOSTILE},
        explanations=[explain(HOSTILE, [1], label=HOSTILE, probabilities={HOSTILE: 1.0})],
        truths=["<script>"],
        findings=[Finding("ignores_text", HOSTILE, 1.0)],
    )
    assert not {"script", "img"} & set(Page(evaluation_report(report)).tags)
    assert evaluation_report(report) == evaluation_report(report)
