"""The scores of an epoch on the dev set, and signs of degeneration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rationalizer.data import Corpus
from rationalizer.inference.several_targets import score_outputs
from rationalizer.metrics.degeneration import Finding, find_degeneration, find_unpredicted_classes
from rationalizer.metrics.task_scores import score_task
from rationalizer.models.batches import Batch
from rationalizer.nn import Model
from rationalizer.text import Budget

CHECKED_TEXTS = (
    1000  # number of dev texts that are checked for degeneration: enough to see it, in a fraction of a second
)


def score_name(corpus: Corpus) -> str:
    """Return the score that epochs are compared by; with a single class it is the agreement with the annotation."""
    if corpus.task == "multi-label":
        return "micro_f1"
    if corpus.task == "regression" or (corpus.targets and not any(target.classes for target in corpus.targets)):
        return "mse"
    return agreement_name(corpus) if len(corpus.classes) == 1 else "macro_f1"


def agreement_name(corpus: Corpus) -> str:
    return "alignment_f1" if corpus.pairs else "token_f1"


class Validation:
    """Collects label, prediction, size, loss and agreement with the annotation of every text of dev, and the rationales
    of some."""

    def __init__(self, corpus: Corpus, dtype: torch.dtype, device: torch.device) -> None:
        self.corpus = corpus
        # Of each text its labels, as many as there are targets, then the outputs, and three numbers.
        self.targets = len(corpus.label_names) or 1
        several = sum(max(1, len(target.classes)) for target in corpus.targets) or self.targets
        self.rows = torch.zeros((len(corpus.dev), self.targets + several + 3), dtype=dtype, device=device)
        self.stride = -(-len(corpus.dev) // CHECKED_TEXTS)
        self.rationales: dict[int, NDArray[np.bool_]] = {}  # by position in dev
        self.warnings: list[str] = []  # about the predictions, once they are scored

    def add(self, model: Model, batch: Batch, budget: Budget) -> None:
        assert batch.labels is not None
        output = model(*batch.texts, budget=budget, constraints=batch.constraints)
        predicted = model.head.predict(output.outputs)
        predicted = predicted.argmax(-1) if self.corpus.task == "classification" else predicted
        loss = model.head.loss(output.outputs, batch.labels)
        loss = loss if batch.weights is None else loss * batch.weights.to(loss)
        agreement = loss.new_full(loss.shape, torch.nan)
        if batch.annotation is not None:
            agreement = f1(output.z != 0, batch.annotation)
        columns = (batch.labels, predicted, model.size(output), loss, agreement)
        tables = [column.to(self.rows.dtype).view(len(batch), -1) for column in columns]
        rows = torch.cat(tables, dim=1)
        self.rows[batch.index.to(self.rows.device)] = rows
        if not self.corpus.pairs:
            # The union of several rationales.
            chosen = output.z != 0 if output.z.dim() == 2 else (output.z != 0).any(1)
            selected, mask = (
                part.cpu().numpy() for part in (chosen, output.masks[0].view(len(batch), -1, chosen.shape[1])[:, 0])
            )
            for row, index in enumerate(batch.index.tolist()):
                if index % self.stride == 0:
                    self.rationales[index] = selected[row, mask[row]]

    def scores(self, rows: Tensor) -> dict[str, float]:
        """Return the scores of the rows of all processes, and collect warnings about them."""
        corpus = self.corpus
        sizes, losses, agreement = rows[:, -3:].cpu().numpy().T
        truth: Any = rows[:, : self.targets].cpu().numpy()
        predicted: Any = rows[:, self.targets : -3].cpu().numpy()
        if not corpus.label_names:
            truth, predicted = truth[:, 0], predicted[:, 0]
        if corpus.task == "classification":
            truth, predicted = truth.astype(int), predicted.astype(int)
            finding = find_unpredicted_classes(truth, predicted, corpus.classes)
            self.warnings = [] if finding is None else [finding.message]
        classes = range(len(corpus.classes)) if corpus.classes else None
        if corpus.label_names:
            scores = score_outputs(corpus, truth, predicted)
        else:
            scores = score_task("classification" if classes else "regression", truth, predicted, classes)
        scores |= {"size": float(np.mean(sizes)), "dev_loss": float(np.mean(losses))}
        if not np.isnan(agreement).all():
            scores[agreement_name(corpus)] = float(np.nanmean(agreement))
        return scores

    def findings(self, rows: Tensor, rationales: Mapping[int, NDArray[np.bool_]]) -> list[Finding]:
        """Return the signs of degeneration in the rows and rationales of all processes."""
        corpus = self.corpus
        if not rationales:
            return []
        index = sorted(rationales)
        labels: dict[str, Any] = {}
        if len(corpus.classes) != 1 and not corpus.label_names:
            truth, predicted = rows[index, :2].cpu().numpy().T
            labels = {"truth": truth.tolist(), "predictions": predicted.tolist(), "task": corpus.task}
        return find_degeneration([rationales[i] for i in index], **labels)


def f1(selected: Tensor, annotation: Tensor) -> Tensor:
    """(batch,) 2 |both| / (|selected| + |annotation|); NaN for texts without annotation."""
    both, chosen, marked = (part.flatten(1).sum(-1) for part in (selected & annotation, selected, annotation))
    return (2 * both / (chosen + marked)).masked_fill(marked == 0, torch.nan)
