import json
import os

import pytest
import torch

from rationalizer.models import atomic_files as files


def test_tensors_and_state_round_trip(tmp_path):
    tensors = {"a": torch.randn(3, 2).t(), "b": torch.arange(4), "c": torch.tensor(1.5)}
    files.write_tensors(tmp_path / "x.safetensors", tensors, {"epoch": 3, "loss": 0.1 + 0.2})
    read, state = files.read_tensors(tmp_path / "x.safetensors")
    assert state == {"epoch": 3, "loss": 0.1 + 0.2}
    assert all(torch.equal(read[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch, call):
    path = tmp_path / "value.json"
    files.write_json(path, {"old": 1})

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="no space"):
        files.write_json(path, {"new": 2})
    assert json.loads(path.read_text()) == {"old": 1}
    assert os.listdir(tmp_path) == ["value.json"]


def test_damaged_files_are_named(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\x80\x04pickle?")
    with pytest.raises(ValueError, match="not a safetensors file"):
        files.read_tensors(path)
    with pytest.raises(ValueError, match="x is not JSON"):
        files.read_json(path)
