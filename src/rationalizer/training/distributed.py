"""Several processes that train one model together: started by Lightning, torchrun, Slurm or Ray, one for each device.

Every batch is shared out among them (`batch.Part`), so that they do what one process would have done, step by step.
The first one writes; all others find its files, or need none.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException
from pytorch_lightning.strategies import DDPStrategy, SingleDeviceStrategy, Strategy
from pytorch_lightning.strategies.launchers import _MultiProcessingLauncher

from rationalizer.models.atomic_files import clear_leftovers
from rationalizer.models.config import Config
from rationalizer.training.folder_lock import lock_folder

RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK")  # set where processes are started to work together
LOST = (
    "another process of this training has ended or cannot be reached; what it said of that stands above. What was "
    "saved stays: the same command with --resume, in Python resume=True, goes on from there"
)


def is_first_process(devices: Any = 1, num_nodes: int = 1) -> bool:
    """Of those that train together. Slurm numbers its tasks whatever they are for: they count if several devices are
    asked for."""
    several = str(devices) != "1" or num_nodes > 1
    return all(os.environ.get(name, "0") == "0" for name in (*RANKS, *(("SLURM_PROCID",) if several else ())))


@contextmanager
def exclusive_folder(directory: Path | None, *, first: bool) -> Iterator[None]:
    """The folder for this training only. Of several processes that train together, the first holds it for all."""
    if directory is None or not first:
        yield
        return
    with lock_folder(directory):
        clear_leftovers(directory)
        yield


def on_gpu(accelerator: str) -> bool:
    return accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()


def choose_strategy(config: Config, **settings: Any) -> Any:
    """Lightning's strategy for a training. What cannot be trained on is refused: before anything is written, and before
    a hundred processes are started.

    Args:
        config: of what is trained.
        settings: `accelerator`, `devices`, `num_nodes`, `precision`, `strategy` as of Lightning's Trainer.
    """
    accelerator, devices = settings["accelerator"], settings["devices"]
    if isinstance(devices, int):
        cores = os.cpu_count() or 1
        on_cpu = accelerator in ("auto", "cpu") and not on_gpu(accelerator)
        if devices == 0 or devices < -1 or (on_cpu and devices == -1):
            raise ValueError(f"devices must be at least 1, or -1 for all GPUs, got {devices}")
        if on_cpu and devices > cores:
            raise ValueError(f"{devices} devices were asked for, but this machine has {cores} CPU cores; use fewer")
    if settings["num_nodes"] < 1:
        raise ValueError(f"the number of nodes must be at least 1, got {settings['num_nodes']}")
    if str(settings["precision"]) in ("16-true", "bf16-true"):
        raise ValueError(f"the layers need more digits than precision={settings['precision']!r} keeps; use bf16-mixed")
    try:
        trainer = pl.Trainer(logger=False, enable_checkpointing=False, **settings)
    except (TypeError, ValueError, RuntimeError, MisconfigurationException) as error:
        given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        raise ValueError(f"Lightning cannot train with {given}: {error}") from None
    _check_strategy(trainer.strategy, settings["strategy"])
    if torch.distributed.is_torchelastic_launched() and trainer.world_size != int(os.environ["WORLD_SIZE"]):
        raise ValueError(
            f"torchrun has started {os.environ['WORLD_SIZE']} processes, but devices × nodes is {trainer.world_size}; "
            "give the number of its processes on each node as --devices, and of its nodes as --nodes"
        )
    if config.batch_tokens is None and config.batch_size < trainer.world_size:
        raise ValueError(
            f"a batch of {config.batch_size} cannot be shared out among {trainer.world_size} processes; use fewer "
            "devices, or a larger batch_size"
        )
    if isinstance(settings["strategy"], Strategy) or not isinstance(trainer.strategy, DDPStrategy):
        return settings["strategy"]
    # Nothing reaches the generator while whole texts are read. Buffers are the same everywhere by themselves (see
    # `Method.global_mean`), and among them are all word vectors.
    unreached = config.full_text_epochs > 0 or "find_unused_parameters_true" in settings["strategy"]
    return DDPStrategy(find_unused_parameters=unreached, broadcast_buffers=False)


def _check_strategy(strategy: Strategy, asked: Any) -> None:
    """Weights and checkpoints are whole in every process, and what was learned is in the process that asked for it."""
    whole = isinstance(strategy, (DDPStrategy, SingleDeviceStrategy))
    if not whole or isinstance(strategy.launcher, _MultiProcessingLauncher):
        raise ValueError(f"models are trained with the strategy auto or ddp, not with {asked!r}; leave it out")


def require_agreement(own: Mapping[str, Any]) -> None:
    """An error in all processes where one has other data, settings or checkpoints than the first."""
    each: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(each, dict(own))
    first = each[0]
    for number, other in enumerate(each):
        key = next((key for key in {**first, **other} if first.get(key) != other.get(key)), None)
        if key is not None:
            raise ValueError(
                f"process {number} trains with {key} = {other.get(key)!r}, process 0 with {key} = {first.get(key)!r}; "
                "give all processes the same data and settings, and a folder for the run that all of them can read"
            )


@contextmanager
def report_lost_processes() -> Iterator[None]:
    """An error that says so where another process is gone, instead of what is said about its connection."""
    # Lightning kills this process seconds after one that it has started has failed, and tells no one but its log.
    watcher = logging.getLogger("lightning_fabric.strategies.launchers.subprocess_script")
    told, before = _Told(), (watcher.level, watcher.propagate)
    watcher.addHandler(told)
    watcher.setLevel(logging.INFO)
    watcher.propagate = False
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.distributed.DistError) and "gloo" not in str(error):
            raise
        raise ConnectionError(LOST) from error
    finally:
        watcher.setLevel(before[0])
        watcher.propagate = before[1]
        watcher.removeHandler(told)


class _Told(logging.StreamHandler[Any]):
    """On standard error."""

    def format(self, record: logging.LogRecord) -> str:
        return f"error: {LOST}"
