"""What `rationalizer evaluate` prints and writes besides the scores, and what `rationalizer serve --dataset` shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, cast

from rationalizer.cli.base import out, show_table
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.drawing import AnyExplanation, Label
    from rationalizer.drawing.evaluation_report import AttributionReport
    from rationalizer.inference import Predictions
    from rationalizer.metrics import Scores
    from rationalizer.model import Rationalizer
    from rationalizer.models import TrainedModel
    from rationalizer.text import AnyExample, Budget, Example

WORDS = 12  # listed for each prediction
EXAMPLES = 3  # drawn of each kind
SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)
COUNTS = (1, 2, 3, 5, 10, 20)


def print_explanations(
    explanations: Sequence[AnyExplanation],
    truths: Sequence[Label | None] | None = None,
    *,
    title: str | None = None,
    legend: bool = False,
) -> None:
    """Print drawings of explanations, with a legend below the last one if wanted; nothing if there are none."""
    from rich.text import Text

    from rationalizer.drawing import to_terminal

    if title is not None and explanations:
        out.print(f"\n{title}:", style="bold")
    colour = out.is_terminal and not out.no_color
    width = min(out.width, 100) if out.is_terminal else None
    for number, explanation in enumerate(explanations):
        truth = None if truths is None else truths[number]
        last = number == len(explanations) - 1
        drawn = to_terminal(explanation, truth=truth, colour=colour, width=width, legend=legend and last)
        out.print(Text.from_ansi(drawn) if colour else Text(drawn), end="\n\n")


def print_baselines(scores: Mapping[str, float], baselines: Mapping[str, Mapping[str, float]]) -> None:
    """Print the model's scores beside those of simpler models; nothing without any."""
    from rationalizer.drawing.evaluation_report import baseline_table

    if baselines:
        table = baseline_table(scores, baselines)
        show_table(table.heads, table.lines)


def print_labels(scores: Scores) -> None:
    """Print the scores of each of several labels or targets; nothing for one label."""
    from rationalizer.drawing.label_overview import MAX_LABELS, label_table

    if scores.by_label:
        table = label_table(scores.by_label, most=MAX_LABELS)
        show_table(table.heads, table.lines)


def print_annotator_comparison(trained: TrainedModel, examples: Sequence[AnyExample]) -> dict[str, Any] | None:
    """Print how well annotators agree with each other, and how well the model agrees with them if it replaces one.

    Returns the figures, or None if no text has two annotators.
    """
    from rationalizer.inference import compare_with_annotators
    from rationalizer.metrics import METRICS

    texts = cast("Sequence[Example]", () if trained.pairs else examples)
    counts = [len(text.annotator_masks or ()) for text in texts]
    comparisons = sum(count for count in counts if count > 1)
    if not comparisons or trained.description.labels.names or trained.description.rationales != "shared":
        return None
    if not trained.model.method.follows_budget:
        out.print(f"{trained.config.method} does not follow a budget, so it is not compared with single annotators")
        return None
    with show_progress("Comparing with annotators", comparisons) as on_batch:
        result = compare_with_annotators(trained, texts, on_batch=on_batch)
    show = METRICS["token_f1"].format_value
    compared = {"an annotator": result.person, "the model": result.model, "chance": result.chance}
    show_table(
        ["compared with the other annotators", "token-F1", "AUPRC"],
        [[name, show(scores.token_f1), show(scores.auprc)] for name, scores in compared.items()],
    )
    out.print(
        f"{result.texts} texts with {result.people:.1f} annotators each, who mark {result.marked:.0%} of the words on "
        "average; the model selects as many words as the annotator it replaces"
    )
    return asdict(result)


def print_overview(
    explanations: Sequence[AnyExplanation],
    truths: Sequence[Label] | None,
    weigh: Callable[[Sequence[int]], Sequence[AnyExplanation]],
) -> None:
    """Print the results by class, the words selected for each prediction, and texts worth looking at, for which `weigh`
    returns the explanations with the weights of the words."""
    from rationalizer.drawing.dataset_overview import most_frequent, unit_text
    from rationalizer.drawing.evaluation_report import class_table, confusion_tables, has_several_labels, overview_of
    from rationalizer.drawing.label_overview import MAX_LABELS

    found = overview_of(explanations, truths, examples=EXAMPLES)
    if found.class_results:
        for table in (class_table(found.class_results), *confusion_tables(found.class_results)):
            shown = table.first(MAX_LABELS)
            show_table(shown.heads, shown.lines)
    out.print("Texts in which a word is selected / texts that contain it, the most characteristic words first:")
    for group in most_frequent(found.groups):
        words = ", ".join(f"{unit_text(use.word)} {use.selected}/{use.seen}" for use in group.words[:WORDS])
        out.print(f"  {group.name} ({group.texts}): {words}", markup=False)
    by_error = any(one.probabilities is None for one in explanations) or has_several_labels(explanations)
    titles = {"Largest errors" if by_error else "Most confident errors": found.surprising}
    for title, indices in (titles | {"Lowest confidence": found.uncertain}).items():
        chosen = None if truths is None else [truths[k] for k in indices]
        print_explanations(weigh(indices), chosen, title=title)


def weigher(model: Rationalizer, examples: Sequence[AnyExample]) -> Callable[[Sequence[int]], Sequence[AnyExplanation]]:
    """Return a function that explains some of the texts, with the weights of their words."""

    def weigh(numbers: Sequence[int]) -> Sequence[AnyExplanation]:
        return model.explain_examples([examples[number] for number in numbers], reasons=True)

    return weigh


def compare_attributions(
    model: Rationalizer, examples: Sequence[AnyExample], predictions: Predictions, method: str
) -> AttributionReport:
    """Compare the model's rationales with the words that an attribution method selects, and print the result."""
    import numpy as np

    from rationalizer.drawing.evaluation_report import AttributionReport, attribution_table
    from rationalizer.inference import compare_with_attributions
    from rationalizer.inference.attribution_comparison import PASSES

    texts = cast("Sequence[Example]", examples)
    with show_progress("Attributing", (1 + PASSES) * len(texts)) as on_batch:
        result = compare_with_attributions(model.trained, texts, method, predictions=predictions, on_batch=on_batch)
    # Without annotations, which would be drawn too: the two selections are compared with each other.
    plain = [replace(text, annotation=None) for text in texts]
    masks = zip(result.own.masks, result.attributed.masks, strict=True)
    difference = [int((own & ~other).sum()) / max(int(own.sum()), 1) for own, other in masks]
    drawn = np.argsort(-np.array(difference), kind="stable")[:EXAMPLES].tolist()
    own = model.explain_examples(plain, predictions=predictions)
    attributed = model.explain_examples(plain, predictions=result.as_predictions())
    rows = (result.own, result.attributed, result.chance)
    report = AttributionReport(rows, method, [own[k] for k in drawn], [attributed[k] for k in drawn])
    table = attribution_table(report)
    show_table(table.heads, table.lines)
    out.print("p(y|x) is this model's predictor on the whole text; all rows select the same number of words per text")
    for one, other in zip(report.own, report.attributed, strict=True):
        print_explanations([one], title="The model's rationale")
        print_explanations([other], title=f"By {method}")
    return report


def scores_by_budget(trained: TrainedModel, examples: Sequence[AnyExample], own: Scores) -> dict[Budget, Scores]:
    """Score the model at several budgets, its own included; empty if its method does not follow a budget."""
    from rationalizer.inference import evaluate
    from rationalizer.text import Budget

    if not trained.model.method.follows_budget:
        return {}
    budget = trained.config.budget
    if budget.kind == "average":
        budgets = [Budget.average(s, least=min(budget.least, s), most=max(budget.most, s)) for s in SHARES]
    elif budget.kind == "enough":
        budgets = [Budget.enough(s, certainty=budget.certainty) for s in SHARES]
    else:
        budgets = [*map(Budget.count, COUNTS)] if budget.kind == "count" else [*map(Budget.share, SHARES)]
    others = [other for other in budgets if other != budget]
    with show_progress("Scoring at other budgets", len(others) * len(examples)) as on_batch:
        return {budget: own} | {other: evaluate(trained, examples, budget=other, on_batch=on_batch) for other in others}


def dataset_view(model: Rationalizer, examples: Sequence[AnyExample], name: str) -> str:
    """An HTML fragment about a model on a whole dataset; without scores if a true label is missing."""
    from rationalizer.drawing.evaluation_report import Report, report_sections
    from rationalizer.drawing.html import to_html_fragment
    from rationalizer.inference import evaluate, predict
    from rationalizer.training import degeneration_findings

    if not examples:
        raise ValueError("the dataset has no rows; choose another file")
    with show_progress(f"Explaining with {name}", len(examples)) as on_batch:
        predictions = predict(model.trained, examples, on_batch=on_batch)
    truths = [label for example in examples if (label := model.label_of(example)) is not None]
    labelled = len(truths) == len(examples)
    scores = evaluate(model.trained, examples, predictions=predictions) if labelled else None
    report = Report(
        title=name,
        scores=scores,
        weigh=weigher(model, examples),
        explanations=model.explain_examples(examples, predictions=predictions),
        truths=truths if labelled else None,
        findings=degeneration_findings(model.config.method, scores) if scores else (),
    )
    return to_html_fragment(report_sections(report))
