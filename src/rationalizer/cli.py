"""The command line: `rationalizer train`, `evaluate`, `compare`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from rationalizer.data import Corpus, Example
    from rationalizer.learn import TrainedModel
    from rationalizer.study import Comparison, Source
    from rationalizer.study.pool import Outcome

app = typer.Typer(
    name="rationalizer",
    help="Text classifiers that read only the words they show.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)
traceback_wanted = False

BAD_INPUT, INTERRUPTED = 2, 130
SHOWN = ("macro_f1", "mse", "token_f1", "size", "seconds_per_epoch")  # of a comparison; the files have more
Command = TypeVar("Command", bound=Callable[..., Any])

SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="reviews (embedded), a dataset's name, a file or a folder.")
]
DataDir = Annotated[Path | None, typer.Option(help="A local copy of the dataset.")]
Aspect = Annotated[str | None, typer.Option(help="What the label is about, for beer, hotels and reviews.")]
Column = Annotated[list[str] | None, typer.Option(metavar="KIND=NAME", help="A column's name, as text=review.")]
Setting = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting of a run.")]
Vectors = Annotated[str | None, typer.Option(help="Pretrained word vectors: a file, or glove-6b-50d.")]
Accelerator = Annotated[str, typer.Option(help="As of Lightning's Trainer: cpu, gpu, ...")]
Precision = Annotated[str, typer.Option(help="As of Lightning's Trainer: 32-true, bf16-mixed, ...")]


def command(function: Command) -> Command:
    """Registers a command whose bad input ends in a message and code 2, and Ctrl-C in code 130."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            err.print("Stopped. What is finished stays; the same command (train: with --resume) goes on from here.")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if traceback_wanted or not _is_input_error(error):
                raise
            err.print(f"error: {error}", style="red", markup=False)
            raise typer.Exit(BAD_INPUT) from None

    app.command()(wrapped)
    return function


def _is_input_error(error: Exception) -> bool:
    if isinstance(error, (ValueError, OSError, ImportError, FloatingPointError)):
        return True
    lightning = sys.modules.get("pytorch_lightning.utilities.exceptions")
    return lightning is not None and isinstance(error, lightning.MisconfigurationException)


def _version(asked: bool) -> None:
    if asked:
        from rationalizer import __version__

        out.print(__version__)
        raise typer.Exit


@app.callback()
def options(
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where in the program an error arose.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    global traceback_wanted
    traceback_wanted = traceback


@command
def train(
    source: SourceArgument,
    method: Annotated[str, typer.Option(help="spectra, sfe, gumbel, hardkuma, sparsemax, full-text, ...")] = "spectra",
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

    given = _settings(settings, embeddings, seed=seed, budget=None if budget is None else study.parse_budget(budget))
    where = study.Source.of(source, data_dir, aspect, study.parse_pairs(column, "--column"))
    config = configure(method, {"budget": where.budget, **given}, dataset=where.dataset)
    directory = out_dir or Path("runs") / f"{where.name}-{method}"
    first = study.is_first_process()
    if first and not resume and (directory / "config.json").exists():
        raise FileExistsError(f"{directory} already holds a run; go on with it by --resume, or give another --out")
    corpus = where.load()
    if first:
        out.print(_described(corpus))
        out.print(f"{config.method}, budget {study.budget_text(config.budget)}, seed {config.seed}: {directory}")
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
    scores = study.score(trained, corpus)
    _show(["score", *scores], study.score_lines(scores, study.HEADLINES))
    for split, found in scores.items():
        for finding in study.suspicions(config.method, found):
            err.print(f"warning ({split}): {finding.message}", style="yellow", markup=False)
    out.print(f"Next: rationalizer evaluate {directory} --faithfulness")


@command
def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a trained model.")],
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
    faithfulness: Annotated[
        bool, typer.Option("--faithfulness", help="Also comprehensiveness, sufficiency and their AOPC.")
    ] = False,
) -> None:
    """Score a trained model: everything that the data allows."""
    from dataclasses import asdict

    from rationalizer import study
    from rationalizer.learn import TrainedModel, files
    from rationalizer.learn import evaluate as measure

    if not (run / "metrics.json").is_file() and (run / "checkpoint.safetensors").is_file():
        raise FileNotFoundError(
            f"{run} holds an unfinished run; finish it by the command it was started with, --resume"
        )
    trained = TrainedModel.load(run)
    if budget is not None:
        trained = trained.with_budget(study.parse_budget(budget))
    stored = study.source_of(run)
    if source is not None:
        where = study.Source.of(source, data_dir, aspect, study.parse_pairs(column, "--column"))
    elif stored is None:
        raise ValueError(f"{run} does not say which texts it was trained on; name a SOURCE")
    elif data_dir or aspect or column:
        raise ValueError("--data-dir, --aspect and --column say how to read a SOURCE; name one")
    else:
        where = stored
    chosen, examples = _examples(trained, where, split, whole=where != stored)
    scores = measure(trained, examples, faithfulness=faithfulness)
    used = trained.config.budget
    out.print(f"{run}: {trained.config.method}, budget {study.budget_text(used)}; {where.name}, {chosen}")
    _show(["score", chosen], study.score_lines({chosen: scores}, list(study.WORDS)))
    if faithfulness:
        remark = "p(y|x) is this model's predictor on the whole text"
        out.print(remark if trained.classes else "comprehensiveness and sufficiency are not defined for a regression")
    found = study.suspicions(trained.config.method, scores)
    for finding in found:
        err.print(f"warning: {finding.message}", style="yellow", markup=False)
    if json_file is not None:
        kept: dict[str, Any] = {"run": str(run), "source": where.to_json(), "split": chosen, "budget": used}
        kept |= {"scores": scores.as_dict(), "findings": [asdict(finding) for finding in found]}
        files.write_json(json_file, kept)


@command
def compare(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help="One or several, as of train.")],
    methods: Annotated[str, typer.Option(help="all, or names such as spectra,sfe,sfe:contiguous.")] = "all",
    seeds: Annotated[str, typer.Option(help="Separated by commas.")] = "0,1,2",
    budgets: Annotated[str | None, typer.Option(help="A sweep in percent, as 2,5,10,15,20.")] = None,
    out_dir: Annotated[Path, typer.Option("--out", help="Where to keep runs and tables.")] = Path("study"),
    workers: Annotated[int, typer.Option(min=1, help="Trainings that run at once.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each training.")] = 1,
    split: Annotated[str | None, typer.Option(help="test or dev; by default test, or dev if none.")] = None,
    note: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]NOTE", help="What the data is, as reduced or rebuilt.")
    ] = None,
    data_dir: Annotated[list[str] | None, typer.Option(metavar="[NAME=]DIR", help="A dataset's local copy.")] = None,
    aspect: Annotated[list[str] | None, typer.Option(metavar="[NAME=]ASPECT", help="What the label is about.")] = None,
    column: Column = None,
    embeddings: Vectors = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="[METHOD.]KEY=VALUE", help="Any setting of the runs.")
    ] = None,
    accelerator: Accelerator = "auto",
    precision: Precision = "32-true",
) -> None:
    """Train methods × seeds (× budgets) and write tables; go on where an earlier call stopped."""
    from rationalizer import study

    columns = study.parse_pairs(column, "--column")
    dirs, aspects = study.by_source(data_dir, sources, "--data-dir"), study.by_source(aspect, sources, "--aspect")
    places = [study.Source.of(source, dirs.get(source), aspects.get(source), columns) for source in sources]
    notes = study.by_source(note, sources, "--note", every=True)
    if split not in (None, "dev", "test"):
        raise ValueError(f"--split is dev or test, got {split!r}")
    jobs = study.plan(
        places,
        study.parse_methods(methods),
        study.parse_seeds(seeds),
        study.parse_budgets(budgets) if budgets is not None else None,
        _settings(settings, embeddings),
        out_dir,
    )
    out.print(f"{len(jobs)} runs in {out_dir}; those that are finished are not run again")

    def report(count: int, outcome: Outcome) -> None:
        out.print(f"{count}: {outcome.job.title}: {_headline(outcome)}", markup=False)

    done = study.compare(
        jobs,
        out_dir,
        workers=workers,
        threads=threads,
        split=split,
        notes={place.name: notes[source] for place, source in zip(places, sources, strict=True) if source in notes},
        plots=budgets is not None,
        report=report,
        accelerator=accelerator,
        precision=precision,
    )
    _print_comparison(done)
    if done.failed:
        raise typer.Exit(1)


def main() -> None:
    app()


def _settings(pairs: Sequence[str] | None, embeddings: str | None, **options: Any) -> dict[str, Any]:
    from rationalizer.study import parse_pairs

    given: dict[str, Any] = dict(parse_pairs(pairs, "--set"))
    for key, value in {"embeddings": embeddings, **options}.items():
        if value is not None and key in given:
            raise ValueError(f"{key} is given by --{key} and by --set {key}={given[key]}; leave one out")
        if value is not None:
            given[key] = value
    return given


def _described(corpus: Corpus) -> str:
    splits = {"train": corpus.train, "dev": corpus.dev, "test": corpus.test}
    counts = ", ".join(f"{len(examples)} {name}" for name, examples in splits.items() if examples)
    target = f"classes {', '.join(corpus.classes)}" if corpus.classes else "values to regress on"
    annotated = [name for name, examples in splits.items() if any(example.rationale for example in examples)]
    rationales = f"; human rationales in {', '.join(annotated)} (not learned from)" if annotated else ""
    return f"{corpus.name}: {counts}; {target}{rationales}"


def _print_training(trained: TrainedModel) -> None:
    epochs = trained.metrics["epochs"]
    seconds = sum(row["seconds"] for row in epochs)
    out.print(f"{len(epochs)} epochs in {seconds:.1f} s; epoch {trained.metrics['best_epoch']} is kept")


def _examples(trained: TrainedModel, where: Source, split: str | None, *, whole: bool) -> tuple[str, Sequence[Example]]:
    """What to score the model on. `whole`: a file is taken as it is, nothing of it is held out."""
    from rationalizer.data import DataError, Labels, read_examples
    from rationalizer.study import pick_split

    if where.is_file and whole:
        if split is not None:
            raise ValueError(f"{where.source} is one file, all of which is scored; leave --split out")
        labels = Labels(trained.task, trained.classes)
        return "all rows", read_examples(where.source, columns=where.renamed, labels=labels)
    corpus = where.load()
    if corpus.classes != trained.classes:
        ours = ", ".join(trained.classes) or "values"
        raise DataError(f"the run predicts {ours}, but {where.name} has {', '.join(corpus.classes) or 'values'}")
    return pick_split(corpus, split)


def _show(heads: Sequence[str], lines: Sequence[Sequence[str]], title: str | None = None) -> None:
    shown = Table(*heads, title=title, title_justify="left")
    for line in lines:
        shown.add_row(*line)
    console = out if out.is_terminal else Console(width=240)  # nothing is folded in a file
    console.print(shown, soft_wrap=False)


def _headline(outcome: Outcome) -> str:
    from rationalizer.study import WORDS, number

    if outcome.record is None:
        return f"failed: {outcome.error}"
    record = outcome.record
    split = "test" if "test" in record["scores"] else "dev"
    scores = record["scores"].get(split, {})
    named = [f"{WORDS[name]} {number(name, scores[name])}" for name in ("macro_f1", "mse", "size") if name in scores]
    return ", ".join([*named, f"{record['epochs']} epochs, {record['seconds']:.0f} s"])


def _print_comparison(done: Comparison) -> None:
    from rationalizer.study import table

    for dataset in dict.fromkeys(row.dataset for row in done.rows):
        heads, cells = table([row for row in done.rows if row.dataset == dataset], SHOWN)
        _show(heads, cells, title=dataset)
    for outcome in done.failed:
        err.print(f"failed: {outcome.job.title}: {outcome.error}", style="red", markup=False)
    out.print(f"{done.ran} trained now; {', '.join(map(str, done.files))}", markup=False)


if __name__ == "__main__":
    main()
