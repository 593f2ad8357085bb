"""A model's evaluation as one page: scores, sizes, budgets, and the texts to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rationalizer.drawing.attribution_section import AttributionReport, attribution_sections
from rationalizer.drawing.charts import Point, Series, histogram, line_plot, reliability_diagram
from rationalizer.drawing.dataset_overview import ClassResults, Overview, Unit, excerpt, overview, unit_text
from rationalizer.drawing.explanation import AnyExplanation, Explanation, Label, PairExplanation
from rationalizer.drawing.html import Column, Entry, HtmlTable, Section, to_html_page
from rationalizer.metrics import METRICS, Finding, Scores, Summary, WordUse, score_rows
from rationalizer.text import Budget

MOST_CLASSES = 12  # of a table of confusions; of more, the commonest are listed
COMMONEST = 10
EXCERPTS = 3  # of texts in which a word is selected
CURVES = (("accuracy", "macro_f1"), ("mse",), ("token_f1",), ("alignment_f1",))  # those of one plot together


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a report is made of: plain values that were measured before."""

    title: str
    scores: Scores | None  # None where no true labels are known
    explanations: Sequence[AnyExplanation]  # of the scored texts
    truths: Sequence[Label] | None  # their true labels, of the same type as `Explanation.label`; None: not known
    findings: Sequence[Finding] = ()  # what looks degenerate
    facts: Mapping[str, str] = field(default_factory=dict)  # what was evaluated: method, budget, data, ...
    budgets: Mapping[Budget, Scores] = field(default_factory=dict)  # the scores at several budgets
    attribution: AttributionReport | None = None  # comparison with an attribution method
    examples: int = 4  # texts to show of each kind
    words: int = 20  # to show of each prediction


def evaluation_report(report: Report) -> str:
    """The report as one HTML document that needs nothing beside it."""
    return to_html_page(title=report.title, sections=report_sections(report))


def report_sections(report: Report) -> list[Section]:
    seen = overview(report.explanations, report.truths, examples=report.examples)
    sections = [_about(report), _scores(report), _classes(seen.class_results), _words(report, seen)]
    sections += [_sizes(report), _budgets(report), _calibration(seen.class_results)]
    sections += [] if report.attribution is None else attribution_sections(report.attribution)
    sections += _examples(report, seen)
    return [section for section in sections if section is not None]


def _about(report: Report) -> Section:
    facts = [HtmlTable(("", ""), list(report.facts.items()), numbers=False)] if report.facts else []
    shown = [metric for metric in METRICS.values() if metric.large]
    large = [(name, value) for name, value in score_rows({"": report.scores}, shown)] if report.scores else []
    found = [f"Looks degenerate: {finding.message}." for finding in report.findings]
    said = "No sign of degeneration was found." if report.scores and not found else ""
    return Section(text=said, notices=found, figures=large, tables=facts)


def _scores(report: Report) -> Section | None:
    if report.scores is None:
        return None
    tables = []
    for name in dict.fromkeys(metric.group for metric in METRICS.values()):
        lines = score_rows({"": report.scores}, [metric for metric in METRICS.values() if metric.group == name])
        if lines:
            tables.append(HtmlTable((name, ""), lines))
    return Section("Scores", tables=tables)


def _sizes(report: Report) -> Section | None:
    """How much was selected: shares of texts, or counts of aligned words."""
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
        raise ValueError(f"budgets are shares or counts of words, not both: {', '.join(map(str, report.budgets))}")
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
    text = "The same model, solved again at each budget; it was not trained anew."
    return Section("Scores and budget", text=text, pictures=pictures) if pictures else None


def _curve(budgets: Mapping[Budget, Scores], name: str) -> Series:
    """A score at each budget where it was measured, shares in percent."""
    found = [(budget, budgets[budget].as_dict().get(name)) for budget in sorted(budgets, key=Budget.sort_key)]
    points = [
        Point(budget.amount if budget.kind == "count" else round(100 * budget.amount, 6), Summary.from_values([value]))
        for budget, value in found
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
    """All confusions, or the commonest of many classes; none where nothing was confused."""
    if len(class_results.names) <= MOST_CLASSES:
        lines = [
            [name, *map(str, row)]
            for name, row in zip(class_results.names, class_results.confusions.tolist(), strict=True)
        ]
        return [HtmlTable(["true label, and how often it was taken for", *class_results.names], lines)]
    wrong = [(i, j) for i, j in zip(*np.nonzero(class_results.confusions), strict=True) if i != j]
    wrong.sort(key=lambda pair: -class_results.confusions[pair])
    found = [
        [class_results.names[i], class_results.names[j], str(class_results.confusions[i, j])]
        for i, j in wrong[:COMMONEST]
    ]
    return [HtmlTable(("true label", "taken for", "how often"), found)] if found else []


def _calibration(class_results: ClassResults | None) -> Section | None:
    if class_results is None:
        return None
    error = METRICS["ece"].format_value(class_results.calibration.error)
    text = (
        f"Of the predictions that the model is 80% sure of, 80% should be right. On average the two differ by {error}, "
        "the expected calibration error. Where a bar ends below the dashed line, the model is surer than it should be; "
        "the number counts the bar's predictions."
    )
    picture = reliability_diagram(class_results.calibration, title="How often the model is right, by how sure it is")
    return Section("Calibration", text=text, pictures=[picture])


def _words(report: Report, seen: Overview) -> Section | None:
    pairs = any(isinstance(one, PairExplanation) for one in report.explanations)
    columns = [
        Column(
            f"{group.name} ({group.texts} {'pairs' if pairs else 'texts'})",
            [
                Entry(unit_text(use.word), use.selected, use.seen, _excerpts(report, use))
                for use in group.words[: report.words]
            ],
        )
        for group in seen.groups
        if group.words
    ]
    what, where = ("Word pairs", "pairs of texts") if pairs else ("Words", "texts")
    done = "aligned" if pairs else "selected"
    text = (
        f"{what} in the {where} with this prediction: in how many they are {done}, of those that have them. First come "
        f"those that are {done} more often here than elsewhere. A click opens examples."
    )
    return Section(f"What is {done} for which prediction", text=text, columns=columns) if columns else None


def _excerpts(report: Report, use: WordUse[Unit]) -> list[AnyExplanation]:
    return [excerpt(report.explanations[number], use.word) for number in use.documents[:EXCERPTS]]


def _examples(report: Report, seen: Overview) -> list[Section | None]:
    valued = any(one.probabilities is None for one in report.explanations)
    surprising = "" if valued else "Wrong, and the true label was given the least probability."
    return [
        _shown(report, "Closest" if valued else "Right, and surest", seen.best),
        _shown(report, "Farthest off" if valued else "Most surprising", seen.surprising, surprising),
        _shown(report, "Least certain", seen.uncertain, "No label was given much more probability than another."),
    ]


def _shown(report: Report, title: str, numbers: Sequence[int], text: str = "") -> Section | None:
    if not numbers:
        return None
    truths = None if report.truths is None else [report.truths[number] for number in numbers]
    return Section(title, text=text, explanations=[report.explanations[number] for number in numbers], truths=truths)
