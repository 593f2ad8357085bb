"""What a model runs on, under one name everywhere: auto, cpu, cuda, cuda:1, mps."""

from __future__ import annotations

from typing import Any

import torch


def check_device(name: str) -> str:
    """The device as PyTorch calls it; an error where there is none of this name."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (number and not number.isdecimal()):
        raise ValueError(f"there is no device {name!r}; known are auto, cpu, cuda, cuda:1 and so on, mps")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise ValueError(f"PyTorch finds {torch.cuda.device_count()} CUDA devices, but the device is {name}; use cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ValueError("PyTorch finds no Apple GPU, but the device is mps; use cpu")
    return name


def accelerator_settings(name: str, devices: int | str = 1) -> dict[str, Any]:
    """What Lightning's Trainer calls a device, and how many of them."""
    kind, _, number = check_device(name).partition(":")
    count: Any = int(devices) if str(devices).lstrip("-").isdecimal() else devices
    if number:
        if count != 1:
            raise ValueError(f"{name} is one device, but devices={devices} asks for others; leave one out")
        count = [int(number)]
    return {"accelerator": kind, "devices": count}
