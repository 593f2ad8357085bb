"""`train`: from a corpus and a config to a trained model, resumable at any moment."""

from __future__ import annotations

import platform
import sys
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from lightning_fabric import Fabric

from rationalizer import __version__
from rationalizer.data import Corpus
from rationalizer.data.disk_examples import labels, word_counts
from rationalizer.inference.multiplier_table import calibrate
from rationalizer.inference.predict import predict
from rationalizer.inference.several_targets import find_thresholds
from rationalizer.models.atomic_files import write_record
from rationalizer.models.batch_constraints import check_constraints
from rationalizer.models.config import Config
from rationalizer.models.description import Description, LabelType
from rationalizer.models.devices import accelerator_settings, set_threads
from rationalizer.models.format_upgrade import find_file
from rationalizer.models.sample_texts import choose_samples
from rationalizer.models.trained_model import (
    CHECKPOINT,
    CONFIG,
    ENCODER_FILE,
    HISTORY,
    TrainedModel,
    read_encoder_files,
    write_encoder_files,
)
from rationalizer.nn import Encoder, Model, encoder_class
from rationalizer.nn.initialization import draw_xavier
from rationalizer.progress import Form, is_interactive, show_progress
from rationalizer.text.language import Languages
from rationalizer.training.checkpoint import Checkpoint, CheckpointFile, data_digest, require_same, run_identity
from rationalizer.training.corpus_checks import check_corpus
from rationalizer.training.data_defaults import settle
from rationalizer.training.denormals import denormals_as_zero
from rationalizer.training.distributed import (
    build_fabric,
    exclusive_folder,
    is_first_process,
    on_cpu,
    on_gpu,
    quiet_lightning,
    report_lost_processes,
)
from rationalizer.training.history_log import HistoryLog
from rationalizer.training.kept_memory import freed_memory_kept
from rationalizer.training.loop import TrainingLoop, sample_texts
from rationalizer.training.seeding import preserve_rng_state, seed_all
from rationalizer.training.threads import fewest_threads, measure_threads
from rationalizer.training.validation import score_name
from rationalizer.training.warm_start import continued_description, copy_encoder, load_weights

DOUBLE = ("64", "64-true")  # Lightning's names of double precision


LANGUAGE_SAMPLE = 500  # training texts, or pairs of them, that tell their language


def train(
    corpus: Corpus,
    config: Config,
    run_dir: str | Path | None = None,
    *,
    resume: bool = False,
    progress: bool | Literal["lines"] | None = None,
    device: str = "auto",
    devices: Any = 1,
    precision: Any = None,
    strategy: Any = "auto",
    num_nodes: int = 1,
    threads: int | None = None,
    label_type: LabelType = "str",
    start: TrainedModel | None = None,
) -> TrainedModel:
    """Train a model. On one CPU, the same corpus, config and number of threads give the same weights bit for bit.

    Args:
        corpus: `train` is learned from; `dev` decides when to stop and which epoch's weights are kept.
        config: see `configure`. The model's config has the values of settings that the data decide (see `settle`).
        run_dir: the folder of the run (see `models/trained_model.py`); None writes nothing.
        resume: continue the run in `run_dir` from its last checkpoint, to the weights it would have reached
            without the interruption. A finished run is loaded; if there is none, one is started.
        progress: show a progress bar, or "lines": a line every few seconds, for logs. By default a bar if standard
            error is a terminal, and in notebooks.
        device: "cpu", "cuda", "cuda:1", "mps"; or "auto", a GPU if available.
        devices, precision, strategy, num_nodes: as for `lightning_fabric.Fabric`. The default precision is
            "32-true", and "bf16-mixed" for transformers on a GPU. A model trained in double precision ("64-true") is
            saved in single precision. Several devices split every batch, and reach the result of a single device up
            to rounding and random numbers.
        threads: number of CPU threads. By default one for small models, and for transformers the fastest number, which
            is measured again when steps become slower (see `threads.py`). The model's history records the last number.
        label_type: the type of the class labels before they became the corpus' class names; saved with the model.
        start: the model to go on from: its weights, words and classes instead of new ones. It stays as it is.
    """
    check_corpus(corpus, config)
    config = settle(config, corpus, None if start is None else start.config)
    directory = Path(run_dir) if run_dir is not None else None
    if directory is None and resume:
        raise ValueError("resume=True needs the run_dir of the run to resume")
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    is_double = str(precision) in DOUBLE
    accelerator = accelerator_settings(device, devices)
    settings: dict[str, Any] = {
        **accelerator,
        # The model is converted to double before a checkpoint is read; Fabric has nothing left to convert.
        "precision": "32-true" if is_double else precision or _default_precision(config, accelerator["accelerator"]),
        "strategy": strategy,
        "num_nodes": num_nodes,
    }
    is_first = is_first_process(devices, num_nodes)
    with quiet_lightning():
        fabric = build_fabric(config, **settings)
        description = describe_model(corpus, config, label_type)
        if start is not None:
            description = continued_description(start, description, corpus)
        run = _Training(corpus, description, directory, fabric, is_first, is_double, start)
        with exclusive_folder(directory, is_first=is_first), preserve_rng_state():
            if directory is not None and is_first and not resume:
                require_no_run(directory)
            if directory is not None and find_file(directory, HISTORY).is_file():
                return run.load_finished(directory)
            may_measure = on_cpu(accelerator["accelerator"]) and str(devices) == "1" and num_nodes == 1
            return run.train(resume, progress, threads, may_measure=may_measure)


@dataclass(frozen=True)
class _Training:
    corpus: Corpus
    description: Description
    directory: Path | None
    fabric: Fabric
    is_first: bool
    is_double: bool
    start: TrainedModel | None = None

    def load_finished(self, directory: Path) -> TrainedModel:
        trained = TrainedModel.load(directory, self.fabric.device)
        stored = run_identity(trained.description, self.corpus) | {"data": trained.history["data"]}
        require_same(stored, run_identity(self.description, self.corpus), directory / HISTORY)
        if self.is_first:
            (directory / CHECKPOINT).unlink(missing_ok=True)
        return trained

    def train(
        self, resume: bool, progress: bool | Literal["lines"] | None, threads: int | None, *, may_measure: bool
    ) -> TrainedModel:
        directory, config = self.directory, self.description.config
        file = CheckpointFile.for_run(directory / CHECKPOINT, self.description, self.corpus) if directory else None
        resumed = file.read() if file and resume else None
        seed_all(config.seed)
        model = self._build_model(resumed)
        log = HistoryLog(directory) if directory else None
        loop = TrainingLoop(model, self.corpus, config, self.fabric, file, resumed, log)
        if directory is not None and self.is_first:
            write_encoder_files(directory, model.encoder)
            write_record(directory / CONFIG, self.description.to_json())
        if not loop.progress.finished:
            with denormals_as_zero(), freed_memory_kept():
                if threads is None and may_measure:
                    threads = _choose_threads(loop, verbose=progress == "lines")
                    loop.may_reduce_threads = loop.model.encoder.uses_threads
                loop.progress.threads = threads
                self._run(loop, progress)
        model.load_state_dict(loop.best, strict=False)
        if self.is_double:
            model.float()
        history = _history(loop) | {"languages": _find_languages(self.corpus).to_json()}
        if config.budget.kind == "average":
            history["calibration"] = calibrate(model, self.corpus.dev or self.corpus.train, config)
            del model.method.multiplier  # of the training; the table replaces it
        if self.corpus.task == "multi-label":
            scored = TrainedModel(self.description, model.eval(), history)
            dev = self.corpus.dev or self.corpus.train
            history["thresholds"] = find_thresholds(dev, predict(scored, dev))
        samples = choose_samples(self.corpus, config.keep_examples)
        trained = TrainedModel(self.description, model.eval(), history, samples)
        if directory is not None and self.is_first:
            trained.save(directory)
            (directory / CHECKPOINT).unlink(missing_ok=True)
        return trained

    def _build_model(self, resumed: Checkpoint | None) -> Model:
        """Build the model with its first weights. Every process does it by itself, with the same result."""
        corpus, config = self.corpus, self.description.config
        if self.directory is not None and resumed and (self.directory / ENCODER_FILE).is_file():
            encoder = read_encoder_files(self.directory, self.description)
        elif self.start is not None:
            encoder = copy_encoder(self.start, self.description)
        else:
            encoder = _build_encoder(corpus, self.description)
        check_constraints(corpus, config, encoder)
        model = self.description.build(encoder)
        if config.budget.kind == "average":
            model.method.track_average(config.budget)
        if self.is_double:
            model.double()
        if self.start is not None:
            load_weights(model, self.start)
            return model
        if resumed is None and config.initial_weights == "xavier":
            draw_xavier(model)
        if resumed is None and model.method.initializes_from_texts:
            model.eval().initialize(*sample_texts(corpus, encoder))
        return model

    def _run(self, loop: TrainingLoop, progress: bool | Literal["lines"] | None) -> None:
        is_bar = progress is True or (progress is None and is_interactive())
        form: Form = "lines" if progress == "lines" else "bar" if is_bar and self.is_first else "none"
        with (
            set_threads(loop.progress.threads),
            show_progress("Training", None, form=form, unit="batches", transient=False) as reporter,
            closing(loop.log) if loop.log else nullcontext(),
            report_lost_processes(),
        ):
            loop.run(reporter)


def require_no_run(directory: Path) -> None:
    """Raise FileExistsError if the folder holds a run."""
    if (directory / CONFIG).exists():
        raise FileExistsError(
            f"{directory} already holds a run; continue it with --resume, in Python with resume=True, or choose "
            "another folder"
        )


def describe_model(corpus: Corpus, config: Config, label_type: LabelType = "str") -> Description:
    """Return the description of the model to train."""
    values = labels(corpus.train)
    columns = values.T if corpus.targets else ()
    return Description(
        config=config,
        task=corpus.task,
        classes=tuple(corpus.classes),
        target=_target_settings(values) if corpus.task == "regression" else {},
        targets=corpus.targets,
        target_settings=tuple(
            {} if target.classes else _target_settings(column[~np.isnan(column)])
            for target, column in zip(corpus.targets, columns, strict=True)
        ),
        label_type=label_type,
        columns=dict(corpus.columns),
    )


def _target_settings(values: Any) -> dict[str, Any]:
    """The arguments of `nn.Regression` for these values."""
    values = values.astype(np.float64)
    if values.min() >= 0 and values.max() <= 1:
        return {"sigmoid": True}
    return {"sigmoid": False, "mean": float(values.mean()), "deviation": float(values.std()) or 1.0}


def _default_precision(config: Config, accelerator: str) -> str:
    """bf16 halves the time of transformers on a GPU, without a measurable loss."""
    fast = encoder_class(config.encoder).prefers_bf16 and on_gpu(accelerator)
    return "bf16-mixed" if fast and torch.cuda.is_bf16_supported() else "32-true"


def _build_encoder(corpus: Corpus, description: Description) -> Encoder:
    config = description.config
    words = word_counts(corpus.train)
    options: dict[str, Any] = {"rule": corpus.rule, "punctuation": config.punctuation, "sentences": config.sentences}
    options |= description.network()
    return encoder_class(config.encoder).prepare(config.encoder, words, description.build_encoder_options(), **options)


def _choose_threads(loop: TrainingLoop, *, verbose: bool) -> int:
    """Return the number of threads: that of the interrupted run if the machine has as many, one for small models, else
    the fastest."""
    available, before = torch.get_num_threads(), loop.progress.threads
    if before is not None and before <= available:
        return before
    if available == 1 or not loop.model.encoder.uses_threads:
        return 1
    seconds = measure_threads(loop)
    chosen = fewest_threads(seconds)
    if verbose:
        steps = ", ".join(f"{time:.2g} s with {number}" for number, time in sorted(seconds.items()))
        print(f"Threads: {chosen} (a step takes {steps})", file=sys.stderr, flush=True)
    return chosen


def _find_languages(corpus: Corpus) -> Languages:
    rows = range(0, len(corpus.train), -(-len(corpus.train) // LANGUAGE_SAMPLE))
    return Languages.of(text for row in rows for text in corpus.train[row].texts)


def _history(loop: TrainingLoop) -> dict[str, Any]:
    progress = loop.progress
    return {
        "score": score_name(loop.corpus),
        "best": progress.best,
        "best_epoch": progress.best_epoch,
        "warnings": progress.best_warnings,
        "steps": progress.step,
        "seconds_per_epoch": round(float(np.median([row["seconds"] for row in progress.history])), 3),
        "epochs": progress.history,
        "alarms": progress.alarms,
        "threads": progress.threads,
        "data": data_digest(loop.corpus, loop.config),
        "versions": {"rationalizer": __version__, "torch": torch.__version__, "python": platform.python_version()},
    }
