"""`rationalizer train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rationalizer.cli.base import command, err, out, show_table, warn
from rationalizer.cli.options import (
    METHODS,
    Aspect,
    Constraint,
    DataDir,
    Device,
    Encoder,
    Precision,
    Setting,
    SourceArgument,
    SourceOptions,
    Vectors,
    check_output_folder,
    collect_settings,
    describe_size,
    folder_size,
    resolve_source,
)
from rationalizer.plurals import count_of
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.data import Corpus
    from rationalizer.models import Config, TrainedModel


@command(
    "rationalizer train reviews --budget 20%",
    "rationalizer train mine.csv --column text=review --column label=stars --out runs/mine",
    "rationalizer train reviews --method sfe --set epochs=5 --seed 1 --out runs/sfe",
    "rationalizer train mine.csv --constraint spans=2 --constraint never=stopwords",
    "rationalizer train large.parquet --cache-dir /scratch/cache --set min_count=5",
    "rationalizer train mine.csv --encoder sentence-transformers/all-MiniLM-L6-v2",
    "rationalizer train mine.csv --column premise=question --column hypothesis=answer --method budget --budget 4",
    stopped="Stopped. Finished epochs are kept; the same command with --resume continues.",
)
def train(
    source: SourceArgument,
    *,
    method: Annotated[str | None, typer.Option(help=METHODS)] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="0.2 or 20% of the words, 5 words, or 18% on average; 20% by default, 50% for pairs."),
    ] = None,
    constraint: Constraint = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Folder of the run.")] = None,
    data_dir: DataDir = None,
    aspect: Aspect = None,
    reading: SourceOptions,
    encoder: Encoder = None,
    embeddings: Vectors = None,
    settings: Setting = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the weights, the order of the texts and all sampling.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    device: Device = "auto",
    devices: Annotated[
        str, typer.Option(help="Number of devices per node: 1, 2, auto, ... They share each batch.")
    ] = "1",
    nodes: Annotated[int, typer.Option(min=1, help="Number of machines that train together.")] = 1,
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads; by default the fastest number, which is measured first.")
    ] = None,
    precision: Precision = None,
    strategy: Annotated[str, typer.Option(help="As in Lightning: auto, ddp, ...")] = "auto",
) -> None:
    """Train a model and save it in a folder."""
    from rationalizer.compare import describe_method
    from rationalizer.data import GENERATED
    from rationalizer.hub.publishing import kept_private_data
    from rationalizer.metrics import headline_metrics, score_rows
    from rationalizer.models import configure
    from rationalizer.models.devices import accelerator_settings
    from rationalizer.training import degeneration_findings, run
    from rationalizer.training.class_balance import rare_classes_note
    from rationalizer.training.distributed import is_first_process
    from rationalizer.training.runs import describe_origin
    from rationalizer.training.trainer import require_no_run

    chosen = collect_settings(
        settings, encoder=encoder, embeddings=embeddings, seed=seed, budget=budget, constraints=constraint or None
    )
    data = resolve_source(source, reading, data_dir, aspect)
    accelerator_settings(device, devices)  # raises before the data is read
    config = configure(method, {"budget": data.budget, **chosen}, dataset=data.dataset, pairs=data.pairs)
    folder = out_dir or Path("runs") / f"{data.name}-{config.method}"
    check_output_folder(folder)
    is_first = is_first_process(devices, nodes)
    if is_first and not resume:
        require_no_run(folder)  # before the data is read
    corpus = data.load(config.word_splitting, on_progress=show_progress if is_first else None)
    if is_first:
        out.print(_describe_task(corpus), markup=False)
        out.print(_describe_corpus(corpus, config, generated=data.source in GENERATED), markup=False)
        notes = (corpus.blank_tokens_note(), rare_classes_note(corpus))
        warn([*corpus.skipped, *_word_splitting_hint(corpus), *filter(None, notes)])
        out.print(f"{describe_method(config)}, seed {config.seed}: {folder}")
    # Lazy, because training shows a bar of its own first.
    with show_progress("Scoring", len(corpus.dev) + len(corpus.test), lazy=True) as on_batch:
        result = run(
            corpus,
            config,
            folder,
            source=data,
            on_batch=on_batch,
            resume=resume,
            progress=None if err.is_terminal else "lines",
            device=device,
            devices=devices,
            threads=threads,
            precision=precision,
            strategy=strategy,
            num_nodes=nodes,
        )
    if not is_first:
        return
    _print_training(result.trained)
    show_table(["score", *result.scores], score_rows(result.scores, headline_metrics()))
    for split, scores in result.scores.items():
        warn(f"warning ({split}): {finding.message}" for finding in degeneration_findings(config.method, scores))
    if kept := kept_private_data(result.trained, result.record(describe_origin(corpus, data))):
        out.print(kept, markup=False)
    out.print(f"Next: rationalizer evaluate {folder}{'' if corpus.pairs else ' --faithfulness'}")


def _describe_task(corpus: Corpus) -> str:
    if corpus.task == "regression":
        return "Task: regression"
    count = len(corpus.classes)
    return f"Task: classification, {count} {'class' if count == 1 else 'classes'}: {', '.join(corpus.classes)}"


def _describe_corpus(corpus: Corpus, config: Config, *, generated: bool) -> str:
    from rationalizer.data import DiskExamples
    from rationalizer.data.column_names import ANNOTATIONS

    splits = {"train": corpus.train, "dev": corpus.dev, "test": corpus.test}
    counts = ", ".join(f"{len(examples)} {name}" for name, examples in splits.items() if examples)
    parts = [counts]
    # Reading all of a large file only to look for annotations would take minutes; its columns tell.
    on_disk = isinstance(corpus.train, DiskExamples)
    if not on_disk or ANNOTATIONS & corpus.columns.keys():
        annotated = [name for name, examples in splits.items() if any(one.annotated for one in examples)]
        kind = "gold alignments" if corpus.pairs else "generated annotations" if generated else "human annotations"
        use = "used in training" if config.annotation_weight else "not used in training"
        parts += [f"{kind} in {', '.join(annotated)} ({use})"] if annotated else []
    dropped = ", ".join(f"{count} of {split}" for split, count in corpus.dropped.items() if count)
    parts += [f"dropped because of their label: {dropped}"] if dropped else []
    described = f"{corpus.name}: {'; '.join(parts)}"
    if isinstance(corpus.train, DiskExamples):
        folder = corpus.train.folder.parent
        size = describe_size(folder_size(folder))
        described += (
            f"\nThe texts stay on disk in {folder} ({size}); each epoch reads all of them in a new random order, "
            "without a buffer."
        )
    return described


def _word_splitting_hint(corpus: Corpus) -> list[str]:
    from rationalizer.text.word_splitting import is_unspaced

    first = [text.text for example in corpus.train[:100] for text in example.texts]
    if corpus.rule != "words" or 2 * sum(map(is_unspaced, first)) <= len(first):
        return []
    return [
        'note: these texts are written without spaces; --set word_splitting=segments (extra "segment") splits them '
        "into words"
    ]


def _print_training(trained: TrainedModel) -> None:
    history = trained.history
    threads = history.get("threads")
    using = f" with {threads} {'thread' if threads == 1 else 'threads'}" if threads else ""
    out.print(
        f"{count_of(len(history['epochs']), 'epoch')} in {trained.seconds:.1f} s{using}; the model of epoch "
        f"{history['best_epoch']} is kept"
    )
    out.print(f"words: {', '.join(f'{name} {value}' for name, value in trained.encoder.summary().items())}")
