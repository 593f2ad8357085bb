"""`rationalizer evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rationalizer.cli.annotator_tables import show_people
from rationalizer.cli.attribution_tables import beside_attributions, show_beside
from rationalizer.cli.base import command, err, out, show_table
from rationalizer.cli.options import (
    Aspect,
    Column,
    DataDir,
    Delimiter,
    Device,
    Encoding,
    NoHeader,
    OtherConstraint,
    RunArgument,
    SkipBad,
    dialect_of,
    find_model,
)
from rationalizer.cli.overview_tables import show_overview
from rationalizer.cli.report_pages import write_report
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.data import DataSource
    from rationalizer.models import TrainedModel
    from rationalizer.text import AnyExample


@command(
    "rationalizer evaluate runs/mine --faithfulness",
    "rationalizer evaluate runs/mine other.csv --budget 10% --json scores.json",
    "rationalizer evaluate runs/mine --overview --attributions integrated-gradients",
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
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    skip_bad: SkipBad = False,
    budget: Annotated[str | None, typer.Option(help="If not the one of the training.")] = None,
    constraint: OtherConstraint = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the scores to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page of scores, plots and examples.")] = None,
    overview: Annotated[
        bool,
        typer.Option("--overview", help="Also the classes one by one, their words, and the texts to look at."),
    ] = False,
    faithfulness: Annotated[
        bool, typer.Option("--faithfulness", help="Also comprehensiveness, sufficiency and their AOPC.")
    ] = False,
    attributions: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help='Also the selections beside those of "integrated-gradients" on whole texts (extra "captum").',
        ),
    ] = None,
    device: Device = "cpu",
) -> None:
    """Score a trained model: everything that the data allows."""
    from dataclasses import asdict

    from rationalizer.compare import describe_method, parse_assignments
    from rationalizer.data import DataSource
    from rationalizer.inference import evaluate as measure
    from rationalizer.inference import predict
    from rationalizer.inference.evaluate import FAITHFULNESS_PASSES
    from rationalizer.metrics import score_rows
    from rationalizer.model import Rationalizer
    from rationalizer.models import TrainedModel
    from rationalizer.models.atomic_files import write_json
    from rationalizer.models.devices import check_device
    from rationalizer.text import Budget
    from rationalizer.training import degeneration_findings, read_source

    folder = find_model(run)
    trained = TrainedModel.load(folder, check_device(device))
    if budget is not None:
        trained = trained.with_budget(Budget.parse(budget))
    if constraint:
        trained = trained.with_constraints(constraint)
    stored = read_source(folder)
    if source is not None:
        columns, dialect = parse_assignments(column, "--column"), dialect_of(delimiter, encoding, no_header)
        where = DataSource.resolve(source, data_dir, aspect, columns, dialect=dialect, skip_bad=skip_bad)
    elif stored is None:
        raise ValueError(f"{run} does not say which texts it was trained on; name a SOURCE")
    elif data_dir or aspect or column or delimiter or encoding or no_header or skip_bad:
        raise ValueError("--data-dir, --aspect, --column and the like say how to read a SOURCE; name one")
    else:
        where = stored
    chosen, examples = _examples(trained, where, split, whole=where != stored)
    passes = 1 + FAITHFULNESS_PASSES * (faithfulness and bool(trained.classes))
    with show_progress("Scoring", passes * len(examples)) as done:
        predictions = predict(trained, examples, on_batch=done)
        scores = measure(trained, examples, faithfulness=faithfulness, predictions=predictions, on_batch=done)
    shown = scores.replace(seconds_per_epoch=None)  # which says nothing of these texts
    model = Rationalizer.from_trained(trained)
    explanations = model.explain_examples(examples, predictions=predictions)
    truths = [label for example in examples if (label := model.label_of(example)) is not None] or None
    out.print(f"{run}: {describe_method(trained.config)}; {where.name}, {chosen}")
    show_table(["score", chosen], score_rows({chosen: shown}))
    people = show_people(trained, examples)
    if faithfulness:
        remark = "p(y|x) is this model's predictor on the whole text"
        out.print(remark if trained.classes else "comprehensiveness and sufficiency are not defined for a regression")
    if overview:
        show_overview(explanations, truths)
    beside = None
    if attributions is not None:
        beside = beside_attributions(model, examples, predictions, attributions)
        show_beside(beside)
    found = degeneration_findings(trained.config.method, scores)
    for finding in found:
        err.print(f"warning: {finding.message}", style="yellow", markup=False)
    if json_file is not None:
        kept: dict[str, Any] = {
            "run": str(run),
            "source": where.to_json(),
            "split": chosen,
            "budget": str(trained.config.budget),
            "constraints": [str(each) for each in trained.config.constraints],
        }
        kept |= {"scores": scores.as_dict(), "findings": [asdict(finding) for finding in found]}
        kept |= {} if people is None else {"people": people}
        write_json(json_file, kept)
    if report is not None:
        facts = {"model": run.resolve().name, "method": describe_method(trained.config)}
        facts |= {"data": f"{where.name}, {chosen}"}
        write_report(report, trained, examples, explanations, truths, shown, found, facts, beside)
        out.print(f"{report} has the report", markup=False)


def _examples(
    trained: TrainedModel, where: DataSource, split: str | None, *, whole: bool
) -> tuple[str, Sequence[AnyExample]]:
    """What to score the model on. `whole`: a file is taken as it is, nothing of it is held out."""
    from dataclasses import replace

    from rationalizer.data import BadRows, Labels, pick_split, read_examples
    from rationalizer.text import DataError

    if where.is_file and whole:
        if split is not None:
            raise ValueError(f"{where.source} is one file, all of which is scored; leave --split out")
        bad = BadRows(skip=where.skip_bad)
        rows = read_examples(
            where.source,
            columns=where.column_names,
            model_columns=trained.description.columns,
            labels=Labels(trained.task, trained.classes),
            rule=trained.encoder.rule,
            dialect=where.dialect,
            bad=bad,
        )
        for note in bad.messages():
            err.print(note, style="yellow", markup=False)
        return "all rows", rows
    corpus = where.load(trained.encoder.rule, on_progress=show_progress)
    if len(corpus.classes) == 1:  # nothing to predict: what people marked is what there is to score
        chosen, examples = pick_split(corpus, split)
        return chosen, [replace(example, label=None) for example in examples]
    if sorted(corpus.classes) != sorted(trained.classes):
        ours = ", ".join(trained.classes) or "values"
        raise DataError(f"the run predicts {ours}, but {where.name} has {', '.join(corpus.classes) or 'values'}")
    chosen, examples = pick_split(corpus, split)
    if corpus.classes != trained.classes:  # the same ones in another order
        number = {k: trained.classes.index(name) for k, name in enumerate(corpus.classes)}
        examples = [replace(example, label=number[example.label]) for example in examples]
    return chosen, examples
