"""`rationalizer doctor`: complete, anonymous, and never an error."""

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

import rationalizer
from rationalizer.cli import doctor
from tests.cli.calls import run

KEYS = {
    *("rationalizer", "python", "platform", "packages", "extras", "cores", "torch_threads", "cuda_version", "devices"),
    *("triton", "kernel_compilation", "kernel_cache", "data_cache"),
}


def report():
    return json.loads(run("doctor", "--json").stdout)


def test_facts():
    facts = report()
    assert set(facts) == KEYS
    assert facts["rationalizer"] == rationalizer.__version__
    assert facts["packages"]["torch"] == metadata.version("torch")
    assert facts["torch_threads"] == torch.get_num_threads()
    assert facts["cores"]["usable"] >= 1
    assert len(facts["devices"]) >= torch.cuda.device_count()
    assert facts["extras"]["transformers"] == "installed"
    assert not set(facts["extras"]) & {"test", "docs", "bench"}
    assert "unavailable" not in json.dumps(facts)


def test_text_has_every_fact():
    printed = run("doctor").stdout
    for name in KEYS:
        assert f"{name.replace('_', ' ')}: " in printed or f"{name}:\n" in printed
    assert f"  torch: {metadata.version('torch')}\n" in printed


def test_missing_package(monkeypatch):
    installed = metadata.version

    def version(name):
        if name in ("transformers", "torch"):
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "version", version)
    facts = report()
    assert facts["packages"]["transformers"] == "not installed"
    assert facts["extras"]["transformers"] == "not installed: transformers"
    assert "  transformers: not installed\n" in run("doctor").stdout


@pytest.mark.parametrize("name", ["torch", "numba"])
def test_broken_installation_is_reported(name):
    code = f"import sys; sys.modules[{name!r}] = None; from rationalizer.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "doctor", "--json"], capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)
    assert set(facts) == KEYS
    affected = {"torch": "torch_threads", "numba": "kernel_compilation"}[name]
    assert facts[affected].startswith("unavailable (ModuleNotFoundError")
    assert name in facts[affected]


def test_untested_numba_version(monkeypatch):
    from rationalizer.ops.kernels import numba_runtime

    assert report()["kernel_compilation"] == "fast"
    monkeypatch.setattr(numba_runtime, "fast_compiler", lambda: None)
    assert report()["kernel_compilation"].startswith("plain")


def test_kernels_that_are_not_compiled(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = subprocess.run([sys.executable, "-m", "rationalizer", "doctor", "--json"], capture_output=True, check=True)
    facts = json.loads(done.stdout)
    assert "NUMBA_DISABLE_JIT" in facts["kernel_compilation"]
    assert "NUMBA_DISABLE_JIT" in facts["kernel_cache"]


def test_kernel_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-m", "rationalizer", "doctor", "--json"], capture_output=True, check=True)
    assert tmp_path.name in json.loads(done.stdout)["kernel_cache"]


def test_home_and_user_are_hidden(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "alice"))
    monkeypatch.setenv("LOGNAME", "alice")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert Path(report()["data_cache"]) == Path("~/.cache/rationalizer")
    monkeypatch.setenv("XDG_CACHE_HOME", "/scratch/alice/cache")
    assert Path(report()["data_cache"]) == Path("/scratch/USER/cache/rationalizer")
    assert doctor._anonymize("/scratch/alice-2/x") == "/scratch/alice-2/x"


def test_command_is_imported_without_torch():
    code = "import sys, rationalizer.cli.doctor; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
