"""Training runs: from a corpus and a config to a trained model, resumable at any moment."""

from __future__ import annotations

import logging
import platform
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback, TQDMProgressBar
from pytorch_lightning.callbacks.progress.tqdm_progress import Tqdm
from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger
from pytorch_lightning.utilities.exceptions import SIGTERMException

from rationalizer import __version__
from rationalizer.data import Corpus
from rationalizer.data.disk_examples import DiskExamples, labels, word_counts
from rationalizer.models.atomic_files import write_record
from rationalizer.models.batch_constraints import check_constraints
from rationalizer.models.batches import collate
from rationalizer.models.config import Config, configure
from rationalizer.models.sample_texts import choose_samples
from rationalizer.models.trained_model import (
    CHECKPOINT,
    CONFIG,
    ENCODER_FILE,
    HISTORY,
    LOGS,
    Description,
    LabelType,
    TrainedModel,
    read_encoder_files,
    write_encoder_files,
)
from rationalizer.nn import Encoder, encoder_class
from rationalizer.nn.initialization import draw_xavier
from rationalizer.progress import in_notebook, is_interactive
from rationalizer.text import AnyExample
from rationalizer.training.checkpoint import CheckpointFile, data_digest, require_same, run_identity
from rationalizer.training.denormals import denormals_as_zero
from rationalizer.training.distributed import (
    choose_strategy,
    exclusive_folder,
    is_first_process,
    on_gpu,
    report_lost_processes,
)
from rationalizer.training.module import Learner
from rationalizer.training.seeding import preserve_rng_state, seed_all
from rationalizer.training.threads import fewest, set_threads, step_seconds

START_TEXTS = 64  # that say how large states are
EVERY = 5.0  # seconds between two lines of a log
DOUBLE = ("64", "64-true")  # what Lightning calls double precision


def train(
    corpus: Corpus,
    config: Config,
    run_dir: str | Path | None = None,
    *,
    resume: bool = False,
    progress: bool | Literal["lines"] | None = None,
    accelerator: str = "auto",
    devices: Any = 1,
    precision: Any = None,
    strategy: Any = "auto",
    num_nodes: int = 1,
    threads: int | None = None,
    label_type: LabelType = "str",
) -> TrainedModel:
    """Trains a model. On one CPU, the same corpus, config and number of threads give the same weights bit for bit.

    Args:
        corpus: `train` is learned from; `dev` decides when to stop and which epoch's weights are kept.
        config: see `configure`.
        run_dir: where the run is kept (see `trained.py`); None keeps nothing.
        resume: go on with the run in `run_dir` from its last checkpoint, to the weights it would have reached
            without the interruption. A finished run is loaded; where there is none, one is started.
        progress: show a progress bar, or "lines": a line every few seconds, for logs; by default a bar if standard
            error is a terminal, and in notebooks.
        accelerator, devices, precision, strategy, num_nodes: as of `pytorch_lightning.Trainer`; without a wish the
            precision is "32-true", for transformers on a GPU "bf16-mixed"; what was trained in double precision
            ("64-true") is kept in single. Several devices share out every batch, and come to the same result as one
            does, but for rounding and for what is drawn at random.
        threads: on a CPU, from 1 on; by default as many as help, which takes a second to be measured (see
            `threads.py`). The model's metrics say how many there were.
        label_type: what class labels were before they became the corpus' class names; kept with the model.
    """
    _check_corpus(corpus, config)
    directory = Path(run_dir) if run_dir is not None else None
    if directory is None and resume:
        raise ValueError("resume=True needs the run_dir of the run to go on with")
    description = describe(corpus, config, label_type)
    double = str(precision) in DOUBLE
    settings = {
        "accelerator": accelerator,
        "devices": devices,
        # The model itself is double then, before a checkpoint is read; Lightning has nothing to turn any more.
        "precision": "32-true" if double else precision or _usual_precision(config, accelerator),
        "num_nodes": num_nodes,
    }
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    with _quiet():
        settings["strategy"] = choose_strategy(config, **settings, strategy=strategy)
    first = is_first_process(devices, num_nodes)
    with exclusive_folder(directory, first=first), preserve_rng_state():
        return _train(corpus, description, directory, resume, progress, settings, first, double, threads)


def _train(
    corpus: Corpus,
    description: Description,
    directory: Path | None,
    resume: bool,
    progress: bool | Literal["lines"] | None,
    settings: dict[str, Any],
    first: bool,
    double: bool,
    threads: int | None,
) -> TrainedModel:
    config = description.config
    if directory is not None and first and not resume:
        require_no_run(directory)
    if directory is not None and (directory / HISTORY).is_file():
        finished = TrainedModel.load(directory)
        given = run_identity(description, corpus)
        stored = run_identity(finished.description, corpus) | {"data": finished.history["data"]}
        require_same(stored, given, directory / HISTORY)
        if first:
            (directory / CHECKPOINT).unlink(missing_ok=True)
        return finished
    file = CheckpointFile.of(directory / CHECKPOINT, description, corpus) if directory else None
    resumed = file.read() if file and resume else None
    seed_all(config.seed)
    if directory is not None and resumed and (directory / ENCODER_FILE).is_file():
        encoder = read_encoder_files(directory, description)
    else:
        encoder = _reader(corpus, description)
    check_constraints(corpus, config, encoder)
    model = description.build(encoder)
    if double:
        model.double()
    if resumed is None and config.initial_weights == "xavier":
        draw_xavier(model)
    if resumed is None and model.method.initializes_from_texts:  # every process does it by itself, and all alike
        model.eval().initialize(*collate(list(enumerate(corpus.train[:START_TEXTS])), encoder).texts)
    if file and resumed and (wrong := resumed.find_mismatch(model)):
        raise file.error(wrong)
    learner = Learner(model.train(), corpus, config, file, resumed)  # Lightning leaves the mode as it finds it
    if directory is not None and first:
        write_encoder_files(directory, encoder)
        write_record(directory / CONFIG, description.to_json())
    if not learner.progress.finished:
        with denormals_as_zero():
            learner.progress.threads = _threads(learner, threads, settings, told=progress == "lines")
            with set_threads(learner.progress.threads):
                _fit(learner, directory, progress, settings)
    model.load_state_dict(learner.best, strict=False)
    examples = choose_samples(corpus, config.keep_examples)
    if double:
        model.float()
    trained = TrainedModel(description, model.eval(), _metrics(learner), examples)
    if directory is not None and first:
        trained.save(directory)
        (directory / CHECKPOINT).unlink(missing_ok=True)
    return trained


def require_no_run(directory: Path) -> None:
    """An error where another run is kept in the folder."""
    if (directory / CONFIG).exists():
        raise FileExistsError(
            f"{directory} already holds a run; go on with it by --resume, in Python by resume=True, or give another "
            "folder"
        )


def describe(corpus: Corpus, config: Config, label_type: LabelType = "str") -> Description:
    target: dict[str, Any] = {}
    if corpus.task == "regression":
        values = labels(corpus.train).astype(np.float64)
        unit = bool(values.min() >= 0 and values.max() <= 1)
        target = {"sigmoid": True} if unit else _standard(values)
    return Description(
        config=config,
        task=corpus.task,
        classes=tuple(corpus.classes),
        target=target,
        label_type=label_type,
        columns=dict(corpus.columns),
    )


def _standard(values: np.ndarray) -> dict[str, Any]:
    return {"sigmoid": False, "mean": float(values.mean()), "deviation": float(values.std()) or 1.0}


def _usual_precision(config: Config, accelerator: str) -> str:
    """Transformers lose nothing by short numbers in their products, and are twice as fast."""
    fast = encoder_class(config.encoder).prefers_bf16 and on_gpu(accelerator)
    return "bf16-mixed" if fast and torch.cuda.is_bf16_supported() else "32-true"


def _check_corpus(corpus: Corpus, config: Config) -> None:
    if not corpus.train:
        raise ValueError(f"the corpus {corpus.name!r} has no training examples; it can be scored by evaluate")
    if config.annotation_weight and not any(example.annotated for example in corpus.train):
        kind, column = ("alignment", "alignment") if corpus.pairs else ("human rationale", "rationale_mask")
        raise ValueError(
            f"annotation_weight is {config.annotation_weight:g}, but {corpus.name!r} has no {kind} to learn from in "
            f"train; name its column (on the command line: --column {column}=NAME), or leave annotation_weight out"
        )
    if len(corpus.classes) == 1 and not config.annotation_weight:
        raise ValueError(
            f"all labels are {corpus.classes[0]!r}, and a classifier learns to tell classes apart; give texts of "
            "another class, name another label column (on the command line: --column label=NAME), or learn from "
            "what people marked alone (--set annotation_weight=1)"
        )
    if corpus.pairs != config.pairs:
        configure(config.method, pairs=corpus.pairs)  # says what is wrong, unless both kinds have such a method
        kind = "pairs of" if corpus.pairs else "single"
        raise ValueError(f"{corpus.name!r} holds {kind} texts; configure with pairs={corpus.pairs}")
    for split, examples in (("train", corpus.train), ("dev", corpus.dev)):
        if isinstance(examples, DiskExamples):
            continue  # each was looked at when it was written
        for i, example in enumerate(examples):
            _check_example(example, f"{corpus.name} {split}[{i}]", corpus)


def _check_example(example: AnyExample, where: str, corpus: Corpus) -> None:
    if not all(example.shape):
        raise ValueError(f"{where} has no tokens; leave empty texts out")
    if example.label is None:
        raise ValueError(f"{where} has no label; training and validation need one for every text")
    if corpus.classes and not (isinstance(example.label, int) and 0 <= example.label < len(corpus.classes)):
        raise ValueError(f"{where} has the label {example.label!r}; expected 0 to {len(corpus.classes) - 1}")


def _reader(corpus: Corpus, description: Description) -> Encoder:
    config = description.config
    words = word_counts(corpus.train)
    how: dict[str, Any] = {"rule": corpus.rule, "punctuation": config.punctuation, "sentences": config.sentences}
    how |= description.network()
    return encoder_class(config.encoder).prepare(config.encoder, words, description.encoder_options(), **how)


def _threads(learner: Learner, asked: int | None, settings: dict[str, Any], *, told: bool) -> int | None:
    """How many the run takes; None: as many as PyTorch does, for a GPU, or where processes share the cores."""
    several = str(settings["devices"]) != "1" or settings["num_nodes"] > 1
    on_cpu = settings["accelerator"] in ("auto", "cpu") and not on_gpu(settings["accelerator"])
    if asked is not None or several or not on_cpu:
        return asked
    most, before = torch.get_num_threads(), learner.progress.threads
    if before is not None and before <= most:
        return before
    if most == 1:
        return 1
    taken = step_seconds(learner)
    if told:
        steps = ", ".join(f"{seconds:.2g} s with {number}" for number, seconds in sorted(taken.items()))
        print(f"Threads: {fewest(taken)} (a step takes {steps})", file=sys.stderr, flush=True)
    return fewest(taken)


def _fit(
    learner: Learner,
    directory: Path | None,
    progress: bool | Literal["lines"] | None,
    settings: dict[str, Any],
) -> None:
    show = progress is True or (progress is None and is_interactive())
    callbacks: list[Callback] = [_Bar()] if show else [_Lines()] if progress == "lines" else []
    with _quiet():
        trainer = pl.Trainer(
            **settings,
            max_epochs=learner.config.epochs - learner.progress.epoch,
            gradient_clip_val=learner.config.clip,
            accumulate_grad_batches=learner.config.accumulate,
            logger=_loggers(directory) if directory else False,
            callbacks=callbacks,
            enable_progress_bar=show,
            enable_checkpointing=False,  # Lightning's are pickles; ours are written by the learner
            enable_model_summary=False,
            num_sanity_val_steps=0,
            limit_val_batches=1.0 if learner.corpus.dev else 0,
            reload_dataloaders_every_n_epochs=1,  # an epoch's batches depend on its number
            use_distributed_sampler=False,  # the learner shares the batches out itself
        )
        with _interruptible(), report_lost_processes():
            trainer.fit(learner)
    learner.model.to(trainer.strategy.root_device)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Lightning answers Ctrl-C with exit code 1, and ignores it from then on; here it stays what it is. SIGTERM it
    answers with exit code 0, as if the training had come to its end; here with the one that shells know."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SIGTERMException:
        raise SystemExit(128 + signal.SIGTERM) from None
    except SystemExit as stopped:
        if not isinstance(stopped.__context__, KeyboardInterrupt):
            raise
        signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt from None


class _Lines(Callback):
    """For logs: a line every `EVERY` seconds, if the training takes so long."""

    def __init__(self) -> None:
        self.begun = self.told = time.monotonic()

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *rest: Any) -> None:
        now = time.monotonic()
        if now - self.told < EVERY or not trainer.is_global_zero:
            return
        self.told = now
        assert isinstance(pl_module, Learner)
        batch, batches = rest[-1] + 1, trainer.num_training_batches
        epoch = f"{pl_module.progress.epoch + 1}/{pl_module.config.epochs}"
        print(f"Epoch {epoch}: {batch} of {batches} batches ({now - self.begun:.0f} s)", file=sys.stderr, flush=True)


class _Bar(TQDMProgressBar):
    """On standard error: Lightning's own would stand in a file that the output is sent to."""

    def init_train_tqdm(self) -> Tqdm:
        with redirect_stdout(sys.stderr):
            return super().init_train_tqdm()

    def init_validation_tqdm(self) -> Tqdm:
        if in_notebook():  # which would write a second bar on new lines, again and again
            return Tqdm(disable=True)
        with redirect_stdout(sys.stderr):
            return super().init_validation_tqdm()

    def on_train_epoch_start(self, trainer: pl.Trainer, *_: Any) -> None:
        super().on_train_epoch_start(trainer)
        learner = trainer.lightning_module
        assert isinstance(learner, Learner)
        self.train_progress_bar.set_description(f"Epoch {learner.progress.epoch + 1}/{learner.config.epochs}")

    def get_metrics(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> dict[str, Any]:
        metrics = super().get_metrics(trainer, pl_module)
        metrics.pop("v_num", None)
        return metrics


def _loggers(directory: Path) -> list[Logger]:
    """A new folder each time the run is taken up: files of a killed process are never written over."""
    taken = [path.name for path in (directory / LOGS).glob("part_*")]
    part = f"part_{len(taken)}"
    return [
        CSVLogger(directory, name=LOGS, version=part),
        TensorBoardLogger(directory, name=LOGS, version=part),
    ]


@contextmanager
def _quiet() -> Iterator[None]:
    """Lightning's remarks on hardware and workers are of no use to somebody who trains a small model."""
    names = ("pytorch_lightning", "lightning.pytorch", "lightning_fabric")
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"(pytorch_lightning|lightning_fabric).*")
            warnings.filterwarnings("ignore", message=".*(num_workers|litlogger|GPU available).*")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _metrics(learner: Learner) -> dict[str, Any]:
    progress = learner.progress
    return {
        "score": learner.score_name,
        "best": progress.best,
        "best_epoch": progress.best_epoch,
        "steps": progress.step,
        "seconds_per_epoch": round(float(np.median([row["seconds"] for row in progress.history])), 3),
        "epochs": progress.history,
        "threads": progress.threads,
        "data": data_digest(learner.corpus, learner.config),
        "versions": {"rationalizer": __version__, "torch": torch.__version__, "python": platform.python_version()},
    }
