"""Predictions whose bits do not depend on batch neighbours, on the number of threads or on global settings.

Matrix products sum in another order for another batch size, length of padding or number of threads, which changes the
last digits of a probability. A decision record is made and replayed in one fixed way: each text in a batch of its own,
on one thread, in full single precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

import torch

from rationalizer.inference.predict import OnBatch, Predictions, predict
from rationalizer.models.devices import set_threads
from rationalizer.models.trained_model import TrainedModel
from rationalizer.text import AnyExample, Budget
from rationalizer.training.denormals import denormals_are_zero

_settings_lock = Lock()  # the settings of PyTorch are those of the whole process


def predict_canonically(
    trained: TrainedModel,
    examples: Sequence[AnyExample],
    *,
    budget: Budget | float | str | None = None,
    constraints: Any = None,
    on_batch: OnBatch | None = None,
) -> Predictions:
    """As `inference.predict`, but with the same bits in any company, on any number of threads."""
    with canonical_settings(trained.device):
        return predict(trained, examples, budget=budget, constraints=constraints, batch_size=1, on_batch=on_batch)


@contextmanager
def canonical_settings(device: torch.device) -> Iterator[None]:
    """Set whatever changes the bits of a prediction to one fixed value, and restore it at the end."""
    with _settings_lock, ExitStack() as stack:
        stack.enter_context(set_threads(1))
        stack.enter_context(_highest_precision())
        stack.enter_context(_denormals_kept())
        stack.enter_context(torch.autocast(device.type, enabled=False))
        if device.type == "cuda":
            flags = torch.backends.cudnn.flags
            stack.enter_context(flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False))
        yield


@contextmanager
def _highest_precision() -> Iterator[None]:
    """Multiply matrices in full single precision."""
    before = torch.get_float32_matmul_precision()
    if before != "highest":
        torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        if before != "highest":
            torch.set_float32_matmul_precision(before)


@contextmanager
def _denormals_kept() -> Iterator[None]:
    flushed = denormals_are_zero()
    if flushed:
        torch.set_flush_denormal(False)
    try:
        yield
    finally:
        if flushed:
            torch.set_flush_denormal(True)
