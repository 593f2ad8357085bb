"""A model's evaluation as one page: the score beside baselines, sizes, budgets, comparison with an attribution,
example texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rationalizer.drawing.charts import Point, Series, histogram, line_plot, reliability_diagram
from rationalizer.drawing.dataset_overview import (
    ClassResults,
    Overview,
    Unit,
    excerpt,
    most_frequent,
    overview,
    unit_text,
)
from rationalizer.drawing.explanation import AnyExplanation, Explanation, PairExplanation
from rationalizer.drawing.html import HtmlTable, Section, WordColumn, WordEntry, to_html_page
from rationalizer.drawing.label_overview import label_overview, label_table
from rationalizer.drawing.selected_words import Label
from rationalizer.metrics import METRICS, Finding, Scores, Summary, WordUse, score_rows
from rationalizer.text import Budget

if TYPE_CHECKING:
    from rationalizer.inference.attribution_comparison import SelectionScores

MAX_CLASSES = 12  # maximum size of a confusion table; with more classes, the most frequent confusions are listed
MAX_CONFUSIONS = 10
MAX_HEADING = 12  # characters of a class name above a column
EXCERPTS = 3  # example texts per word
MAX_WORDS = 200  # words of all predictions together
COMPARED = (
    "accuracy",
    "micro_f1",
    "macro_f1",
    "average_precision",
    "mse",
    "mae",
    "r2",
)  # scores shown beside those of baselines
CURVES = (("accuracy", "macro_f1"), ("mse",), ("token_f1",), ("alignment_f1",))  # groups that share a plot

ATTRIBUTION_TEXT = (
    "The model selects words and reads these alone. An attribution computes, for the same predictor on the whole text, "
    "how much each word contributes; as many words as the model selected are kept. Comprehensiveness is how far the "
    "probability of the class predicted from the whole text falls without the words (higher is better), sufficiency "
    "how far it falls with these words alone (lower is better)."
)


@dataclass(frozen=True)
class AttributionReport:
    """Scores of the model's rationales and of an attribution, and some texts explained in both ways."""

    rows: Sequence[SelectionScores]
    name: str  # name of the attribution
    own: Sequence[AnyExplanation]
    attributed: Sequence[AnyExplanation]


@dataclass(frozen=True, kw_only=True)
class Report:
    """The contents of a report, all computed before."""

    title: str
    scores: Scores | None  # None without true labels
    explanations: Sequence[AnyExplanation]  # explanations of the scored texts
    truths: Sequence[Label] | None  # true labels, of the same type as `Explanation.label`; None: not known
    # Returns the explanations of some of these texts, with the weights of their words; None: they are drawn without.
    weigh: Callable[[Sequence[int]], Sequence[AnyExplanation]] | None = None
    findings: Sequence[Finding] = ()  # signs of degeneration
    facts: Mapping[str, str] = field(default_factory=dict)  # method, budget, data, ...
    budgets: Mapping[Budget, Scores] = field(default_factory=dict)  # the scores at several budgets
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # their scores on the same texts
    attribution: AttributionReport | None = None  # comparison with an attribution method
    examples: int = 4  # number of texts of each kind
    words: int = 20  # largest number of words per prediction
    correct: str = ""  # the address of an annotation page; the example texts then have links to it


def evaluation_report(report: Report) -> str:
    """Draw the report as a self-contained HTML document."""
    return to_html_page(title=report.title, sections=report_sections(report), contents=True)


def report_sections(report: Report) -> list[Section]:
    summary = overview_of(report.explanations, report.truths, examples=report.examples)
    sections = [
        _about(report),
        _scores(report),
        _labels(report),
        _classes(summary.class_results),
        _words(report, summary),
    ]
    sections += [_sizes(report), _budgets(report), _calibration(summary.class_results)]
    sections += [] if report.attribution is None else attribution_sections(report.attribution)
    sections += _examples(report, summary)
    return [section for section in sections if section is not None]


def overview_of(
    explanations: Sequence[AnyExplanation], truths: Sequence[Label] | None = None, *, examples: int
) -> Overview:
    """The overview of the predictions of one label, or of several."""
    if has_several_labels(explanations):
        return label_overview([one for one in explanations if isinstance(one, Explanation)], truths, examples=examples)
    return overview(explanations, truths, examples=examples)


def has_several_labels(explanations: Sequence[AnyExplanation]) -> bool:
    """Whether the model predicts several labels or targets."""
    return any(isinstance(one.label, tuple | dict) for one in explanations)


def _about(report: Report) -> Section:
    """What a reader wants to know first: the scores, beside those of simpler models, and warnings."""
    metrics = [metric for metric in METRICS.values() if metric.large]
    large = [(name, value) for name, value in score_rows({"": report.scores}, metrics)] if report.scores else []
    notices = [f"Possibly degenerate: {finding.message}." for finding in report.findings]
    text = "No sign of degeneration was found." if report.scores and not notices else ""
    tables = [baseline_table(report.scores, report.baselines)] if report.scores and report.baselines else []
    tables += [HtmlTable(("", ""), list(report.facts.items()), numbers=False)] if report.facts else []
    return Section(text=text, notices=notices, figures=large, tables=tables)


def baseline_table(scores: Mapping[str, float], baselines: Mapping[str, Mapping[str, float]]) -> HtmlTable:
    """The scores of the task, of the model and of the baselines on the same texts."""
    hidden = "accuracy" if "micro_f1" in scores else ""  # over several labels it says little
    shown = [METRICS[name] for name in COMPARED if name in scores and name != hidden]
    size = scores.get("size")
    own = "this model" if size is None else f"this model, from {size:.0%} of the words"
    rows: dict[str, Mapping[str, float]] = {own: scores, **baselines}
    lines = [
        [name, *(metric.format_value(row[metric.name]) if metric.name in row else "" for metric in shown)]
        for name, row in rows.items()
    ]
    return HtmlTable(("on the same texts", *(metric.short_name for metric in shown)), lines)


def _scores(report: Report) -> Section | None:
    if report.scores is None:
        return None
    tables = []
    for name in dict.fromkeys(metric.group for metric in METRICS.values()):
        lines = score_rows({"": report.scores}, [metric for metric in METRICS.values() if metric.group == name])
        if lines:
            tables.append(HtmlTable((name, ""), lines))
    return Section("Scores", tables=tables)


def _labels(report: Report) -> Section | None:
    if report.scores is None or not report.scores.by_label:
        return None
    return Section("Labels", tables=[label_table(report.scores.by_label)])


def _sizes(report: Report) -> Section | None:
    """Histogram of the shares of selected words, or of the numbers of aligned words."""
    texts = [one for one in report.explanations if isinstance(one, Explanation) and one.tokens]
    pairs = [one for one in report.explanations if isinstance(one, PairExplanation)]
    pictures = []
    if texts:
        shares = [100 * one.selected_word_count / max(one.word_count, 1) for one in texts]
        pictures.append(histogram(shares, title="How much of each text was read", x_label="% of the words", least=0))
    if pairs:
        counts = [len(one.pairs) for one in pairs]
        title = "How many words of each pair were aligned"
        pictures.append(histogram(counts, title=title, x_label="aligned word pairs", y_label="pairs", least=0))
    return Section("Rationale sizes", pictures=pictures) if pictures else None


def _budgets(report: Report) -> Section | None:
    if len(report.budgets) < 2:
        return None
    kinds = {budget.kind for budget in report.budgets}
    if len(kinds) > 1:
        raise ValueError(
            f"budgets must be either all shares or all counts of words, got {', '.join(map(str, report.budgets))}"
        )
    in_words = kinds == {"count"}
    pairs = any(isinstance(one, PairExplanation) for one in report.explanations)
    counted, whole = ("aligned pairs", "the shorter text") if pairs else ("words", "the words")
    pictures = []
    for names in CURVES:
        series = [curve for name in names if len((curve := _curve(report.budgets, name)).points) > 1]
        if series:
            drawn = " and ".join(curve.name for curve in series)
            x_label = f"budget, {counted if in_words else f'% of {whole}'}"
            y_label = drawn if len(series) == 1 else "score"
            pictures.append(line_plot(series, title=f"{drawn} against budget", x_label=x_label, y_label=y_label))
    text = "The same model at each budget, without training it again."
    return Section("Scores and budget", text=text, pictures=pictures) if pictures else None


def _curve(budgets: Mapping[Budget, Scores], name: str) -> Series:
    """A score at each budget at which it was measured; shares in percent."""
    values = [(budget, budgets[budget].get(name)) for budget in sorted(budgets, key=Budget.sort_key)]
    points = [
        Point(budget.amount if budget.kind == "count" else round(100 * budget.amount, 6), Summary.from_values([value]))
        for budget, value in values
        if value is not None
    ]
    return Series(METRICS[name].description, tuple(points))


def _classes(class_results: ClassResults | None) -> Section | None:
    if class_results is None:
        return None
    return Section("Classes", tables=[class_table(class_results), *confusion_tables(class_results)])


def class_table(class_results: ClassResults) -> HtmlTable:
    share = METRICS["macro_f1"].format_value
    lines = [
        [str(c.name), share(c.precision), share(c.recall), share(c.f1), str(c.documents)]
        for c in class_results.by_class
    ]
    return HtmlTable(("class", "precision", "recall", "F1", "texts"), lines)


def confusion_tables(class_results: ClassResults) -> list[HtmlTable]:
    """The confusion table, or the most frequent confusions of many classes; empty if there are none.

    More than two classes, and long names, are numbered, so that the table is narrow whatever the names are.
    """
    if len(class_results.names) <= MAX_CLASSES:
        columns, rows = list(class_results.names), list(class_results.names)
        if len(rows) > 2 or max(map(len, rows)) > MAX_HEADING:
            columns = [str(k + 1) for k in range(len(rows))]
            rows = [f"{k}  {name}" for k, name in zip(columns, rows, strict=True)]
        counts = class_results.confusions.tolist()
        lines = [[name, *map(str, row)] for name, row in zip(rows, counts, strict=True)]
        return [HtmlTable(["true label, predicted as", *columns], lines)]
    wrong = [(i, j) for i, j in zip(*np.nonzero(class_results.confusions), strict=True) if i != j]
    wrong.sort(key=lambda pair: -class_results.confusions[pair])
    pairs = [
        [class_results.names[i], class_results.names[j], str(class_results.confusions[i, j])]
        for i, j in wrong[:MAX_CONFUSIONS]
    ]
    return [HtmlTable(("true label", "predicted", "texts"), pairs)] if pairs else []


def _calibration(class_results: ClassResults | None) -> Section | None:
    if class_results is None:
        return None
    error = METRICS["ece"].format_value(class_results.calibration.error)
    text = (
        f"Of the predictions with a probability of 80%, 80% should be right. On average the two differ by {error}, the "
        "expected calibration error. Bars below the dashed line mean that the model is overconfident; the numbers "
        "count predictions."
    )
    picture = reliability_diagram(class_results.calibration, title="How often the model is right, by how sure it is")
    return Section("Calibration", text=text, pictures=[picture])


def _words(report: Report, summary: Overview) -> Section | None:
    pairs = any(isinstance(one, PairExplanation) for one in report.explanations)
    groups = [group for group in summary.groups if group.words]
    shown = most_frequent(groups)
    most = min(report.words, MAX_WORDS // max(1, len(shown)))
    columns = [
        WordColumn(
            f"{group.name} ({group.texts} {'pair' if pairs else 'text'}{'' if group.texts == 1 else 's'})",
            [
                WordEntry(unit_text(use.word), use.selected, use.seen, _excerpts(report, use))
                for use in group.words[:most]
            ],
        )
        for group in shown
    ]
    what, where = ("Word pairs", "pairs of texts") if pairs else ("Words", "texts")
    verb = "aligned" if pairs else "selected"
    text = (
        f"{what} {verb} in the {where} with this prediction. “3 of 5” means: {verb} in 3 of the 5 such {where} that "
        "contain it. "
        f"{what} {verb} more often here than elsewhere come first. Click to see examples."
    )
    if len(groups) > len(shown):
        text += f" The {len(shown)} most frequent of {len(groups)} predictions are shown."
    return Section(f"{what} {verb} per prediction", text=text, columns=columns) if columns else None


def _excerpts(report: Report, use: WordUse[Unit]) -> list[AnyExplanation]:
    return [excerpt(report.explanations[number], use.word) for number in use.documents[:EXCERPTS]]


def _examples(report: Report, summary: Overview) -> list[Section | None]:
    valued = any(one.probabilities is None for one in report.explanations) or has_several_labels(report.explanations)
    surprising = "" if valued else "Wrong predictions with the lowest probability of the true label."
    return [
        _example_section(
            report,
            "Smallest errors" if valued else "Examples of each class",
            summary.best,
            "" if valued else f"{'Correct p' if report.truths else 'P'}redictions with the highest confidence.",
        ),
        _example_section(
            report, "Largest errors" if valued else "Most confident errors", summary.surprising, surprising
        ),
        _example_section(
            report, "Lowest confidence", summary.uncertain, "The most probable labels have similar probabilities."
        ),
    ]


def _example_section(report: Report, title: str, numbers: Sequence[int], text: str = "") -> Section | None:
    if not numbers:
        return None
    truths = None if report.truths is None else [report.truths[number] for number in numbers]
    drawn = [report.explanations[number] for number in numbers] if report.weigh is None else report.weigh(numbers)
    return Section(title, text=text, explanations=drawn, truths=truths, correct=report.correct)


def attribution_table(report: AttributionReport) -> HtmlTable:
    lines = [
        [
            row.name,
            METRICS["comprehensiveness"].format_value(row.comprehensiveness),
            METRICS["sufficiency"].format_value(row.sufficiency),
            f"{row.overlap:.0%}",
        ]
        for row in report.rows
    ]
    return HtmlTable(("words", "comprehensiveness", "sufficiency", "shared with the model"), lines)


def attribution_sections(report: AttributionReport) -> list[Section]:
    explanations = [one for pair in zip(report.own, report.attributed, strict=True) for one in pair]
    captions = [
        "The model's rationale, and the prediction from it",
        f"By {report.name}, and the prediction from the whole text",
    ] * len(report.own)
    return [
        Section("Comparison with an attribution", text=ATTRIBUTION_TEXT, tables=[attribution_table(report)]),
        Section(text="Texts in which the two differ most.", explanations=explanations, captions=captions),
    ]
