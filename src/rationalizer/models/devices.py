"""Names of devices: auto, cpu, cuda, cuda:1, mps; and the number of CPU threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

DEFAULT_THREADS = torch.get_num_threads()
VARIABLE = "OMP_NUM_THREADS"  # with which users choose the number of threads


def check_device(name: str) -> str:
    """Return PyTorch's name of the device; ValueError if it does not exist."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (number and not number.isdecimal()):
        raise ValueError(f"unknown device {name!r}; use auto, cpu, cuda, cuda:1 (and so on) or mps")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise ValueError(f"PyTorch finds {torch.cuda.device_count()} CUDA devices, but the device is {name}; use cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ValueError("PyTorch finds no Apple GPU, but the device is mps; use cpu")
    return name


@contextmanager
def set_threads(number: int | None) -> Iterator[None]:
    """Use this number of threads in PyTorch and in the layers; None changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def inference_threads(*, uses_threads: bool) -> AbstractContextManager[None]:
    """The number of threads for a model's predictions: those of PyTorch for large models; one for small ones, unless
    the user has chosen a number. Threads of a small model wait for one another at every operation, and for seconds if
    other programs use the cores."""
    chosen = VARIABLE in os.environ or torch.get_num_threads() != DEFAULT_THREADS
    return set_threads(None if uses_threads or chosen else 1)


def accelerator_settings(name: str, devices: int | str = 1) -> dict[str, Any]:
    """Return the arguments `accelerator` and `devices` of Lightning Fabric."""
    kind, _, number = check_device(name).partition(":")
    count: Any = int(devices) if str(devices).lstrip("-").isdecimal() else devices
    if number:
        if count != 1:
            raise ValueError(f"device {name} contradicts devices={devices}; leave one out")
        count = [int(number)]
    return {"accelerator": kind, "devices": count}
