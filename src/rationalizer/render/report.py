"""A model's evaluation as one page: scores, sizes, budgets, and the texts to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rationalizer.metrics import METRICS, Finding, Scores, Spread, score_lines
from rationalizer.plot import Point, Series, histogram, line_plot
from rationalizer.render.explanation import AnyExplanation, Explanation, Label, PairExplanation
from rationalizer.render.html import Listing, Section, to_html_page
from rationalizer.render.summary import label_text
from rationalizer.text import Budget

MOST_CLASSES = 12  # of a table of confusions; of more, the commonest are listed
COMMONEST = 10
CURVES = (("accuracy", "macro_f1"), ("mse",), ("token_f1",), ("alignment_f1",))  # those of one plot together


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a report is made of: plain values that were measured before."""

    title: str
    scores: Scores
    explanations: Sequence[AnyExplanation]  # of the scored texts
    truths: Sequence[Label]  # their true labels, of the same type as `Explanation.label`
    findings: Sequence[Finding] = ()  # what looks degenerate
    facts: Mapping[str, str] = field(default_factory=dict)  # what was evaluated: method, budget, data, ...
    budgets: Mapping[Budget, Scores] = field(default_factory=dict)  # the scores at several budgets
    examples: int = 4  # texts to show of either kind


def evaluation_report(report: Report) -> str:
    """The report as one HTML document that needs nothing beside it."""
    if len(report.truths) != len(report.explanations):
        raise ValueError(
            f"{len(report.explanations)} explanations have {len(report.truths)} true labels; give one for each"
        )
    sections = [_about(report), _scores(report), _sizes(report), _budgets(report), _confusions(report)]
    sections += _examples(report)
    return to_html_page(title=report.title, sections=[section for section in sections if section is not None])


def _about(report: Report) -> Section:
    facts = [Listing(("", ""), list(report.facts.items()), numbers=False)] if report.facts else []
    shown = [metric for metric in METRICS.values() if metric.large]
    large = [(name, value) for name, value in score_lines({"": report.scores}, shown)]
    found = [f"Looks degenerate: {finding.message}." for finding in report.findings]
    said = "" if found else "No sign of degeneration was found."
    return Section(text=said, notices=found, figures=large, tables=facts)


def _scores(report: Report) -> Section:
    tables = []
    for name in dict.fromkeys(metric.group for metric in METRICS.values()):
        lines = score_lines({"": report.scores}, [metric for metric in METRICS.values() if metric.group == name])
        if lines:
            tables.append(Listing((name, ""), lines))
    return Section("Scores", tables=tables)


def _sizes(report: Report) -> Section | None:
    """How much was selected: shares of texts, or counts of aligned words."""
    texts = [one for one in report.explanations if isinstance(one, Explanation) and one.tokens]
    pairs = [one for one in report.explanations if isinstance(one, PairExplanation)]
    pictures = []
    if texts:
        shares = [100 * one.words_selected / max(one.words_in_all, 1) for one in texts]
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
        Point(budget.amount if budget.kind == "count" else round(100 * budget.amount, 6), Spread.of([value]))
        for budget, value in found
        if value is not None
    ]
    return Series(METRICS[name].words, tuple(points))


def _confusions(report: Report) -> Section | None:
    if not report.explanations or any(one.probabilities is None for one in report.explanations):
        return None
    predicted = [label_text(one.label) for one in report.explanations]
    true = [label_text(truth) for truth in report.truths]
    counts = Counter(zip(true, predicted, strict=True))
    classes = [label_text(label) for label in report.explanations[0].probabilities or ()]
    classes = list(dict.fromkeys([*classes, *true, *predicted]))
    if len(classes) <= MOST_CLASSES:
        lines = [[name, *(str(counts[name, other]) for other in classes)] for name in classes]
        return Section("Confusions", tables=[Listing(["true label, and how often it was taken for", *classes], lines)])
    wrong = [(pair, count) for pair, count in counts.most_common() if pair[0] != pair[1]]
    lines = [[name, other, str(count)] for (name, other), count in wrong[:COMMONEST]]
    heads = ("true label", "taken for", "how often")
    return Section("Commonest confusions", tables=[Listing(heads, lines)]) if lines else None


def _examples(report: Report) -> list[Section | None]:
    """The best and the worst: of a regressor the closest and the farthest, of a classifier the right and the wrong
    ones that it was surest of; where nothing is wrong, the least sure."""
    pairs = list(zip(report.explanations, report.truths, strict=True))
    classified = [pair for pair in pairs if pair[0].probabilities is not None]
    classified.sort(key=lambda pair: -_confidence(pair[0]))
    values = sorted((pair for pair in pairs if pair[0].probabilities is None), key=_error)
    right = [pair for pair in classified if label_text(pair[0].label) == label_text(pair[1])]
    wrong = [pair for pair in classified if label_text(pair[0].label) != label_text(pair[1])]
    return [
        _shown("Right, and surest", right[: report.examples]),
        _shown("Wrong, and surest", wrong[: report.examples]),
        _shown("Right, but least sure", right[report.examples :][: -report.examples - 1 : -1] if not wrong else []),
        _shown("Closest", values[: report.examples]),
        _shown("Farthest off", values[: -report.examples - 1 : -1]),
    ]


_Pair = tuple[AnyExplanation, Label]


def _shown(title: str, pairs: Sequence[_Pair]) -> Section | None:
    if not pairs:
        return None
    return Section(title, explanations=[one for one, _ in pairs], truths=[truth for _, truth in pairs])


def _confidence(explanation: AnyExplanation) -> float:
    return max((explanation.probabilities or {}).values(), default=0.0)


def _error(pair: _Pair) -> float:
    return abs(float(pair[0].label) - float(pair[1]))
