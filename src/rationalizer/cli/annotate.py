"""`rationalizer annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rationalizer.cli.base import command, err, warn
from rationalizer.cli.options import Device, TableOptions, find_model
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.data import ReadOptions
    from rationalizer.data.annotation_file import AnnotationFile
    from rationalizer.model import Rationalizer

Order = Literal["file", "random", "useful"]
HOST, PORT = "127.0.0.1", 8000
PAGE = f"http://{HOST}:{PORT}/"  # where the page is by default


@command(
    "rationalizer annotate mine.csv --column text=review --out mine.annotated.jsonl",
    "rationalizer annotate mine.csv --model runs/mine --order useful --out mine.annotated.jsonl",
    "rationalizer annotate texts.csv --labels positive,negative --people 2 --out texts.annotated.jsonl",
    "rationalizer train mine.annotated.jsonl --from runs/mine --out runs/taught",
    stopped="Stopped. All saved annotations are in the file.",
)
def annotate(
    data: Annotated[Path, typer.Argument(help="The texts, or pairs of texts: a table, or an annotation file.")],
    *,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="The annotation file; by default DATA.annotated.jsonl.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="A trained model: suggests words and labels, and is compared with people.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="The labels to choose from; by default those of model and data."),
    ] = None,
    order: Annotated[
        Order, typer.Option(help="Order of the texts; useful: those from which the model can learn most come first.")
    ] = "file",
    people: Annotated[int, typer.Option(min=1, help="Number of people who annotate each text.")] = 1,
    reading: TableOptions,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 accepts other machines.")] = HOST,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free port.")] = PORT,
    token: Annotated[
        str | None, typer.Option(envvar="RATIONALIZER_TOKEN", help="Answer only requests with this token.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Mark words and choose labels on a local web page (needs the extra "web")."""
    from rationalizer.model import Rationalizer
    from rationalizer.server import create_annotation_app, run
    from rationalizer.server.annotation_task import AnnotationTask, shuffled

    if order == "useful" and model is None:
        raise ValueError("--order useful needs a --model")
    used = None if model is None else Rationalizer.load(find_model(model), device)
    file = open_annotations(data, out_file, reading.read_options(), used, labels)
    ids = list(file.content.by_id)
    chosen = {"file": lambda: ids, "random": lambda: shuffled(ids), "useful": lambda: _by_usefulness(file, used)}[
        order
    ]()
    task = AnnotationTask(file, order=chosen, model=used, people=people)

    def on_started(address: str) -> None:
        count = sum(map(bool, file.content.people.values()))
        err.print(f"{file.path}: {len(ids)} texts, {count} of them annotated", markup=False)
        err.print(f"Annotate at {address}; each text is saved as you go on. Stop with Ctrl-C")

    if token is None and host not in ("localhost", "127.0.0.1", "::1"):
        warn(["anyone who can reach this machine can read and annotate the texts; restrict access with --token"])
    run(lambda: create_annotation_app(task, hosts=(host,), token=token), host, port, on_started=on_started)


def open_annotations(
    data: Path, out_file: Path | None, options: ReadOptions, model: Rationalizer | None, labels: str | None
) -> AnnotationFile:
    """Open the annotation file of some texts, and create it if necessary."""
    from dataclasses import replace

    from rationalizer.data import BadRows, iter_rows
    from rationalizer.data.annotation_file import AnnotationFile, text_row
    from rationalizer.data.corpus_files import resolve_columns
    from rationalizer.data.table_files import stem, stream_table

    bad = BadRows(skip=options.skip_bad)
    stream = stream_table(data, dialect=options.dialect)
    known = {} if model is None else model.trained.description.columns
    columns = resolve_columns(options.columns.with_model_columns(known, stream.columns), stream)
    rule = model.trained.encoder.rule if model else options.split_rule(columns)
    pairs = model.pairs if model else columns.are_pairs
    options = replace(options, columns=columns, rule=rule)
    rows = [row for row in iter_rows(data, options, labels=None, bad=bad, pairs=pairs) if row.example is not None]
    warn(bad.messages())
    own = [(row.example, row.row.get(columns.label or "")) for row in rows]
    header = {"pairs": pairs, "rule": rule, **_labels([label for _, label in own], model, labels)}
    texts = [text_row(example, label, tokenized=columns.are_tokenized) for example, label in own if example is not None]
    path = out_file or data.with_name(f"{stem(data).removesuffix('.annotated')}.annotated.jsonl")
    return AnnotationFile.open(path, header, texts)


def _labels(values: list[Any], model: Rationalizer | None, labels: str | None) -> dict[str, Any]:
    """The task and the classes to choose from."""
    from rationalizer.data.labels import infer_labels, plain

    given = [] if labels is None else [name.strip() for name in labels.split(",") if name.strip()]
    present = [value for value in values if value not in (None, "")]
    task: str
    multi = any(isinstance(value, list) for value in present)  # the labels of a text that has several
    if model is not None:
        task, classes = model.trained.task, model.trained.classes
        multi = task.startswith("multi")
    elif multi:
        task, classes = "multi-label", tuple(sorted({str(name) for value in present for name in value}))
    elif present:
        scheme = infer_labels([plain(value) for value in present])
        task, classes = scheme.task, scheme.classes
    elif given:
        task, classes = "classification", ()
    else:
        raise ValueError("the texts have no labels; name those to choose from with --labels, or give a --model")
    return {"task": task, "classes": list(dict.fromkeys((*classes, *given))), "multi": multi}


def _by_usefulness(file: AnnotationFile, model: Rationalizer | None) -> list[str]:
    """The ids of the texts, the most useful first."""
    import numpy as np

    from rationalizer.data import Labels
    from rationalizer.data.examples import example_from_known_row
    from rationalizer.inference import annotation_usefulness, predict

    assert model is not None
    trained = model.trained
    labels, content = Labels(trained.task, trained.classes), file.content
    ids, rows = list(content.by_id), [content.merge(row) or row for row in content.by_id.values()]
    examples = [example_from_known_row(row, labels, trained.encoder.rule) for row in rows]
    with show_progress("Ranking", len(ids)) as on_batch:
        predictions = predict(trained, examples, on_batch=on_batch)
    useful = annotation_usefulness(trained, examples, predictions)
    return [ids[k] for k in np.argsort(-useful, kind="stable")]
