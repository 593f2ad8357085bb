"""The CUDA kernels' logic, checked where there is no GPU: Triton interprets them on small CPU tensors."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_highlight_kinds():
    command = [sys.executable, "-m", "tests.ops.interpreted_highlights"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout}{done.stderr[-3000:]}"
