"""The one Lightning module that trains every method."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from rationalizer import ops
from rationalizer.data import Corpus
from rationalizer.metrics.task_scores import score_task
from rationalizer.models.batch_constraints import BatchConstraints
from rationalizer.models.batches import Batch, BucketSampler, Shard, batch_loader
from rationalizer.models.config import Config
from rationalizer.nn import Model, TrainingStep, make_objective
from rationalizer.text import AnyExample
from rationalizer.training.averaging import Average
from rationalizer.training.checkpoint import (
    Checkpoint,
    CheckpointFile,
    Progress,
    data_digest,
    host_state,
    optimizer_state,
    restore_optimizer,
    run_settings,
)
from rationalizer.training.distributed import require_agreement
from rationalizer.training.learning_rates import build_optimizer, set_rates
from rationalizer.training.seeding import seed_all


class Learner(pl.LightningModule):
    """Trains a model on a corpus, keeps the weights that are best on dev, and writes checkpoints.

    Lightning counts epochs and steps from where this process started; `progress` counts them from where the
    run did.
    """

    def __init__(
        self,
        model: Model,
        corpus: Corpus,
        config: Config,
        file: CheckpointFile | None = None,
        resumed: Checkpoint | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.corpus = corpus
        self.config = config
        self.objective = make_objective(config.objective, config)
        self.file = file
        self.progress = resumed.progress if resumed else Progress()
        self.best = resumed.best if resumed else {}
        if resumed:
            model.load_state_dict(resumed.model, strict=False)
        self.average = Average(model, config.averaging, resumed.average if resumed else None)
        if config.full_text_epochs:
            # Of several processes each would warn of epochs in which no weight is left out, as one always is here.
            self.left_out = torch.nn.Parameter(torch.zeros(1))
        self._resumed = resumed
        self._validated: Tensor | None = None  # of every text of dev: label, prediction, size and loss
        self._batches = 0  # of the epoch
        self._share = 1.0  # of the batch, that this process has
        self._loss = self._short = self._gap = torch.zeros(())
        self._solved = False  # whether, in this epoch, some layer said how its solver ended
        self._selected = 1.0  # the share of the words, in the last batch
        self._clock = self._saved = time.perf_counter()

    # The run's beginning

    def configure_optimizers(self) -> torch.optim.Optimizer:
        optimizer = build_optimizer(self.model, self.config)
        if self._resumed:
            restore_optimizer(self.model, optimizer, self._resumed.optimizer)
        return optimizer

    def on_fit_start(self) -> None:
        if self.trainer.world_size > 1:  # one process reads no fingerprint of all texts for this
            own = {
                **run_settings(self.config),
                "data": data_digest(self.corpus, self.config),
                "step": self.progress.step,
            }
            require_agreement(own)

    def on_train_start(self) -> None:
        if self._resumed and self._resumed.precision:
            self.trainer.precision_plugin.load_state_dict(self._resumed.precision)
        self._resumed = None

    # Data

    def train_dataloader(self) -> DataLoader[Batch]:
        batches = self._loader(self.corpus.train, shuffle=True, seed=self.config.seed)
        order = batches.batch_sampler
        assert isinstance(order, BucketSampler)
        order.set_epoch(self.progress.epoch, start=self.progress.batch)
        self._batches = order.batches
        return batches

    def val_dataloader(self) -> DataLoader[Batch]:
        return self._loader(self.corpus.dev, shuffle=False, seed=0)

    def _loader(self, examples: Sequence[AnyExample], *, shuffle: bool, seed: int) -> DataLoader[Batch]:
        return batch_loader(
            examples,
            self.model.encoder,
            batch_size=self.config.batch_size,
            batch_tokens=self.config.batch_tokens,
            shuffle=shuffle,
            seed=seed,
            workers=self.config.workers,
            constraints=self.batch_constraints(examples),
            part=Shard(self.trainer.global_rank, self.trainer.world_size),
            annotations=self.config.annotation_weight > 0,
        )

    def batch_constraints(self, examples: Sequence[AnyExample]) -> BatchConstraints | None:
        """What the constraints ask of them."""
        config = self.config
        if not config.constraints:
            return None
        # Whether it can be had was looked at before the training.
        return BatchConstraints(config, self.model.encoder, len(examples), check=False)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return batch.to(device)

    # Training

    def on_train_epoch_start(self) -> None:
        kept = (self.progress.loss, self.progress.short, self.progress.gap)
        self._loss, self._short, self._gap = torch.tensor(kept, dtype=torch.float64).to(self.device, self._sum_type)
        self._solved = False
        self._clock = time.perf_counter()

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        seed_all(self.config.seed, self.progress.step, self.trainer.global_rank)
        self._share = batch.share
        self.model.method.progress = self._done / (self.config.epochs * self._batches)

    @property
    def _done(self) -> int:
        """Batches of the training so far, as if every epoch had as many as this one."""
        return self.progress.epoch * self._batches + self.progress.batch

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        return self._weight * self._batch_loss(batch)

    @property
    def _weight(self) -> float:
        """Of a mean over this process' part of the batch. DDP takes the mean over processes of the gradients, whatever
        their parts' sizes; weighted by this, it comes to the gradient of the mean over the whole batch."""
        return self._share * self.trainer.world_size

    def _whole_batch_mean(self, mean: Tensor) -> Tensor:
        """From that over this process' part."""
        whole = self.trainer.strategy.reduce(self._share * mean.detach(), reduce_op="sum")
        assert isinstance(whole, Tensor)
        return whole

    def _batch_loss(self, batch: Batch) -> Tensor:
        assert batch.labels is not None
        scaler = getattr(self.trainer.precision_plugin, "scaler", None)
        scale = self._weight / self.config.accumulate * (1.0 if scaler is None else float(scaler.get_scale()))
        step = TrainingStep(
            batch.texts,
            batch.labels,
            batch.limits,
            batch.annotation,
            epoch=self.progress.epoch,
            gradient_scale=scale,
            global_mean=self._whole_batch_mean,
        )
        loss, task_loss, output = self.objective.loss(self.model, step)
        self._noted(task_loss)
        if output is not None:
            self._note_ends(output.selection)
            if self.config.slow_predictor:
                self._selected = float(self._whole_batch_mean(self.model.size(output).mean()))
        return loss

    def _noted(self, losses: Tensor) -> None:
        mean = self._whole_batch_mean(losses.mean())
        self._loss += mean
        self.log("loss", mean, prog_bar=True, logger=False, batch_size=len(losses))

    def _note_ends(self, selection: Any) -> None:
        """How the layer's solver ended, kept on the device: to look at it would make the host wait."""
        info = getattr(selection, "info", None)
        if info is None:
            return
        counts = self._share > 0  # where a batch has fewer texts than there are processes, some repeat one
        reduce, kind = self.trainer.strategy.reduce, self._sum_type
        self._short = self._short + reduce((counts & ~info.converged).sum().to(kind), reduce_op="sum")
        self._gap = torch.maximum(self._gap, reduce((counts * info.gap).max().to(kind), reduce_op="max"))
        self._solved = True

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # The middle of the step's batches: neither the first step nor the last one has a rate of 0.
        middle = max(0.5, self._done + 1 - self.config.accumulate / 2)
        set_rates(optimizer, self.config, middle / (self.config.epochs * self._batches), self._selected)

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        stepped = (batch_idx + 1) % self.config.accumulate == 0 or self.trainer.is_last_batch
        if stepped:
            self.average.update(self.model, self.progress.step)
        self.progress.step += 1
        self.progress.batch += 1
        due = time.perf_counter() - self._saved >= self.config.checkpoint_seconds
        # After an epoch's last batch comes validation, and then a checkpoint anyway. Between two steps of the
        # optimizer there are gradients, which no checkpoint has.
        if due and stepped and not self.trainer.is_last_batch:
            self._save()

    # Validation and the end of an epoch

    def on_validation_start(self) -> None:
        self._stop_clock()
        self.average.swap(self.model)
        self._validated = torch.zeros((len(self.corpus.dev), 5), dtype=self._sum_type, device=self.device)

    def on_validation_end(self) -> None:
        self.average.swap(self.model)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        assert batch.labels is not None
        assert self._validated is not None
        if not batch.share:
            return
        output = self.model(*batch.texts, budget=self.config.budget, constraints=batch.limits)
        predicted = self.model.head.predict(output.outputs)
        predicted = predicted.argmax(-1) if self.corpus.task == "classification" else predicted
        loss = self.model.head.loss(output.outputs, batch.labels)
        agreement = (
            loss.new_full(loss.shape, torch.nan) if batch.annotation is None else _f1(output.z != 0, batch.annotation)
        )
        columns = (batch.labels, predicted, self.model.size(output), loss, agreement)
        found = torch.stack([each.to(self._sum_type) for each in columns])
        self._validated[batch.index.to(self.device)] = found.T

    def on_train_epoch_end(self) -> None:
        self._stop_clock()
        progress, row = self.progress, self._epoch_row()
        progress.history.append(row)
        progress.epoch += 1
        progress.batch, progress.loss, progress.seconds, progress.short, progress.gap = 0, 0.0, 0.0, 0, 0.0
        self._keep_best(row)
        if progress.epoch >= self.config.epochs or self._out_of_patience():
            progress.finished = True
            self.trainer.should_stop = True
        for logger in self.trainer.loggers:
            logger.log_metrics(row, step=progress.step)
            logger.save()
        self._save()

    @property
    def score_name(self) -> str:
        """What epochs are judged by; where there is nothing to predict, it is the agreement with people."""
        if self.corpus.task == "regression":
            return "mse"
        return self._agreement_name if len(self.corpus.classes) == 1 else "macro_f1"

    @property
    def _agreement_name(self) -> str:
        return "alignment_f1" if self.corpus.pairs else "token_f1"

    def _epoch_row(self) -> dict[str, float]:
        loss = float(self._loss) / max(self.progress.batch, 1)
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the training loss is {loss} after epoch {self.progress.epoch + 1}; lower learning_rate "
                f"(now {self.config.learning_rate}) or clip (now {self.config.clip})"
            )
        row: dict[str, float] = {"epoch": self.progress.epoch + 1, "loss": loss, **self._ends()}
        if self._validated is not None:
            # Every process has filled in other texts' rows; the sum has them all.
            found = self.trainer.strategy.reduce(self._validated, reduce_op="sum")
            truth, predicted, sizes, losses, agreement = found.cpu().numpy().T
            if self.corpus.classes:
                truth, predicted = truth.astype(int), predicted.astype(int)
            classes = range(len(self.corpus.classes)) if self.corpus.classes else None
            row |= score_task(self.corpus.task, truth, predicted, classes)
            row |= {"size": float(np.mean(sizes)), "dev_loss": float(np.mean(losses))}
            if not np.isnan(agreement).all():
                row[self._agreement_name] = float(np.nanmean(agreement))
            self._validated = None
            for name in {self.score_name, self._agreement_name, "size"} & row.keys():
                self.log(name, row[name], prog_bar=True, logger=False)
        return row | {"seconds": round(self.progress.seconds, 3)}

    def _ends(self) -> dict[str, float]:
        """How far the epoch's selections were from exact, and a word on those that were left too early."""
        if not self._solved:
            return {}
        short, gap = int(self._short), float(self._gap)
        if short:
            warnings.warn(
                f"epoch {self.progress.epoch + 1}: {short} of {len(self.corpus.train)} selections stopped before the "
                f"optimum (gap up to {gap:.1e}); raise the temperature, or mask_tolerance",
                ops.ConvergenceWarning,
                stacklevel=2,
            )
        return {"stopped_short": short, "mask_gap": gap}

    def _keep_best(self, row: dict[str, float]) -> None:
        """By dev loss or score; without a dev set or without early stopping the last epoch is the best. Where there is
        one class the loss is always 0, and the score decides."""
        progress, config = self.progress, self.config
        by_loss = config.keep_by == "loss" and len(self.corpus.classes) != 1
        measure = "dev_loss" if by_loss else self.score_name
        value = row.get(measure)
        if value is not None:
            value = -value if measure in ("dev_loss", "mse") else value  # more is better
        # Nothing was selected, or far too much: any later epoch is better.
        if progress.epoch <= self.objective.warmup_epochs or not self.model.method.is_warmed_up:
            value = None
        last = value is None or config.patience is None
        if last or progress.best_value is None or value > progress.best_value:  # type: ignore[operator]
            progress.best, progress.best_value, progress.best_epoch = row.get(self.score_name), value, progress.epoch
            progress.waited = 0
            self.best = host_state(self.model) | {name: w.cpu().clone() for name, w in self.average.weights.items()}
        else:
            progress.waited += 1

    def _out_of_patience(self) -> bool:
        config, progress = self.config, self.progress
        return (
            config.patience is not None and progress.epoch >= config.min_epochs and progress.waited >= config.patience
        )

    # Checkpoints

    @property
    def _sum_type(self) -> torch.dtype:
        return torch.float32 if self.device.type == "mps" else torch.float64

    def _stop_clock(self) -> None:
        now = time.perf_counter()
        self.progress.seconds += now - self._clock
        self._clock = now

    def _save(self) -> None:
        if self.file is None or not self.trainer.is_global_zero:
            return
        if self.progress.batch:
            self.progress.loss = float(self._loss)
            self.progress.short, self.progress.gap = int(self._short), float(self._gap)
            self._stop_clock()
        optimizer = self.optimizers(use_pl_optimizer=False)
        assert isinstance(optimizer, torch.optim.Optimizer)
        self.file.write(
            Checkpoint(
                progress=self.progress,
                model=host_state(self.model),
                best=self.best,
                average=self.average.weights,
                optimizer=optimizer_state(self.model, optimizer),
                precision=self.trainer.precision_plugin.state_dict(),
            )
        )
        self._saved = time.perf_counter()


def _f1(selected: Tensor, annotation: Tensor) -> Tensor:
    """(batch,) 2 |both| / (|selected| + |marked|); not a number where nothing is marked."""
    both, chosen, wanted = (part.flatten(1).sum(-1) for part in (selected & annotation, selected, annotation))
    return (2 * both / (chosen + wanted)).masked_fill(wanted == 0, torch.nan)
