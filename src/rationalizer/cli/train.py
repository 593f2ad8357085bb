"""`rationalizer train`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rationalizer.cli.base import command, err, out, show_table, warn
from rationalizer.cli.evaluation_views import print_baselines, print_labels
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
    find_model,
    folder_size,
    resolve_source,
)
from rationalizer.plurals import count_of
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rationalizer.data import Annotations, Corpus
    from rationalizer.models import Config, TrainedModel

WARM_EPOCHS = 5  # of a training that goes on from a model, with annotations
HINTED = 5  # words that people unmarked again and again
ANNOTATION_WEIGHT = 3.0  # of all annotations together, in proportion to all labels


@command(
    "rationalizer train reviews --budget 20%",
    "rationalizer train mine.csv --column text=review --column label=stars --out runs/mine",
    "rationalizer train reviews --method sfe --set epochs=5 --seed 1 --out runs/sfe",
    "rationalizer train mine.csv --constraint spans=2 --constraint never=stopwords",
    "rationalizer train large.parquet --cache-dir /scratch/cache --set min_count=5",
    "rationalizer train mine.csv --encoder sentence-transformers/all-MiniLM-L6-v2",
    "rationalizer train mine.annotated.jsonl --from runs/mine --out runs/taught",
    "rationalizer train mine.csv --column premise=question --column hypothesis=answer --method budget --budget 4",
    stopped="Stopped. Finished epochs are kept; the same command with --resume continues.",
)
def train(
    source: SourceArgument,
    *,
    method: Annotated[str | None, typer.Option(help=METHODS)] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="0.2 or 20% of words, 5 words, 18% on average, or enough; by default 20%, for pairs 50%."),
    ] = None,
    constraint: Constraint = None,
    start: Annotated[
        Path | None,
        typer.Option("--from", metavar="RUN", help="Go on from this trained model: its weights, words and settings."),
    ] = None,
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
    from rationalizer.cli.before_after import show_change
    from rationalizer.compare import describe_method
    from rationalizer.constraints import Never
    from rationalizer.data import GENERATED
    from rationalizer.data.annotation_file import read_annotations
    from rationalizer.hub.publishing import kept_private_data
    from rationalizer.metrics import headline_metrics, score_rows
    from rationalizer.models import TrainedModel, configure
    from rationalizer.models.config import flat_settings
    from rationalizer.models.devices import accelerator_settings
    from rationalizer.models.setting_conflicts import resolve_rationales, with_constraints
    from rationalizer.training import degeneration_findings, run
    from rationalizer.training.class_balance import rare_classes_note
    from rationalizer.training.distributed import is_first_process
    from rationalizer.training.runs import compile_ahead, describe_origin
    from rationalizer.training.trainer import require_no_run

    chosen = collect_settings(
        settings, encoder=encoder, embeddings=embeddings, seed=seed, budget=budget, constraints=constraint or None
    )
    data = resolve_source(source, reading, data_dir, aspect)
    accelerator_settings(device, devices)  # raises before the data is read
    before = None if start is None else TrainedModel.load(find_model(start), "cpu")
    if before is None:
        config = configure(method, {"budget": data.budget, **chosen}, dataset=data.dataset, pairs=data.pairs)
    else:
        settings_before = flat_settings(before.config.to_json())
        config = configure(
            method or before.config.method, {**settings_before, **chosen}, pairs=before.pairs, stored=True
        )
        if data.dataset is None and data.source not in GENERATED:
            data = replace(data, options=replace(data.options, classes=before.classes or None, task=before.task))
    annotations = read_annotations(data.source)
    if annotations is not None and (words := annotations.never_words()):
        config = with_constraints(config, (*config.constraints, Never(words=words)))
    folder = out_dir or Path("runs") / f"{data.name}-{config.method}"
    check_output_folder(folder)
    is_first = is_first_process(devices, nodes)
    if is_first and not resume:
        require_no_run(folder)  # before the data is read
    compile_ahead(config, device)
    rule = config.word_splitting if before is None else before.encoder.rule
    corpus = data.load(rule, on_progress=show_progress if is_first else None)
    rationales = resolve_rationales(config, len(corpus.label_names))
    if before is None and config.rationales == "auto" and rationales != "shared":
        own = {"budget": data.budget, **chosen, "rationales": rationales}
        config = configure(method, own, dataset=data.dataset, pairs=data.pairs)
    if annotations is not None:
        config = learn_from_annotations(config, corpus, chosen, warm=before is not None)
    if is_first:
        out.print(_describe_task(corpus), markup=False)
        out.print(_describe_corpus(corpus, config, generated=data.source in GENERATED), markup=False)
        notes: tuple[str, ...] = (corpus.blank_tokens_note(), rare_classes_note(corpus))
        if annotations is not None:
            out.print(_describe_annotations(annotations, config), markup=False)
            notes += (_never_hint(annotations),)
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
            start=before,
        )
    if not is_first:
        return
    _print_training(result.trained)
    show_table(["score", *result.scores], score_rows(result.scores, headline_metrics()))
    if result.scores:
        last = list(result.scores)[-1]  # test, or dev if there is none
        out.print(f"{last}:")
        print_labels(result.scores[last])
        print_baselines(result.scores[last], result.baselines[last])
    for split, scores in result.scores.items():
        warn(f"warning ({split}): {finding.message}" for finding in degeneration_findings(config.method, scores))
    if before is not None and start is not None:
        show_change(before, result.trained, corpus, find_model(start), folder)
    if kept := kept_private_data(result.trained, result.record(describe_origin(corpus, data))):
        out.print(kept, markup=False)
    single = not corpus.label_names and resolve_rationales(config, 0) == "shared"
    out.print(f"Next: rationalizer evaluate {folder}{' --faithfulness' if single and not corpus.pairs else ''}")


def list_first(names: Sequence[str]) -> list[str]:
    """The names, of many only the first and the number of all others."""
    most = 20
    return list(names) if len(names) <= most else [*names[:most], f"and {len(names) - most} others"]


def learn_from_annotations(config: Config, corpus: Corpus, chosen: Mapping[str, Any], *, warm: bool) -> Config:
    """The config for an annotation file, in which people have annotated some texts: all settings but the chosen ones.

    The annotations weigh three times as much as the labels, however few they are. A model that goes on is at its best
    dev loss when it starts: it keeps the last of a few epochs rather than the first one.
    """
    from rationalizer.nn import methods_for
    from rationalizer.text.example import is_annotated

    annotated = sum(map(is_annotated, corpus.train))
    if not annotated or not methods_for(config.pairs)[config.method].has_annotation_loss:
        return config
    settings: dict[str, Any] = {"annotation_weight": round(ANNOTATION_WEIGHT * len(corpus.train) / annotated, 2)}
    if warm:
        first = config.objective_options.get("full_text_epochs", 0)
        settings |= {"patience": None, "epochs": first + WARM_EPOCHS}
    return replace(config, **{name: value for name, value in settings.items() if name not in chosen})


def _describe_annotations(annotations: Annotations, config: Config) -> str:
    names = sorted({name for people in annotations.people.values() for name in people})
    count = sum(map(bool, annotations.people.values()))
    parts = [f"Annotated: {count} texts by {', '.join(names) or 'nobody'}"]
    stop = "the last" if config.patience is None else "the best"
    parts += [f"annotation_weight={config.annotation_weight:g}", f"{stop} of {config.epochs} epochs is kept"]
    words = annotations.never_words()
    return "; ".join([*parts, f"never selected: {', '.join(words)}"] if words else parts)


def _never_hint(annotations: Annotations) -> str:
    """A note on the words that people unmarked again and again; empty if there are none."""
    from rationalizer.constraints.stopwords import STOPWORDS

    known = {*STOPWORDS, *annotations.never_words()}
    found = annotations.removed_words().items()
    often = [(word, count) for word, count in found if word not in known and "," not in word][:HINTED]
    if not often:
        return ""
    listed = ", ".join(f"{word} ({count_of(count, 'text')})" for word, count in often)
    remedy = f"--constraint never=words:{','.join(word for word, _ in often)}"
    return f"note: people unmarked these words and never marked them: {listed}; {remedy} excludes them everywhere"


def _describe_task(corpus: Corpus) -> str:
    if corpus.task == "regression":
        return "Task: regression"
    if corpus.targets:
        parts = (f"{one.name} ({', '.join(list_first(one.classes)) or 'numbers'})" for one in corpus.targets)
        return f"Task: {len(corpus.targets)} targets: {'; '.join(parts)}"
    if corpus.task == "multi-label":
        names = ", ".join(list_first(corpus.classes))
        return f"Task: {len(corpus.classes)} labels, of which a text may have several: {names}"
    count = len(corpus.classes)
    names = ", ".join(list_first(corpus.classes))
    return f"Task: classification, {count} {'class' if count == 1 else 'classes'}: {names}"


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
