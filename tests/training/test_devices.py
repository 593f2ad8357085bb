"""One rule for devices: `device` has the same names and the same default everywhere."""

import inspect

import pytest
import torch
from typer.main import get_command

from rationalizer import Rationalizer
from rationalizer.cli import app
from rationalizer.models import TrainedModel
from rationalizer.models.devices import accelerator_settings, check_device
from rationalizer.server import load_models
from rationalizer.training import train

FUNCTIONS = [Rationalizer.fit, Rationalizer.load, TrainedModel.load, train, load_models]


def test_default_is_the_same_everywhere():
    for function in FUNCTIONS:
        parameters = inspect.signature(function).parameters
        assert parameters["device"].default == "auto", function
        assert "accelerator" not in parameters
    defaults = {
        name: option.default
        for name, command in get_command(app).commands.items()
        for option in command.params
        if option.name == "device"
    }
    assert defaults == dict.fromkeys(
        ["train", "compare", "evaluate", "audit", "explain", "annotate", "verify", "serve", "hans"], "auto"
    )


@pytest.mark.parametrize(
    ("cuda", "mps", "device"), [(0, False, "cpu"), (2, False, "cuda"), (0, True, "mps"), (1, True, "cuda")]
)
def test_names(monkeypatch, cuda, mps, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert check_device("auto") == device
    assert accelerator_settings("auto") == {"accelerator": device, "devices": 1}
    assert accelerator_settings("cpu", "4") == {"accelerator": "cpu", "devices": 4}
    for name, exists in {"cpu": True, "cuda": cuda > 0, "cuda:1": cuda > 1, "mps": mps, "gpu": False}.items():
        if exists:
            assert check_device(name) == name
        else:
            with pytest.raises(ValueError, match=name):
                check_device(name)
    if cuda > 1:
        assert accelerator_settings("cuda:1") == {"accelerator": "cuda", "devices": [1]}
        with pytest.raises(ValueError, match="contradicts"):
            accelerator_settings("cuda:1", 2)


def test_unknown_device_raises(spectra_run):
    for call in (
        lambda: Rationalizer().fit(["a", "b"] * 4, [0, 1] * 4, device="tpu"),
        lambda: Rationalizer.load(spectra_run, "tpu"),
        lambda: TrainedModel.load(spectra_run, "tpu"),
    ):
        with pytest.raises(ValueError, match="tpu"):
            call()
