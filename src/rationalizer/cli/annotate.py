"""`rationalizer annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rationalizer.cli.base import command, err, warn
from rationalizer.cli.options import Device, TableOptions, find_model
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.data import Labels, ReadOptions
    from rationalizer.data.annotation_file import AnnotationFile
    from rationalizer.model import Rationalizer

Task = Literal["classification", "regression", "multi-label"]
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
        Path | None,
        typer.Option("--out", help="The annotation file; by default DATA.annotated.jsonl, or DATA if it is one."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="A trained model: suggests words and labels, and is compared with people.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="The labels to choose from; by default those of model and data."),
    ] = None,
    task: Annotated[
        Task | None, typer.Option(help="multi-label splits labels such as food;service; by default as the labels are.")
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
    file = open_annotations(data, out_file, reading.read_options(), used, labels=labels, task=task)
    ids = list(file.content.by_id)
    chosen = {"file": lambda: ids, "random": lambda: shuffled(ids), "useful": lambda: order_by_usefulness(file, used)}[
        order
    ]()
    offered = AnnotationTask(file, order=chosen, model=used, people=people)

    def on_started(address: str) -> None:
        count = sum(map(bool, file.content.people.values()))
        err.print(f"{file.path}: {len(ids)} texts, {count} of them annotated", markup=False)
        err.print(f"Annotate at {address}; each text is saved as you go on. Stop with Ctrl-C")

    if token is None and host not in ("localhost", "127.0.0.1", "::1"):
        warn(["anyone who can reach this machine can read and annotate the texts; restrict access with --token"])
    run(lambda: create_annotation_app(offered, hosts=(host,), token=token), host, port, on_started=on_started)


def open_annotations(
    data: Path,
    out_file: Path | None,
    options: ReadOptions,
    model: Rationalizer | None,
    *,
    labels: str | None = None,
    task: Task | None = None,
) -> AnnotationFile:
    """Open the annotation file of some texts, and create it if necessary."""
    from dataclasses import replace

    from rationalizer.data import BadRows, iter_rows
    from rationalizer.data.annotation_file import AnnotationFile, read_annotations, text_row
    from rationalizer.data.corpus_files import resolve_columns
    from rationalizer.data.file_content import stem
    from rationalizer.data.table_files import stream_table
    from rationalizer.text.errors import DataError, InputError

    annotations = read_annotations(data)
    path = out_file or (data if annotations is not None else data.with_name(f"{stem(data)}.annotated.jsonl"))
    if annotations is not None and not annotations.texts:  # as `serve --corrections` creates it
        return AnnotationFile.open(path, annotations.header)
    bad = BadRows(skip=options.skip_bad)
    stream = stream_table(data, dialect=options.dialect)
    known = {} if model is None else model.trained.description.columns
    columns = resolve_columns(options.columns.with_model_columns(known, stream.columns), stream)
    rule = model.trained.encoder.rule if model else options.split_rule(columns)
    pairs = model.pairs if model else columns.are_pairs
    options = replace(options, columns=columns, rule=rule)
    rows = [row for row in iter_rows(data, options, labels=None, bad=bad, pairs=pairs) if row.example is not None]
    warn(bad.messages())
    read = [columns.read_label(row.row) for row in rows]
    classes = [name.strip() for name in (labels or "").split(",") if name.strip()]
    scheme = _scheme(read, classes, model, None if annotations is None else annotations.header, task)
    texts = []
    for row, label in zip(rows, read, strict=True):
        try:
            given = _given_label(label, scheme)
        except InputError as error:
            remedy = "add it to --labels, or ignore all labels of the data with --column label="
            raise DataError(error.problem, remedy, path=data, row=row.number) from None
        if row.example is not None:
            texts.append(text_row(row.example, given, tokenized=columns.are_tokenized))
    facts = {"task": scheme.task, "classes": list(scheme.classes), "multi": scheme.task == "multi-label"}
    return AnnotationFile.open(path, {"pairs": pairs, "rule": rule, **facts}, texts)


def _scheme(
    values: list[Any], given: list[str], model: Rationalizer | None, header: dict[str, Any] | None, task: Task | None
) -> Labels:
    """The task and the classes to choose from."""
    from rationalizer.data.labels import Cells, Labels, Names, infer_labels, parse_label

    if model is not None:
        found = Labels(model.trained.task, model.trained.classes)
    elif header is not None:
        found = Labels(header["task"], tuple(header["classes"]))
    elif parsed := [parse_label(value, task) for value in values if not _is_missing(value)]:
        several = any(isinstance(value, (Names, Cells)) for value in parsed)
        found = infer_labels(parsed, task or ("classification" if given and not several else None))
    elif given:
        found = Labels(task or "classification")
    else:
        raise ValueError("the texts have no labels; name those to choose from with --labels, or give a --model")
    if found.task == "multi-target":
        raise ValueError("texts with several targets cannot be annotated; give one column: --column label=NAME")
    return Labels(found.task, tuple(dict.fromkeys((*found.classes, *given))))


def _is_missing(value: Any) -> bool:
    """Whether a text has no label; of several columns, none of which holds anything."""
    values = value.values() if isinstance(value, dict) else [value]
    return all(each is None or (isinstance(each, str) and not each.strip()) or each != each for each in values)


def _given_label(value: Any, scheme: Labels) -> Any:
    """What the data say about a text: a class, a number, or the names of its labels; None if they say nothing."""
    from rationalizer.data.labels import parse_label

    if _is_missing(value):
        return None
    label = scheme.encode(parse_label(value, scheme.task))
    if isinstance(label, tuple):
        return [name for name, has in zip(scheme.classes, label, strict=True) if has]
    return label if label is None or not scheme.classes else scheme.classes[int(label)]


def order_by_usefulness(file: AnnotationFile, model: Rationalizer | None) -> list[str]:
    """The ids of the texts, the most useful first."""
    from dataclasses import replace

    import numpy as np

    from rationalizer.data import Labels
    from rationalizer.data.single_examples import example_from_known_row
    from rationalizer.inference import annotation_usefulness, predict

    assert model is not None
    trained = model.trained
    labels, content = Labels(trained.task, trained.classes), file.content
    ids, rows = list(content.by_id), [content.merge(row) or row for row in content.by_id.values()]
    known = [labels if _is_known(row.get("label"), labels) else None for row in rows]
    examples = [example_from_known_row(row, own, trained.encoder.rule) for row, own in zip(rows, known, strict=True)]
    with show_progress("Ranking", len(ids)) as on_batch:
        unlabelled = [replace(example, label=None) for example in examples]  # batches cannot mix both
        predictions = predict(trained, unlabelled, on_batch=on_batch)
    useful = annotation_usefulness(trained, examples, predictions)
    return [ids[k] for k in np.argsort(-useful, kind="stable")]


def _is_known(label: Any, labels: Labels) -> bool:
    """Whether the model has this label; people may have chosen one that was added with --labels."""
    try:
        labels.encode(label)
    except ValueError:
        return False
    return True
