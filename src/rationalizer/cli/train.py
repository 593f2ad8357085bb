"""`rationalizer train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rationalizer.cli.base import command, err, out, show_table
from rationalizer.cli.options import (
    METHODS,
    Aspect,
    CacheDir,
    Column,
    Constraint,
    DataDir,
    Delimiter,
    Device,
    Encoder,
    Encoding,
    NoHeader,
    Precision,
    Setting,
    SkipBad,
    SourceArgument,
    Stream,
    Task,
    Vectors,
    collect_settings,
    dialect_of,
    require_folder,
)
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.data import Corpus, DiskExamples
    from rationalizer.models import Config, TrainedModel


@command(
    "rationalizer train reviews --budget 20%",
    "rationalizer train mine.csv --column text=review --column label=stars --out runs/mine",
    "rationalizer train reviews --method sfe --set epochs=5 --seed 1 --out runs/sfe",
    "rationalizer train mine.csv --constraint spans=2 --constraint never=stopwords",
    "rationalizer train large.parquet --cache-dir /scratch/cache --set min_count=5",
    "rationalizer train mine.csv --encoder sentence-transformers/all-MiniLM-L6-v2",
    "rationalizer train mine.csv --column premise=question --column hypothesis=answer --method budget --budget 4",
    stopped="Stopped. What is finished stays; the same command with --resume goes on from here.",
)
def train(
    source: SourceArgument,
    method: Annotated[
        str | None,
        typer.Option(help=METHODS),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="0.2 or 20% of the words, or 5 words; by default 20%, for pairs 50%.")
    ] = None,
    constraint: Constraint = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Where to keep the run.")] = None,
    data_dir: DataDir = None,
    aspect: Aspect = None,
    column: Column = None,
    task: Task = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    skip_bad: SkipBad = False,
    stream: Stream = None,
    cache_dir: CacheDir = None,
    encoder: Encoder = None,
    embeddings: Vectors = None,
    settings: Setting = None,
    seed: Annotated[int | None, typer.Option(help="Of the weights, the order of texts, and all that is drawn.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    device: Device = "auto",
    devices: Annotated[
        str, typer.Option(help="How many on each node: 1, 2, auto, ... They share out every batch.")
    ] = "1",
    nodes: Annotated[int, typer.Option(min=1, help="How many machines train together.")] = 1,
    threads: Annotated[
        int | None, typer.Option(min=1, help="On a CPU; by default as many as help, which is measured first.")
    ] = None,
    precision: Precision = None,
    strategy: Annotated[str, typer.Option(help="As of Lightning's Trainer: auto, ddp, ...")] = "auto",
) -> None:
    """Train a model and keep it in a folder."""
    from rationalizer.compare import describe_method, parse_assignments
    from rationalizer.data import GENERATED, DataSource, DiskExamples
    from rationalizer.metrics import headline_metrics, score_rows
    from rationalizer.models import configure
    from rationalizer.models.devices import accelerator_settings
    from rationalizer.training import degeneration_findings, run
    from rationalizer.training.distributed import is_first_process
    from rationalizer.training.loop import require_no_run

    own = {"encoder": encoder, "embeddings": embeddings, "seed": seed, "budget": budget}
    given = collect_settings(settings, **own, constraints=constraint or None)
    where = DataSource.resolve(
        source,
        data_dir,
        aspect,
        parse_assignments(column, "--column"),
        task=task,
        dialect=dialect_of(delimiter, encoding, no_header),
        skip_bad=skip_bad,
        stream=stream,
        cache_dir=cache_dir,
    )
    on = accelerator_settings(device, devices)
    config = configure(method, {"budget": where.budget, **given}, dataset=where.dataset, pairs=where.pairs)
    directory = out_dir or Path("runs") / f"{where.name}-{config.method}"
    require_folder(directory)
    first = is_first_process(on["devices"], nodes)
    if first and not resume:
        require_no_run(directory)  # before the data is read
    corpus = where.load(config.word_splitting, on_progress=show_progress if first else None)
    if first:
        out.print(_described(corpus, config, generated=where.source in GENERATED))
        if isinstance(corpus.train, DiskExamples):
            out.print(_stored(corpus.train), markup=False)
        for note in corpus.skipped:
            err.print(note, style="yellow", markup=False)
        out.print(f"{describe_method(config)}, seed {config.seed}: {directory}")
        _hint_at_segments(corpus)
    with show_progress(
        "Scoring", len(corpus.dev) + len(corpus.test), lazy=True
    ) as scored:  # training has a bar of its own
        done = run(
            corpus,
            config,
            directory,
            source=where,
            on_batch=scored,
            resume=resume,
            progress=None if err.is_terminal else "lines",
            **on,
            threads=threads,
            precision=precision,
            strategy=strategy,
            num_nodes=nodes,
        )
    if not first:
        return
    _print_training(done.trained)
    show_table(["score", *done.scores], score_rows(done.scores, headline_metrics()))
    for split, found in done.scores.items():
        for finding in degeneration_findings(config.method, found):
            err.print(f"warning ({split}): {finding.message}", style="yellow", markup=False)
    out.print(f"Next: rationalizer evaluate {directory}{'' if corpus.pairs else ' --faithfulness'}")


def _described(corpus: Corpus, config: Config, *, generated: bool) -> str:
    from rationalizer.data import DiskExamples
    from rationalizer.data.column_names import ANNOTATIONS

    splits = {"train": corpus.train, "dev": corpus.dev, "test": corpus.test}
    counts = ", ".join(f"{len(examples)} {name}" for name, examples in splits.items() if examples)
    target = f"classes {', '.join(corpus.classes)}" if corpus.classes else "values to regress on"
    marked = not isinstance(corpus.train, DiskExamples) or ANNOTATIONS & corpus.columns.keys()
    annotated = [name for name, examples in splits.items() if marked and any(one.annotated for one in examples)]
    kind = "gold alignments" if corpus.pairs else "generated rationales" if generated else "human rationales"
    learned = "learned from" if config.annotation_weight else "not learned from"
    rationales = f"; {kind} in {', '.join(annotated)} ({learned})" if annotated else ""
    dropped = ", ".join(f"{count} of {split}" for split, count in corpus.dropped.items() if count)
    return f"{corpus.name}: {counts}; {target}{rationales}{f'; left out for their label: {dropped}' if dropped else ''}"


def _stored(examples: DiskExamples) -> str:
    from rationalizer.cli.info import size_in_words

    folder = examples.folder.parent
    size = size_in_words(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))
    return f"texts stay in {folder} ({size}); every epoch reads all of them in a new random order, without a buffer"


def _hint_at_segments(corpus: Corpus) -> None:
    from rationalizer.text.word_splitting import is_unspaced

    first = [text.text for example in corpus.train[:100] for text in example.texts]
    if corpus.rule == "words" and 2 * sum(map(is_unspaced, first)) > len(first):
        err.print(
            'note: these texts are written without spaces; --set word_splitting=segments (extra "segment") splits them '
            "into words",
            style="yellow",
            markup=False,
        )


def _print_training(trained: TrainedModel) -> None:
    epochs = trained.history["epochs"]
    threads = trained.history.get("threads")
    how = f" with {threads} {'thread' if threads == 1 else 'threads'}" if threads else ""
    out.print(f"{len(epochs)} epochs in {trained.seconds:.1f} s{how}; epoch {trained.history['best_epoch']} is kept")
    facts = ", ".join(f"{name} {value}" for name, value in trained.encoder.summary().items())
    out.print(f"words: {facts}")
