"""The training loop, on Lightning Fabric: epochs, validation, the best weights, checkpoints."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.utils.data import DataLoader

from rationalizer import ops
from rationalizer.data import Corpus
from rationalizer.metrics import METRICS, Finding
from rationalizer.models.batch_constraints import BatchConstraints
from rationalizer.models.batches import Annotations, Batch, BucketSampler, Shard, batch_loader, collate
from rationalizer.models.config import Config
from rationalizer.models.json_schema import find_mismatch
from rationalizer.nn import Classification, Encoder, HighlightModel, Model, Objective, TrainingStep, make_objective
from rationalizer.progress import Reporter
from rationalizer.text import AnyExample, WordBatch
from rationalizer.training.alarms import add_alarms, unexpected_findings, warn_of
from rationalizer.training.averaging import Average
from rationalizer.training.checkpoint import (
    Checkpoint,
    CheckpointFile,
    Progress,
    copy_to_host,
    data_digest,
    optimizer_state,
    restore_optimizer,
    run_settings,
)
from rationalizer.training.class_balance import dev_weights, training_weights
from rationalizer.training.distributed import Termination, gather_items, require_agreement
from rationalizer.training.history_log import HistoryLog
from rationalizer.training.learning_rates import build_optimizer, set_rates
from rationalizer.training.seeding import seed_all
from rationalizer.training.threads import StepClock, fewest_threads, measure_threads
from rationalizer.training.validation import Validation, agreement_name, score_name

NOTE_SECONDS = 0.2  # minimum interval of updates of the progress bar: reading a loss makes the host wait for the device


SAMPLED_TEXTS = 64  # number of texts that methods are initialized with


def sample_texts(corpus: Corpus, encoder: Encoder) -> tuple[WordBatch, ...]:
    """Return some of the training texts, as one batch."""
    return collate(list(enumerate(corpus.train[:SAMPLED_TEXTS])), encoder).texts


class LossModule(nn.Module):
    """Sends the computation of a loss through `forward`, which is where Fabric and DDP expect it."""

    def __init__(self, model: Model, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective
        if objective.warmup_epochs:  # DDP warns if it has to look for unused parameters and finds none
            self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, compute_loss: Callable[[], Tensor]) -> Tensor:
        if torch.is_autocast_enabled(next(self.parameters()).device.type):
            # A cached copy of a weight that is used several times would sum its gradients in 16 bits.
            torch.set_autocast_cache_enabled(False)
        return compute_loss()


class TrainingLoop:
    """Trains a model on a corpus, keeps the weights that are best on dev, and writes checkpoints."""

    def __init__(
        self,
        model: Model,
        corpus: Corpus,
        config: Config,
        fabric: Fabric,
        file: CheckpointFile | None = None,
        resumed: Checkpoint | None = None,
        log: HistoryLog | None = None,
    ) -> None:
        self.model = model
        self.corpus = corpus
        self.config = config
        self.objective = make_objective(config.objective, config)
        self.objective.prepare(model, lambda: sample_texts(corpus, model.encoder))
        self.fabric = fabric
        self.file = file
        self.log = log
        self.progress = resumed.progress if resumed else Progress()
        self.best = resumed.best if resumed else {}
        self.resumed = resumed
        if resumed:
            if file and (problem := resumed.find_mismatch(model, self.objective)):
                raise file.error(problem)
            model.load_state_dict(resumed.model, strict=False)
            self.objective.load_state_dict(resumed.objective)
        self.loss, self.unconverged, self.largest_gap = torch.zeros(3)
        self.batches = 0  # number of batches per epoch
        self.share = 1.0  # share of the batch that this process computes
        self.selected = 1.0  # share of the words selected in the last batch
        self.findings: list[Finding] = []  # signs of degeneration in the last validation
        self.is_solved = False  # whether a layer reported the convergence of its solver in this epoch
        self.clock = self.saved = self.noted = time.perf_counter()
        self.shown: dict[str, float] = {}  # values shown on the progress bar
        self.warnings: list[str] = []  # about the predictions of the last validation
        self.may_reduce_threads = False  # whether to use fewer threads when steps become slower

    @property
    def device(self) -> torch.device:
        return self.fabric.device

    # The run

    def run(self, reporter: Reporter) -> None:
        """Train until the last epoch or until early stopping."""
        self.fabric.launch()
        self.reporter = reporter if self.fabric.is_global_zero else Reporter()
        self._setup()
        with Termination(self.fabric) as self.termination, self.model.encoder.storing_states():
            while not self.progress.finished:
                self._train_epoch()
                row = self._history_row(self._validate())
                self._raise_alarms()
                self._keep_best(row)
                self._end_epoch(row)
        self._weigh_classes(None)

    def _setup(self) -> None:
        if self.fabric.world_size > 1:  # a single process does not need the digest of all texts
            data = data_digest(self.corpus, self.config)
            require_agreement({**run_settings(self.config), "data": data, "step": self.progress.step})
        self.model.to(self.device).train()
        self.objective.to(self.device).train()
        optimizer = build_optimizer(self.model, self.objective, self.config)
        average = None
        if self.resumed:
            restore_optimizer(self.model, self.objective, optimizer, self.resumed.optimizer)
            average = self.resumed.average
            scaler = self.fabric.strategy.precision.state_dict()
            if scaler and self.resumed.precision:
                problem = find_mismatch(self.resumed.precision, {name: type(value) for name, value in scaler.items()})
                if problem and self.file:
                    raise self.file.error(f"precision.{problem}")
                self.fabric.strategy.precision.load_state_dict(self.resumed.precision)
        self.resumed = None
        self.average = Average(self.model, self.config.averaging, average)
        self.training_weights = training_weights(self.corpus, self.config)
        self.dev_weights = dev_weights(self.corpus, self.config)
        module = LossModule(self.model, self.objective)
        self.module, self.optimizer = self.fabric.setup(module, optimizer)

    def _train_epoch(self) -> None:
        progress = self.progress
        sums = torch.tensor((progress.loss, progress.unconverged, progress.largest_gap), dtype=torch.float64)
        self.loss, self.unconverged, self.largest_gap = sums.to(self.device, self.sum_type)
        self.is_solved = False
        self._weigh_classes(self.training_weights)
        balanced = self.config.sampling == "balanced" and self.corpus.task == "classification"
        loader = self.load_batches(self.corpus.train, shuffle=True, seed=self.config.seed, balanced=balanced)
        order = loader.batch_sampler
        assert isinstance(order, BucketSampler)
        order.set_epoch(progress.epoch)
        self.batches = order.batches
        if not progress.batch:
            self.objective.start_epoch(self.model, progress.epoch)
        else:
            if progress.batch >= self.batches and self.file:
                raise self.file.error(f"progress.batch is {progress.batch}, but an epoch has {self.batches} batches")
            order.set_epoch(progress.epoch, start=progress.batch)
        clock = StepClock()  # one per epoch: the steps of different epochs may differ
        self.reporter.start(f"Epoch {progress.epoch + 1}/{self.config.epochs}", self.batches, progress.batch)
        self.clock = time.perf_counter()
        for batch in loader:
            started = time.perf_counter()
            self._train_batch(batch.to(self.device))
            words = sum(text.mask.numel() for text in batch.texts)
            if self.may_reduce_threads and clock.is_slower(words, time.perf_counter() - started):
                self._reduce_threads()
            self.termination.exit_if_received()

    def _train_batch(self, batch: Batch) -> None:
        progress, config = self.progress, self.config
        seed_all(config.seed, progress.step, self.fabric.global_rank)
        self.share = batch.share
        self.model.method.progress = self.finished_batches / (config.epochs * self.batches)
        is_last = progress.batch + 1 == self.batches
        is_step = (progress.batch + 1) % config.accumulate == 0 or is_last
        with self.fabric.no_backward_sync(self.module, enabled=not is_step):
            loss = self.module(lambda: self.training_step(batch))
            self.fabric.backward(loss / config.accumulate)
        if is_step:
            self._update_weights()
        progress.step += 1
        progress.batch += 1
        self._report_loss()
        is_due = time.perf_counter() - self.saved >= config.checkpoint_seconds
        # After an epoch's last batch comes validation, and then a checkpoint anyway. Between two steps of the
        # optimizer there are gradients, which no checkpoint holds.
        if is_due and is_step and not is_last:
            self._save()

    def _reduce_threads(self) -> None:
        """Measure the fastest number of threads again, up to the present one."""
        if torch.get_num_threads() > 1:
            self.progress.threads = fewest_threads(measure_threads(self))
            torch.set_num_threads(self.progress.threads)

    def _update_weights(self) -> None:
        config = self.config
        # The middle of the step's batches: neither the first step nor the last one has a rate of 0.
        middle = max(0.5, self.finished_batches + 1 - config.accumulate / 2)
        progress = middle / (config.epochs * self.batches)
        set_rates(self.optimizer, self.objective, config, progress, self.selected)
        self.fabric.clip_gradients(self.module, self.optimizer, max_norm=config.clip, error_if_nonfinite=False)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.average.update(self.model, self.progress.step)

    @property
    def finished_batches(self) -> int:
        """Batches of the training so far, as if every epoch had as many as this one."""
        return self.progress.epoch * self.batches + self.progress.batch

    # The loss

    def training_step(self, batch: Batch) -> Tensor:
        """Return the loss of this process' shard of a batch."""
        return self.weight * self._batch_loss(batch)

    @property
    def weight(self) -> float:
        """The weight of a mean over this process' shard. DDP averages gradients over processes, whatever the sizes of
        their shards; with this weight the average is the gradient of the mean over the whole batch."""
        return self.share * self.fabric.world_size

    def global_mean(self, mean: Tensor) -> Tensor:
        """Return the mean over the whole batch, from the mean over this process' shard."""
        return self.all_reduce(self.share * mean.detach(), "sum")

    def all_reduce(self, value: Tensor, operation: str) -> Tensor:
        if self.fabric.world_size == 1:
            return value
        reduced = self.fabric.all_reduce(value, reduce_op=operation)
        assert isinstance(reduced, Tensor)
        return reduced

    def _batch_loss(self, batch: Batch) -> Tensor:
        assert batch.labels is not None
        scaler = getattr(self.fabric.strategy.precision, "scaler", None)
        scale = self.weight / self.config.accumulate * (1.0 if scaler is None else float(scaler.get_scale()))
        step = TrainingStep(
            batch.texts,
            batch.labels,
            batch.constraints,
            batch.annotation,
            batch.removed,
            epoch=self.progress.epoch,
            gradient_scale=scale,
            global_mean=self.global_mean,
        )
        self.model.head.text_weights = batch.weights
        loss, task_loss, output = self.objective.loss(self.model, step)
        self.model.head.text_weights = None
        self.last_loss = self.global_mean(task_loss.mean())
        self.loss += self.last_loss
        if output is not None:
            self._add_convergence(output.selection)
            if self.objective.uses_selected_share:
                self.selected = float(self.global_mean(self.model.size(output).mean()))
        return loss

    def _report_loss(self) -> None:
        now = time.perf_counter()
        if type(self.reporter) is not Reporter and now - self.noted >= NOTE_SECONDS:
            self.noted = now
            self._report(loss=float(self.last_loss))
        self.reporter(1)

    def _report(self, **values: float) -> None:
        self.shown |= values
        self.reporter.note(", ".join(f"{name} {value:.3f}" for name, value in self.shown.items()))

    def _add_convergence(self, selection: Any) -> None:
        """Count the selections whose solver stopped early. The sums stay on the device: reading them would make the
        host wait."""
        info = getattr(selection, "info", None)
        if info is None:
            return
        counts = self.share > 0  # a process without a text of the batch repeats one, which does not count
        unconverged = (counts & ~info.converged).sum().to(self.sum_type)
        gap = (counts * info.gap).max().to(self.sum_type)
        self.unconverged = self.unconverged + self.all_reduce(unconverged, "sum")
        self.largest_gap = torch.maximum(self.largest_gap, self.all_reduce(gap, "max"))
        self.is_solved = True

    def _weigh_classes(self, weights: Tensor | None) -> None:
        """Set the factors of the classes in the losses; None: all 1."""
        if isinstance(self.model.head, Classification):
            self.model.head.class_weights = None if weights is None else weights.to(self.device, self.sum_type)

    # Data

    def load_batches(
        self, examples: Sequence[AnyExample], *, shuffle: bool, seed: int, balanced: bool = False
    ) -> DataLoader[Batch]:
        config = self.config
        # Whether the constraints can be satisfied was checked before the training.
        constraints = BatchConstraints(config, self.model.encoder, len(examples), check=False)
        return batch_loader(
            examples,
            self.model.encoder,
            batch_size=config.batch_size,
            batch_tokens=config.batch_tokens,
            shuffle=shuffle,
            seed=seed,
            workers=config.workers,
            constraints=constraints if config.constraints else None,
            shard=Shard(self.fabric.global_rank, self.fabric.world_size),
            annotations=self._annotations(),
            balanced=balanced,
        )

    def _annotations(self) -> Annotations:
        """Whether batches have annotations, or the labels of which each has its own."""
        if not self.config.annotation_weight:
            return False
        separate = isinstance(self.model, HighlightModel) and self.model.labels > 1
        return (self.corpus.label_names or self.corpus.classes) if separate else True

    # The end of an epoch

    @torch.no_grad()
    def _validate(self) -> dict[str, float]:
        """Score the averaged weights on dev; {} without a dev set."""
        corpus = self.corpus
        if not corpus.dev:
            return {}
        self.average.swap(self.model)
        self.model.eval()
        self._weigh_classes(self.dev_weights)
        validation = Validation(corpus, self.sum_type, self.device)
        for batch in self.load_batches(corpus.dev, shuffle=False, seed=0):
            if batch.share:
                with self.fabric.autocast():
                    validation.add(self.model, batch.to(self.device), self.config.budget)
        self.model.train()
        self.average.swap(self.model)
        # Each process has filled the rows of its own texts; the sum contains all rows.
        rows = self.all_reduce(validation.rows, "sum")
        found = validation.findings(rows, gather_items(validation.rationales))
        self.findings = unexpected_findings(self.config.method, found)
        scores = validation.scores(rows)
        self.warnings = validation.warnings
        return scores

    def _raise_alarms(self) -> None:
        """Record signs of degeneration, and warn of those that last."""
        progress, first = self.progress, self.config.min_epochs
        if not self._is_warming_up:
            messages = add_alarms(progress.alarms, self.findings, progress.epoch + 1, min_epochs=first)
            warn_of(messages if self.fabric.is_global_zero else ())

    @property
    def _is_warming_up(self) -> bool:
        """Whether the model selects nothing yet, or far too much."""
        return self.progress.epoch < self.objective.warmup_epochs or not self.model.method.is_warmed_up

    def _history_row(self, scores: dict[str, float]) -> dict[str, float]:
        """Return the epoch's row of the history."""
        progress = self.progress
        loss = float(self.loss) / max(progress.batch, 1)
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the training loss is {loss} after epoch {progress.epoch + 1}; lower learning_rate "
                f"(now {self.config.learning_rate}) or clip (now {self.config.clip})"
            )
        shown = {score_name(self.corpus), agreement_name(self.corpus)} & scores.keys()
        self._report(
            loss=float(self.last_loss), **{f"dev {METRICS[name].short_name}": scores[name] for name in sorted(shown)}
        )
        self._stop_clock()
        row = {"epoch": progress.epoch + 1, "loss": loss, **self._convergence(), **scores}
        return row | {"seconds": round(progress.seconds, 3)}

    def _convergence(self) -> dict[str, float]:
        """Return the convergence of the epoch's selections, and warn if a solver stopped early."""
        if not self.is_solved:
            return {}
        count, gap = int(self.unconverged), float(self.largest_gap)
        if count:
            warnings.warn(
                f"epoch {self.progress.epoch + 1}: {count} of {len(self.corpus.train)} selections stopped before the "
                f"optimum (gap up to {gap:.1e}); raise the temperature, or mask_tolerance",
                ops.ConvergenceWarning,
                stacklevel=2,
            )
        return {"stopped_short": count, "mask_gap": gap}

    def _keep_best(self, row: dict[str, float]) -> None:
        """Keep the weights if they are the best so far by dev loss or score. Without a dev set or without early
        stopping the last epoch is the best. With a single class the loss is always 0, and the score decides."""
        progress, config = self.progress, self.config
        by_loss = config.keep_by == "loss" and (len(self.corpus.classes) != 1 or bool(self.corpus.label_names))
        measure = "dev_loss" if by_loss else score_name(self.corpus)
        value = row.get(measure)
        if value is not None:
            value = -value if measure in ("dev_loss", "mse") else value  # higher is better
        if self._is_warming_up:  # any later epoch is better
            value = None
        is_best = value is None or config.patience is None or progress.best_value is None or value > progress.best_value
        if is_best:
            progress.best, progress.best_value = row.get(score_name(self.corpus)), value
            progress.best_epoch = progress.epoch + 1
            progress.best_warnings = self.warnings
            progress.epochs_without_improvement = 0
            self.best = copy_to_host(self.model.state_dict()) | copy_to_host(self.average.weights)
        else:
            progress.epochs_without_improvement += 1

    def _end_epoch(self, row: dict[str, float]) -> None:
        progress, config = self.progress, self.config
        progress.history.append(row)
        progress.epoch += 1
        progress.batch, progress.unconverged = 0, 0
        progress.loss = progress.seconds = progress.largest_gap = 0.0
        progress.finished = progress.epoch >= config.epochs or self._stops_early()
        if self.log and self.fabric.is_global_zero:
            self.log.write(progress.history, progress.step)
        self._save()

    def _stops_early(self) -> bool:
        progress, patience = self.progress, self.config.patience
        has_run_long = progress.epoch >= self.config.min_epochs
        return patience is not None and has_run_long and progress.epochs_without_improvement >= patience

    # Checkpoints

    @property
    def sum_type(self) -> torch.dtype:
        return torch.float32 if self.device.type == "mps" else torch.float64

    def _stop_clock(self) -> None:
        now = time.perf_counter()
        self.progress.seconds += now - self.clock
        self.clock = now

    def _save(self) -> None:
        if self.file is None or not self.fabric.is_global_zero:
            return
        if self.progress.batch:
            self.progress.loss = float(self.loss)
            self.progress.unconverged, self.progress.largest_gap = int(self.unconverged), float(self.largest_gap)
            self._stop_clock()
        self.file.write(
            Checkpoint(
                progress=self.progress,
                model=copy_to_host(self.model.state_dict()),
                best=self.best,
                average=self.average.weights,
                optimizer=optimizer_state(self.model, self.objective, self.optimizer.optimizer),
                objective=copy_to_host(self.objective.state_dict()),
                precision=self.fabric.strategy.precision.state_dict(),
            )
        )
        self.saved = time.perf_counter()
