"""`rationalizer doctor`."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import warnings
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from rationalizer import __version__
from rationalizer.cli.base import command

MISSING = "not installed"
PACKAGES = (
    *("torch", "numpy", "numba", "llvmlite", "triton", "pyarrow", "entmax", "lightning-fabric", "safetensors"),
    *("transformers", "tokenizers", "peft", "huggingface_hub", "datasets", "pandas", "scikit-learn", "tensorboard"),
    *("fastapi", "uvicorn", "ray", "submitit", "openpyxl", "captum", "budoux"),
)
DEVELOPMENT = ("bench", "docs", "test")  # extras that no user needs


@command("rationalizer doctor", "rationalizer doctor --json")
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Print versions, devices, threads, caches and extras, to paste into a bug report; no user name, no home folder."""
    facts = collect_environment()
    typer.echo(json.dumps(facts, indent=1, ensure_ascii=False) if as_json else "\n".join(_lines(facts)))


def collect_environment() -> dict[str, Any]:
    """Return the facts as plain values, ready for JSON; the reason, if a fact is unavailable."""
    facts = {
        "rationalizer": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": _attempt(platform.platform),
        "packages": {name: _version(name) for name in PACKAGES},
        "extras": _attempt(_extras),
        "cores": _attempt(_cores),
        "torch_threads": _attempt(lambda: import_module("torch").get_num_threads()),
        "cuda_version": _attempt(lambda: import_module("torch").version.cuda or "none"),
        "devices": _attempt(_devices),
        "triton": _attempt(_triton),
        "kernel_compilation": _attempt(_kernel_compilation),
        "kernel_cache": _attempt(_kernel_cache),
        "data_cache": _attempt(lambda: str(import_module("rationalizer.data.streaming").default_cache())),
    }
    return {name: _anonymize(fact) for name, fact in facts.items()}


def _attempt(function: Callable[[], Any]) -> Any:
    """Return the value, or the error as text: bug reports are often about broken installations."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function()
    except Exception as error:
        return f"unavailable ({type(error).__name__}: {' '.join(str(error).split())[:300]})"


def _version(name: str) -> str:
    try:
        return metadata.version(name) or "unknown"
    except metadata.PackageNotFoundError:
        return MISSING
    except Exception as error:  # damaged metadata
        return f"unknown ({type(error).__name__})"


def _extras() -> dict[str, str]:
    """For each extra, whether all of its packages are installed."""
    packages: dict[str, list[str]] = {}
    for requirement in metadata.requires("rationalizer") or []:
        name, extra = re.match(r"[\w.-]+", requirement), re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        if name and extra and extra[1] not in DEVELOPMENT:
            packages.setdefault(extra[1], []).append(name[0])
    missing = {extra: [name for name in names if _version(name) == MISSING] for extra, names in packages.items()}
    return {extra: f"{MISSING}: {', '.join(names)}" if names else "installed" for extra, names in missing.items()}


def _cores() -> dict[str, int | None]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"machine": os.cpu_count(), "usable": usable}


def _devices() -> list[str]:
    import torch

    devices = []
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        device = torch.cuda.get_device_properties(index)
        memory = device.total_memory / 2**30
        devices.append(f"cuda:{index} {device.name}, {memory:.0f} GiB, capability {device.major}.{device.minor}")
    if torch.backends.mps.is_available():
        devices.append("mps")
    return devices


def _triton() -> str:
    import torch

    if _version("triton") == MISSING:
        return MISSING
    if not torch.cuda.is_available():
        return "installed, no CUDA device"
    from rationalizer.ops._declare import has_triton

    return "runs" if has_triton() else "cannot run: ops on CUDA tensors use slower implementations"


def _kernel_compilation() -> str:
    from numba.core import config

    from rationalizer.ops.kernels.numba_runtime import TESTED, fast_compiler

    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return "none (NUMBA_DISABLE_JIT is set): kernels run as slow Python"
    if fast_compiler() is not None:
        return "fast"
    return f"plain: takes 2.4 times as long; fast with Numba {TESTED[0]} to {TESTED[-1]}"


def _kernel_cache() -> Any:
    # Numba chooses the folder for each kernel: NUMBA_CACHE_DIR, else beside the sources, else the user's cache.
    compiled = import_module("rationalizer.ops.kernels.budget_cpu").budget_rows
    if not hasattr(compiled, "py_func"):
        return "none (NUMBA_DISABLE_JIT is set)"
    path = getattr(compiled, "kernel", compiled).stats.cache_path
    return path or "none: no folder is writable, and every process compiles again"


def _anonymize(value: Any) -> Any:
    """Replace the home folder by ~ and, elsewhere in paths, the user's name by USER."""
    if isinstance(value, dict):
        return {name: _anonymize(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_anonymize(entry) for entry in value]
    if not isinstance(value, str):
        return value
    for home in _homes():
        value = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", value)
    try:
        user = re.escape(getpass.getuser())
    except Exception:  # a container's user without a name
        return value
    return re.sub(rf"(?<=[/\\]){user}(?![\w.-])", "USER", value)


def _homes() -> list[str]:
    try:
        home = Path.home()
        homes = {str(home), str(home.resolve())}
    except (RuntimeError, OSError):
        return []
    return [name for name in sorted(homes, key=len, reverse=True) if len(name) > 1]  # "/" in some containers


def _lines(facts: dict[str, Any]) -> list[str]:
    """One line for each fact; packages and extras are indented below their headings."""
    lines = []
    for name, fact in facts.items():
        title = name.replace("_", " ")
        if isinstance(fact, dict) and name != "cores":
            lines += [f"{title}:", *(f"  {key}: {value}" for key, value in fact.items())]
        elif isinstance(fact, dict):
            lines.append(f"{title}: {', '.join(f'{value} {key}' for key, value in fact.items())}")
        elif isinstance(fact, list):
            lines.append(f"{title}: {'; '.join(fact) or 'CPU only'}")
        else:
            lines.append(f"{title}: {fact}")
    return lines
