"""`rationalizer evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rationalizer.cli.base import command, out, show_table, use_threads, warn
from rationalizer.cli.evaluation_views import (
    compare_attributions,
    print_annotator_comparison,
    print_baselines,
    print_labels,
    print_overview,
    scores_by_budget,
    weigher,
)
from rationalizer.cli.options import (
    Aspect,
    DataDir,
    Device,
    OtherBudget,
    OtherConstraint,
    RunArgument,
    TableOptions,
    Threads,
    find_model,
)
from rationalizer.cli.scored_data import find_data, load_trained, read_scored_examples, read_training_examples
from rationalizer.progress import show_progress


@command(
    "rationalizer evaluate runs/mine --faithfulness",
    "rationalizer evaluate runs/mine other.csv --budget 10% --json scores.json",
    "rationalizer evaluate runs/mine --overview --attributions integrated-gradients",
    "rationalizer evaluate runs/mine --report report.html --corrections mine.annotated.jsonl",
)
def evaluate(
    run: RunArgument,
    source: Annotated[
        str | None,
        typer.Argument(metavar="[SOURCE]", help="Other data than that of the training; all rows of a file are scored."),
    ] = None,
    *,
    split: Annotated[
        str | None, typer.Option(help="train, dev or test; by default test, or dev if there is none.")
    ] = None,
    data_dir: DataDir = None,
    aspect: Aspect = None,
    reading: TableOptions,
    budget: OtherBudget = None,
    constraint: OtherConstraint = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the scores to this file.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write an HTML page with scores, charts and examples to this file.")
    ] = None,
    corrections: Annotated[
        Path | None,
        typer.Option(
            help='Add the texts with a wrong prediction to this annotation file (see annotate); adds "Correct this" to '
            "the report."
        ),
    ] = None,
    overview: Annotated[
        bool,
        typer.Option("--overview", help="Also print results by class, selected words, and texts worth looking at."),
    ] = False,
    faithfulness: Annotated[
        bool, typer.Option("--faithfulness", help="Also compute comprehensiveness, sufficiency and their AOPC.")
    ] = False,
    attributions: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help='Also compare with an attribution method on whole texts: "integrated-gradients" (extra "captum").',
        ),
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Score a trained model with every metric that the data allows."""
    use_threads(threads)
    from dataclasses import asdict

    from rationalizer.cli.annotate import PAGE
    from rationalizer.compare import describe_method
    from rationalizer.drawing.evaluation_report import Report, evaluation_report
    from rationalizer.inference import ATTRIBUTIONS, open_corrections, predict
    from rationalizer.inference import evaluate as score
    from rationalizer.inference.baselines import compare_with_baselines
    from rationalizer.inference.evaluate import FAITHFULNESS_PASSES
    from rationalizer.metrics import score_rows
    from rationalizer.model import Rationalizer
    from rationalizer.models.atomic_files import write_bytes, write_json
    from rationalizer.training import degeneration_findings, read_source

    if attributions is not None:
        ATTRIBUTIONS[attributions]  # raises before the texts are scored
    folder = find_model(run)
    trained = load_trained(folder, budget, constraint, device)
    stored = read_source(folder)
    data = find_data(run, stored, source, reading, data_dir, aspect)
    split, examples, own = read_scored_examples(trained, data, split, whole_file=data != stored)
    train = own if data == stored else read_training_examples(trained, stored, folder)
    passes = 1 + FAITHFULNESS_PASSES * (faithfulness and bool(trained.classes))
    with show_progress("Scoring", passes * len(examples)) as on_batch:
        predictions = predict(trained, examples, on_batch=on_batch)
        scores = score(trained, examples, faithfulness=faithfulness, predictions=predictions, on_batch=on_batch)
    baselines = compare_with_baselines(trained, train, examples)
    shown = scores.replace(seconds_per_epoch=None)  # a fact about the training, not about these texts
    model = Rationalizer.from_trained(trained)
    explanations = model.explain_examples(examples, predictions=predictions)
    truths = [label for example in examples if (label := model.label_of(example)) is not None] or None
    weigh = weigher(model, examples)
    method = describe_method(trained.config)
    out.print(f"{run}: {method}; {data.name}, {split}")
    show_table(["score", split], score_rows({split: shown}))
    print_labels(shown)
    print_baselines(shown, baselines)
    annotators = print_annotator_comparison(trained, examples)
    if faithfulness:
        remark = "p(y|x) is this model's predictor on the whole text"
        out.print(remark if trained.classes else "comprehensiveness and sufficiency are not defined for a regression")
    if overview:
        print_overview(explanations, truths, weigh)
    attribution = None
    if attributions is not None:
        attribution = compare_attributions(model, examples, predictions, attributions)
    findings = degeneration_findings(trained.config.method, scores)
    warn(f"warning: {finding.message}" for finding in findings)
    if corrections is not None:
        wrong = [k for k, one in enumerate(explanations) if truths and one.label != truths[k]]
        given = [truths[k] for k in wrong] if truths else []
        open_corrections(corrections, trained, [examples[k] for k in wrong], given)
        command_line = f"rationalizer annotate {corrections} --model {run}"
        out.print(
            f"{len(wrong)} texts with a wrong prediction are in {corrections}; next: {command_line}", markup=False
        )
    if json_file is not None:
        record = {
            "run": str(run),
            "source": data.to_json(),
            "split": split,
            "budget": str(trained.config.budget),
            "constraints": [str(each) for each in trained.config.constraints],
            "scores": scores.as_dict(),
            "baselines": baselines,
            "labels": {name: own.as_dict() for name, own in scores.by_label.items()},
            "findings": [asdict(finding) for finding in findings],
        }
        write_json(json_file, record if annotators is None else {**record, "people": annotators})
    if report is not None:
        name, described = run.resolve().name, f"{data.name}, {split}"
        page = Report(
            title=f"{name} on {described}",
            scores=shown,
            explanations=explanations,
            truths=truths,
            weigh=weigh,
            findings=findings,
            baselines=baselines,
            facts={"model": name, "method": method, "data": described},
            budgets=scores_by_budget(trained, examples, shown),
            attribution=attribution,
            correct="" if corrections is None else PAGE,
        )
        write_bytes(report, evaluation_report(page).encode())
        out.print(f"Report: {report}", markup=False)
