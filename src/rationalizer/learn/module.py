"""The one Lightning module that trains every method."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Sampler

from rationalizer.data import Corpus
from rationalizer.learn.averaging import Average
from rationalizer.learn.batch import Batch, BucketSampler, loader
from rationalizer.learn.checkpoint import (
    Checkpoint,
    CheckpointFile,
    Progress,
    host_state,
    optimizer_state,
    restore_optimizer,
)
from rationalizer.learn.config import Config
from rationalizer.learn.limiting import Limiting
from rationalizer.learn.rates import optimizer_of, set_rates
from rationalizer.learn.seeding import seed_all
from rationalizer.metrics.task import score_task
from rationalizer.nn import Model, Output
from rationalizer.text import AnyExample


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
        self.file = file
        self.progress = resumed.progress if resumed else Progress()
        self.best = resumed.best if resumed else {}
        if resumed:
            model.load_state_dict(resumed.model, strict=False)
        self.average = Average(model, config.averaging, resumed.average if resumed else None)
        self._resumed = resumed
        self._validated: list[tuple[Tensor, ...]] = []
        self._loss = torch.zeros(())
        self._selected = 1.0  # the share of the words, in the last batch
        self._clock = self._saved = time.perf_counter()

    # The run's beginning

    def configure_optimizers(self) -> torch.optim.Optimizer:
        optimizer = optimizer_of(self.model, self.config)
        if self._resumed:
            restore_optimizer(self.model, optimizer, self._resumed.optimizer)
        return optimizer

    def on_train_start(self) -> None:
        if self._resumed and self._resumed.precision:
            self.trainer.precision_plugin.load_state_dict(self._resumed.precision)
        self._resumed = None

    # Data

    def train_dataloader(self) -> DataLoader[Batch]:
        config = self.config
        batches = loader(
            self.corpus.train,
            self.model.reader,
            batch_size=config.batch_size,
            shuffle=True,
            seed=config.seed,
            workers=config.workers,
            limiting=self._limiting(self.corpus.train),
            marks=config.rationale_weight > 0,
        )
        order = batches.batch_sampler
        assert isinstance(order, BucketSampler)
        processes = self.trainer.world_size
        order.set_epoch(self.progress.epoch, start=self.progress.batch * processes)
        if processes == 1:
            return batches
        return DataLoader(
            batches.dataset,
            batch_sampler=Share(order, self.trainer.global_rank, processes),
            collate_fn=batches.collate_fn,
            num_workers=config.workers,
        )

    def val_dataloader(self) -> DataLoader[Batch]:
        # Every process validates on the whole dev set: all then stop at the same epoch, without a word.
        return loader(
            self.corpus.dev,
            self.model.reader,
            batch_size=self.config.batch_size,
            shuffle=False,
            seed=0,
            workers=self.config.workers,
            limiting=self._limiting(self.corpus.dev),
            marks=self.config.rationale_weight > 0,
        )

    def _limiting(self, examples: Sequence[AnyExample]) -> Limiting | None:
        config = self.config
        if not config.constraints:
            return None
        # Whether it can be had was looked at before the training.
        return Limiting(config, self.model.reader, len(examples), check=False)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return batch.to(device)

    # Training

    def on_train_epoch_start(self) -> None:
        self._loss = torch.tensor(self.progress.loss, dtype=torch.float64).to(self.device, self._sum_type)
        self._clock = time.perf_counter()

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        seed_all(self.config.seed, self.progress.step, self.trainer.global_rank)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        assert batch.labels is not None
        if self.progress.epoch < self.config.full_text_epochs:
            outputs = self.model.full_text_outputs(*batch.texts)
            if outputs is not None:
                return self._noted(self.model.head.loss(outputs, batch.labels)).mean()
        output = self.model(*batch.texts, budget=self.config.budget, limits=batch.limits)
        task_loss = self._noted(self.model.head.loss(output.outputs, batch.labels))
        objective = self.model.objective(output, task_loss)
        for name, value in objective.state.items():
            setattr(self.model.method, name, value.detach())
        if self.config.slow_predictor:
            self._selected = float(self.model.size(output).detach().mean())
        loss = objective.loss + self._full_text_loss(batch, batch.labels, output)
        if batch.marked is None:
            return loss
        # A mean over all texts: one that nobody marked adds nothing, and any other one as much in every batch.
        return loss + self.config.rationale_weight * self.model.imitation(output, batch.marked).mean()

    def _noted(self, losses: Tensor) -> Tensor:
        mean = losses.detach().mean()
        self._loss += mean
        self.log("loss", mean, prog_bar=True, logger=False, batch_size=len(losses))
        return losses

    def _full_text_loss(self, batch: Batch, labels: Tensor, output: Output) -> Tensor | float:
        """The predictor's loss on whole texts. It ties what words mean to the predictor to what they mean in
        texts: without it generator and predictor can agree on a code, in which the choice of words says what
        the words do not. Predictions are made from selections all the same."""
        weight, guided = self.config.full_text_weight, self.config.guide == "full-text"
        outputs = self.model.full_text_outputs(*batch.texts) if weight or guided else None
        if outputs is None:
            return 0.0
        if guided:
            self._guide(output, outputs.detach())
        return weight * self.model.head.loss(outputs, labels).mean()

    def _guide(self, output: Output, full_text: Tensor) -> None:
        """The generator learns from KL(p(y|z) ‖ p(y|x)) alone, the predictor from the labels alone: on its way back
        the labels' gradient ends at z, and this one goes on in its place."""
        if not output.z.requires_grad:
            return
        divergence = self.model.head.divergence(output.outputs, full_text).mean() / self.config.accumulate
        scaler = getattr(self.trainer.precision_plugin, "scaler", None)
        scale = 1.0 if scaler is None else float(scaler.get_scale())
        (gradient,) = torch.autograd.grad(scale * divergence, output.z, retain_graph=True)
        output.z.register_hook(lambda _: gradient)  # type: ignore[no-untyped-call]

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        total = self.config.epochs * self.batches_per_epoch
        # The middle of the step's batches: neither the first step nor the last one has a rate of 0.
        middle = max(0.5, self.progress.step + 1 - self.config.accumulate / 2)
        set_rates(optimizer, self.config, middle / total, self._selected)

    @property
    def batches_per_epoch(self) -> int:
        batches = -(-len(self.corpus.train) // self.config.batch_size)
        return max(1, batches // self.trainer.world_size)

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

    def on_validation_end(self) -> None:
        self.average.swap(self.model)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        assert batch.labels is not None
        output = self.model(*batch.texts, budget=self.config.budget, limits=batch.limits)
        predicted = self.model.head.predict(output.outputs)
        predicted = predicted.argmax(-1) if self.corpus.task == "classification" else predicted
        loss = self.model.head.loss(output.outputs, batch.labels)
        agreement = loss.new_full(loss.shape, torch.nan) if batch.marked is None else _f1(output.z != 0, batch.marked)
        self._validated.append((batch.labels, predicted, self.model.size(output), loss, agreement))

    def on_train_epoch_end(self) -> None:
        self._stop_clock()
        progress, row = self.progress, self._epoch_row()
        progress.history.append(row)
        progress.epoch += 1
        progress.batch, progress.loss, progress.seconds = 0, 0.0, 0.0
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
        row: dict[str, float] = {"epoch": self.progress.epoch + 1, "loss": loss}
        if self._validated:
            columns = zip(*self._validated, strict=True)
            truth, predicted, sizes, losses, agreement = (torch.cat(column).tolist() for column in columns)
            classes = range(len(self.corpus.classes)) if self.corpus.classes else None
            row |= score_task(self.corpus.task, truth, predicted, classes)
            row |= {"size": float(np.mean(sizes)), "dev_loss": float(np.mean(losses))}
            known = [value for value in agreement if not math.isnan(value)]
            row |= {self._agreement_name: float(np.mean(known))} if known else {}
            self._validated.clear()
            for name in {self.score_name, self._agreement_name, "size"} & row.keys():
                self.log(name, row[name], prog_bar=True, logger=False)
        return row | {"seconds": round(self.progress.seconds, 3)}

    def _keep_best(self, row: dict[str, float]) -> None:
        """By dev loss or score; without a dev set or without early stopping the last epoch is the best. Where there is
        one class the loss is always 0, and the score decides."""
        progress, config = self.progress, self.config
        by_loss = config.keep_by == "loss" and len(self.corpus.classes) != 1
        measure = "dev_loss" if by_loss else self.score_name
        value = row.get(measure)
        if value is not None:
            value = -value if measure in ("dev_loss", "mse") else value  # more is better
        if progress.epoch <= config.full_text_epochs:  # nothing was selected: any later epoch is better
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


def _f1(selected: Tensor, marked: Tensor) -> Tensor:
    """(batch,) 2 |both| / (|selected| + |marked|); not a number where nothing is marked."""
    both, chosen, wanted = (part.flatten(1).sum(-1) for part in (selected & marked, selected, marked))
    return (2 * both / (chosen + wanted)).masked_fill(wanted == 0, torch.nan)


class Share(Sampler[list[int]]):
    """Every `processes`-th batch, beginning with the `rank`-th; the same number for every process."""

    def __init__(self, batches: BucketSampler, rank: int, processes: int) -> None:
        self.batches = batches
        self.rank = rank
        self.processes = processes

    def __len__(self) -> int:
        return len(self.batches) // self.processes

    def __iter__(self) -> Iterator[list[int]]:
        own = list(self.batches)[self.rank :: self.processes]
        yield from own[: len(self)]
