"""`rationalizer evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rationalizer.cli.base import command, err, out, show_table
from rationalizer.cli.options import Aspect, Column, DataDir, RunArgument, find_model
from rationalizer.cli.progress import progress
from rationalizer.cli.report import write_report

if TYPE_CHECKING:
    from rationalizer.data import Source
    from rationalizer.learn import TrainedModel
    from rationalizer.text import AnyExample


@command(
    "rationalizer evaluate runs/mine --faithfulness",
    "rationalizer evaluate runs/mine other.csv --budget 10% --json scores.json",
    "rationalizer evaluate runs/mine --report report.html",
)
def evaluate(
    run: RunArgument,
    source: Annotated[
        str | None,
        typer.Argument(metavar="[SOURCE]", help="Other texts than those of the training; of a file, all rows."),
    ] = None,
    split: Annotated[str | None, typer.Option(help="train, dev or test; by default test, or dev if none.")] = None,
    data_dir: DataDir = None,
    aspect: Aspect = None,
    column: Column = None,
    budget: Annotated[str | None, typer.Option(help="If not the one of the training.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the scores to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page of scores, plots and examples.")] = None,
    faithfulness: Annotated[
        bool, typer.Option("--faithfulness", help="Also comprehensiveness, sufficiency and their AOPC.")
    ] = False,
) -> None:
    """Score a trained model: everything that the data allows."""
    from dataclasses import asdict

    from rationalizer.data import Source
    from rationalizer.learn import TrainedModel, source_of, suspicions
    from rationalizer.learn import evaluate as measure
    from rationalizer.learn.inference import FAITHFULNESS_PASSES
    from rationalizer.learn.storage import write_json
    from rationalizer.metrics import score_lines
    from rationalizer.study import method_text, parse_assignments
    from rationalizer.text import Budget

    folder = find_model(run)
    trained = TrainedModel.load(folder)
    if budget is not None:
        trained = trained.with_budget(Budget.of(budget))
    stored = source_of(folder)
    if source is not None:
        where = Source.of(source, data_dir, aspect, parse_assignments(column, "--column"))
    elif stored is None:
        raise ValueError(f"{run} does not say which texts it was trained on; name a SOURCE")
    elif data_dir or aspect or column:
        raise ValueError("--data-dir, --aspect and --column say how to read a SOURCE; name one")
    else:
        where = stored
    chosen, examples = _examples(trained, where, split, whole=where != stored)
    passes = 1 + FAITHFULNESS_PASSES * (faithfulness and bool(trained.classes))
    with progress("Scoring", passes * len(examples)) as done:
        scores = measure(trained, examples, faithfulness=faithfulness, done=done)
    out.print(f"{run}: {method_text(trained.config)}; {where.name}, {chosen}")
    show_table(["score", chosen], score_lines({chosen: scores}))
    if faithfulness:
        remark = "p(y|x) is this model's predictor on the whole text"
        out.print(remark if trained.classes else "comprehensiveness and sufficiency are not defined for a regression")
    found = suspicions(trained.config.method, scores)
    for finding in found:
        err.print(f"warning: {finding.message}", style="yellow", markup=False)
    if json_file is not None:
        kept: dict[str, Any] = {
            "run": str(run),
            "source": where.to_json(),
            "split": chosen,
            "budget": str(trained.config.budget),
        }
        kept |= {"scores": scores.as_dict(), "findings": [asdict(finding) for finding in found]}
        write_json(json_file, kept)
    if report is not None:
        facts = {"model": run.resolve().name, "method": method_text(trained.config)}
        facts |= {"data": f"{where.name}, {chosen}"}
        write_report(report, trained, examples, scores, found, facts)
        out.print(f"{report} has the report", markup=False)


def _examples(
    trained: TrainedModel, where: Source, split: str | None, *, whole: bool
) -> tuple[str, Sequence[AnyExample]]:
    """What to score the model on. `whole`: a file is taken as it is, nothing of it is held out."""
    from dataclasses import replace

    from rationalizer.data import Labels, pick_split, read_examples
    from rationalizer.text import DataError

    if where.is_file and whole:
        if split is not None:
            raise ValueError(f"{where.source} is one file, all of which is scored; leave --split out")
        labels, rule = Labels(trained.task, trained.classes), trained.reader.rule
        return "all rows", read_examples(where.source, columns=where.renamed, labels=labels, rule=rule)
    corpus = where.load(trained.reader.rule)
    if sorted(corpus.classes) != sorted(trained.classes):
        ours = ", ".join(trained.classes) or "values"
        raise DataError(f"the run predicts {ours}, but {where.name} has {', '.join(corpus.classes) or 'values'}")
    chosen, examples = pick_split(corpus, split)
    if corpus.classes != trained.classes:  # the same ones in another order
        number = {k: trained.classes.index(name) for k, name in enumerate(corpus.classes)}
        examples = [replace(example, label=number[example.label]) for example in examples]
    return chosen, examples
