"""Several processes that train one model: started by Fabric, torchrun, Slurm or Ray Train, one for each device.

Every batch is split among them (`batches.Shard`), so that together they take the steps of a single process. Only the
first process writes; all others read its files, or need none.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Self, TypeVar

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.single_device import SingleDeviceStrategy
from lightning_fabric.strategies.strategy import Strategy
from lightning_fabric.utilities.exceptions import MisconfigurationException

from rationalizer.models.atomic_files import clear_leftovers
from rationalizer.models.config import Config
from rationalizer.training.folder_lock import lock_folder

T = TypeVar("T")
RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK")  # set by whatever starts processes that work together
STRATEGIES = ("auto", "ddp", "ddp_find_unused_parameters_true")
LOST = (
    "another process of this training has ended or cannot be reached; its own message is above. Checkpoints are kept: "
    "resume from the last one with the same command and --resume, in Python with resume=True"
)


def is_first_process(devices: Any = 1, num_nodes: int = 1) -> bool:
    """Return whether this process writes. Slurm numbers the tasks of any job: its number counts only if the training
    has several devices."""
    several = str(devices) != "1" or num_nodes > 1
    return all(os.environ.get(name, "0") == "0" for name in (*RANKS, *(("SLURM_PROCID",) if several else ())))


@contextmanager
def exclusive_folder(directory: Path | None, *, is_first: bool) -> Iterator[None]:
    """Lock the run's folder for this training. The first of several processes locks it for all."""
    if directory is None or not is_first:
        yield
        return
    with lock_folder(directory):
        clear_leftovers(directory)
        yield


def on_gpu(accelerator: str) -> bool:
    return accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()


def on_cpu(accelerator: str) -> bool:
    return accelerator in ("auto", "cpu") and not on_gpu(accelerator)


def build_fabric(config: Config, **settings: Any) -> Fabric:
    """Return the Fabric of a run; ValueError before anything is written, and before processes are started.

    Args:
        config: the settings of the training.
        settings: `accelerator`, `devices`, `num_nodes`, `precision`, `strategy`, as for `lightning_fabric.Fabric`.
    """
    _check_devices(settings["accelerator"], settings["devices"], settings["num_nodes"])
    if str(settings["precision"]) in ("16-true", "bf16-true"):
        raise ValueError(f"precision={settings['precision']!r} is too low for the exact layers; use bf16-mixed")
    strategy = settings["strategy"]
    if isinstance(strategy, str) and strategy not in STRATEGIES:
        raise ValueError(f"unknown strategy {strategy!r} for training; use auto or ddp")
    try:
        fabric = Fabric(**settings)
        if isinstance(fabric.strategy, DDPStrategy) and not isinstance(strategy, Strategy):
            # Generators get no gradient in epochs on whole texts. Buffers, among them all word vectors, are equal in
            # all processes without being sent (see `Method.global_mean`).
            unused = (
                config.objective_options.get("full_text_epochs", 0) > 0 or "find_unused_parameters_true" in strategy
            )
            ddp = DDPStrategy(find_unused_parameters=unused, broadcast_buffers=False)
            fabric = Fabric(**{**settings, "strategy": ddp})
    except (TypeError, ValueError, RuntimeError, MisconfigurationException) as error:
        given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        raise ValueError(f"Lightning cannot train with {given}: {error}") from None
    if not isinstance(fabric.strategy, (DDPStrategy, SingleDeviceStrategy)):
        # Checkpoints need the whole model in every process.
        raise ValueError(f"unsupported strategy {strategy!r}; use auto or ddp")
    if torch.distributed.is_torchelastic_launched() and fabric.world_size != int(os.environ["WORLD_SIZE"]):
        raise ValueError(
            f"torchrun has started {os.environ['WORLD_SIZE']} processes, but devices × nodes is {fabric.world_size}; "
            "set --devices to the number of processes on each node, and --nodes to the number of nodes"
        )
    if config.batch_tokens is None and config.batch_size < fabric.world_size:
        raise ValueError(
            f"cannot split a batch of {config.batch_size} among {fabric.world_size} processes; use fewer devices, or a "
            "larger batch_size"
        )
    return fabric


def _check_devices(accelerator: str, devices: Any, num_nodes: int) -> None:
    if isinstance(devices, int):
        cores = os.cpu_count() or 1
        if devices == 0 or devices < -1 or (on_cpu(accelerator) and devices == -1):
            raise ValueError(f"devices must be at least 1, or -1 for all GPUs, got {devices}")
        if on_cpu(accelerator) and devices > cores:
            raise ValueError(f"devices={devices}, but this machine has {cores} CPU cores; use fewer")
    if num_nodes < 1:
        raise ValueError(f"the number of nodes must be at least 1, got {num_nodes}")


def require_agreement(settings: Mapping[str, Any]) -> None:
    """Raise ValueError in all processes if one has other data, settings or checkpoints than the first."""
    all_settings: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(all_settings, dict(settings))
    first = all_settings[0]
    for rank, other in enumerate(all_settings):
        key = next((key for key in {**first, **other} if first.get(key) != other.get(key)), None)
        if key is not None:
            raise ValueError(
                f"process {rank} trains with {key} = {other.get(key)!r}, process 0 with {key} = {first.get(key)!r}; "
                "give all processes the same data and settings, and a run folder that all of them can read"
            )


def gather_items(own: Mapping[int, T]) -> dict[int, T]:
    """Return the entries of all processes' dictionaries."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return dict(own)
    parts: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(parts, dict(own))
    return {key: value for part in parts for key, value in part.items()}


class Termination:
    """End the training after the current batch when SIGTERM arrives, with the exit code that shells use, 143."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.received = False
        self.previous: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python allows handlers there only
            self.previous = signal.signal(signal.SIGTERM, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGTERM, self.previous)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if not self.received:
            for process in getattr(self.fabric.strategy.launcher, "procs", ()):
                process.send_signal(number)
        self.received = True
        if callable(self.previous):
            self.previous(number, frame)

    def exit_if_received(self) -> None:
        if self.received:
            raise SystemExit(128 + signal.SIGTERM)


@contextmanager
def report_lost_processes() -> Iterator[None]:
    """Replace the errors of a broken connection by one that says that another process has ended."""
    # Fabric kills this process seconds after one that it has started has failed, and reports that in its log only.
    observer = logging.getLogger("lightning_fabric.strategies.launchers.subprocess_script")
    handler, before = _LostProcessHandler(), (observer.level, observer.propagate)
    observer.addHandler(handler)
    observer.setLevel(logging.INFO)
    observer.propagate = False
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.distributed.DistError) and "gloo" not in str(error):
            raise
        raise ConnectionError(LOST) from error
    finally:
        observer.setLevel(before[0])
        observer.propagate = before[1]
        observer.removeHandler(handler)


class _LostProcessHandler(logging.StreamHandler[Any]):
    """Writes to standard error."""

    def format(self, record: logging.LogRecord) -> str:
        return f"error: {LOST}"


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Hide Lightning's remarks on hardware and workers."""
    logger = logging.getLogger("lightning_fabric")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"lightning_fabric.*")
            yield
    finally:
        logger.setLevel(level)
