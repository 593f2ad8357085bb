"""What can change the last bits of a prediction: versions of packages, processor, device, settings."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from rationalizer import __version__
from rationalizer.models.trained_model import TrainedModel

PACKAGES = ("torch", "numpy", "numba", "llvmlite", "regex")
# Environment variables that choose other instructions, and so other roundings.
SETTINGS = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "NUMBA_CPU_FEATURES",
    "NUMBA_CPU_NAME",
    "NUMBA_DISABLE_JIT",
    "ONEDNN_MAX_CPU_ISA",
)


def package_versions(trained: TrainedModel) -> dict[str, str]:
    """Return the versions of the packages that a prediction of this model uses."""
    names = list(PACKAGES)
    if trained.encoder.loads_pretrained:
        names += ["transformers", "tokenizers"]
    if trained.encoder.rule == "segments":
        names.append("budoux")
    versions = {"rationalizer": __version__, "python": platform.python_version()}
    return versions | {name: _version(name) for name in names}


def _version(name: str) -> str:
    # PyTorch's metadata may lack the build, as in 2.5.0+cpu.
    return str(torch.__version__) if name == "torch" else metadata.version(name)


def machine_facts(trained: TrainedModel) -> dict[str, Any]:
    """Return what can change the bits of a prediction, besides versions: processor, libraries, device, settings."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "libraries": ", ".join(_libraries()),
        "device": _device(trained.device),
        "dtype": str(next(trained.model.parameters()).dtype).removeprefix("torch."),
        "settings": {name: os.environ[name] for name in SETTINGS if name in os.environ},
    }


@cache
def _processor() -> str:
    """The processor's name, and a hash of its features: virtual machines hide features behind one name."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    digest = hashlib.sha256(features.encode()).hexdigest()[:12]
    return f"{_name()} ({llvm.get_host_cpu_name()}, features {digest})"


def _name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):  # not Linux, or no x86
        return platform.processor() or platform.machine()


def _libraries() -> list[str]:
    backends: Any = torch.backends  # without types
    available = {
        "MKL": backends.mkl.is_available(),
        "oneDNN": backends.mkldnn.is_available() and backends.mkldnn.enabled,
        "OpenMP": backends.openmp.is_available(),
    }
    return [name for name, is_used in available.items() if is_used]


def _device(device: torch.device) -> str:
    if device.type != "cuda":
        return device.type
    facts, cudnn = torch.cuda.get_device_properties(device), torch.backends.cudnn
    version = cudnn.version() or "none"  # type: ignore[no-untyped-call]
    return f"{facts.name}, capability {facts.major}.{facts.minor}, CUDA {torch.version.cuda}, cuDNN {version}"
