"""`rationalizer train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rationalizer.cli.base import command, err, out, show_table
from rationalizer.cli.options import (
    Accelerator,
    Aspect,
    Column,
    DataDir,
    Precision,
    Setting,
    SourceArgument,
    Vectors,
    collect_settings,
)
from rationalizer.cli.progress import progress

if TYPE_CHECKING:
    from rationalizer.data import AnyExample, Corpus
    from rationalizer.learn import TrainedModel


@command(
    "rationalizer train reviews --budget 20%",
    "rationalizer train mine.csv --column text=review --column label=stars --out runs/mine",
    "rationalizer train reviews --method sfe --set epochs=5 --seed 1 --out runs/sfe",
    "rationalizer train mine.csv --column premise=question --column hypothesis=answer --method budget --budget 4",
    stopped="Stopped. What is finished stays; the same command with --resume goes on from here.",
)
def train(
    source: SourceArgument,
    method: Annotated[
        str | None,
        typer.Option(help="Texts: spectra (default), sfe, hardkuma, ...; pairs: at-most-one (default), budget, ..."),
    ] = None,
    budget: Annotated[str | None, typer.Option(help="0.2 or 20% of the words, or 5 words.")] = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Where to keep the run.")] = None,
    data_dir: DataDir = None,
    aspect: Aspect = None,
    column: Column = None,
    embeddings: Vectors = None,
    settings: Setting = None,
    seed: Annotated[int | None, typer.Option(help="Of the weights, the order of texts, and all that is drawn.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    accelerator: Accelerator = "auto",
    devices: Annotated[str, typer.Option(help="As of Lightning's Trainer: 1, 2, auto, ...")] = "1",
    precision: Precision = "32-true",
    strategy: Annotated[str, typer.Option(help="As of Lightning's Trainer: auto, ddp, ...")] = "auto",
) -> None:
    """Train a model and keep it in a folder."""
    from rationalizer import study
    from rationalizer.learn import configure

    given = collect_settings(
        settings, embeddings, seed=seed, budget=None if budget is None else study.parse_budget(budget)
    )
    where = study.Source.of(source, data_dir, aspect, study.parse_pairs(column, "--column"))
    config = configure(method, {"budget": where.budget, **given}, dataset=where.dataset, pairs=where.pairs)
    directory = out_dir or Path("runs") / f"{where.name}-{config.method}"
    first = study.is_first_process()
    if first and not resume and (directory / "config.json").exists():
        raise FileExistsError(f"{directory} already holds a run; go on with it by --resume, or give another --out")
    corpus = where.load()
    if first:
        out.print(_described(corpus))
        out.print(f"{study.method_text(config)}, seed {config.seed}: {directory}")
    trained = study.train_run(
        corpus,
        where,
        config,
        directory,
        resume=resume,
        accelerator=accelerator,
        devices=int(devices) if devices.lstrip("-").isdecimal() else devices,
        precision=precision,
        strategy=strategy,
    )
    if not first:
        return
    _print_training(trained)
    with progress("Scoring", len(corpus.dev) + len(corpus.test)) as done:
        scores = study.score(trained, corpus, done=done)
    study.keep_scores(directory, trained, where, scores)
    show_table(["score", *scores], study.score_lines(scores, study.HEADLINES))
    for split, found in scores.items():
        for finding in study.suspicions(config.method, found):
            err.print(f"warning ({split}): {finding.message}", style="yellow", markup=False)
    out.print(f"Next: rationalizer evaluate {directory}{'' if corpus.pairs else ' --faithfulness'}")


def _described(corpus: Corpus) -> str:
    splits = {"train": corpus.train, "dev": corpus.dev, "test": corpus.test}
    counts = ", ".join(f"{len(examples)} {name}" for name, examples in splits.items() if examples)
    target = f"classes {', '.join(corpus.classes)}" if corpus.classes else "values to regress on"
    annotated = [name for name, examples in splits.items() if any(map(_is_annotated, examples))]
    kind = "gold alignments" if corpus.pairs else "human rationales"
    rationales = f"; {kind} in {', '.join(annotated)} (not learned from)" if annotated else ""
    dropped = ", ".join(f"{count} of {split}" for split, count in corpus.dropped.items() if count)
    return f"{corpus.name}: {counts}; {target}{rationales}{f'; left out for their label: {dropped}' if dropped else ''}"


def _is_annotated(example: AnyExample) -> bool:
    from rationalizer.data import Example

    return bool(example.rationale if isinstance(example, Example) else example.alignment)


def _print_training(trained: TrainedModel) -> None:
    epochs = trained.metrics["epochs"]
    out.print(f"{len(epochs)} epochs in {trained.seconds:.1f} s; epoch {trained.metrics['best_epoch']} is kept")
