"""Models on the Hugging Face Hub: the real client with a fake server."""

import json
import os
import pickle
import shutil
import socket
import sys

import numpy as np
import pytest

from rationalizer import Rationalizer
from rationalizer.models.atomic_files import read_record, write_record
from rationalizer.training.runs import SCORES
from tests.cli.calls import refused, run
from tests.hub.hub_server import serving

huggingface_hub = pytest.importorskip("huggingface_hub", reason='the extra "hub" is not installed')
TEXTS = ["We found very rude careless neglect. It was our first visit.", "There was truly lovely friendly care."]


def connect(monkeypatch, address, folder):
    """Point the client to another server; it has read its environment at import."""
    constants = huggingface_hub.constants
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # large files by Git LFS, not by Xet storage
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(folder / "no-token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with serving() as hub:
        connect(monkeypatch, hub.address, tmp_path / "cache")
        monkeypatch.chdir(tmp_path)
        yield hub


@pytest.fixture
def model(spectra_run):
    return Rationalizer.load(spectra_run)


def test_push_and_load(hub, model):
    address = model.push_to_hub("org/mine", token="secret")
    assert address.startswith(f"{hub.address}/org/mine/commit/")
    files = hub.repositories["org/mine"]["main"]
    assert set(files) >= {
        "config.json",
        "encoder.json",
        "model.safetensors",
        "history.json",
        "scores.json",
        "README.md",
    }
    assert b"Rationalizer.load('org/mine')" in files["README.md"]
    back = Rationalizer.load("org/mine")
    np.testing.assert_array_equal(back.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert [one.spans for one in back.explain(TEXTS)] == [one.spans for one in model.explain(TEXTS)]


def test_local_paths_are_not_uploaded(hub, spectra_run, tmp_path):
    folder = shutil.copytree(spectra_run, tmp_path / "run")
    record = read_record(folder / SCORES)
    record["data"]["source"] |= {"source": str(tmp_path / "secret.csv")}
    write_record(folder / SCORES, record)
    Rationalizer.load(folder).push_to_hub("org/mine", token="secret")
    sent = b"".join(hub.repositories["org/mine"]["main"].values())
    assert b"macro_f1" in sent
    assert str(tmp_path).encode() not in sent


def test_revisions(hub, model):
    model.push_to_hub("org/mine", token="secret")
    model.budget = "50%"
    model.push_to_hub("org/mine", token="secret", revision="wider")
    assert str(Rationalizer.load("org/mine").budget) == "20%"
    for loaded in (Rationalizer.load("org/mine", revision="wider"), Rationalizer.load("org/mine@wider")):
        assert str(loaded.budget) == "50%"
    commit = hub.commit("org/mine", "main")
    assert str(Rationalizer.load("org/mine", revision=commit).budget) == "20%"
    with pytest.raises(OSError, match="v9"):
        Rationalizer.load("org/mine@v9")


def test_pickles_are_not_downloaded(hub, model):
    model.push_to_hub("org/mine", token="secret")

    class Harm:
        def __reduce__(self):
            return (os.mkdir, ("harmed",))

    hub.repositories["org/mine"]["main"] |= {"pytorch_model.bin": pickle.dumps(Harm()), "setup.py": b"raise SystemExit"}
    Rationalizer.load("org/mine")
    assert not {"pytorch_model.bin", "setup.py"} & set(hub.fetched)
    # A pickle under the name of the weights is refused unread.
    hub.repositories["org/mine"]["main"]["model.safetensors"] = pickle.dumps(Harm())
    with pytest.raises(ValueError, match="safetensors"):
        Rationalizer.load("org/mine")
    assert not os.path.exists("harmed")


def test_errors(hub, model):
    with pytest.raises(OSError, match="org/other"):
        Rationalizer.load("org/other")
    hub.refused.add("org/gated")
    with pytest.raises(OSError, match="hf auth login"):
        Rationalizer.load("org/gated")
    with pytest.raises(OSError, match="hf auth login"):
        model.push_to_hub("org/mine")
    hub.repositories["org/else"] = {"main": {"config.json": b"{}", "pytorch_model.bin": b"x"}}
    with pytest.raises(ValueError, match=r"config\.json"):
        Rationalizer.load("org/else")


def test_folder_takes_precedence(hub, model, tmp_path):
    model.save(tmp_path / "org" / "mine")
    assert str(Rationalizer.load("org/mine").budget) == "20%"
    with pytest.raises(FileNotFoundError, match="org/typo"):
        Rationalizer.load("org/typo")
    assert not hub.fetched


def test_offline(monkeypatch, tmp_path, model):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    connect(monkeypatch, f"http://127.0.0.1:{port}", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    remedy = r"org/mine.*connection"
    with pytest.raises(OSError, match=remedy):
        Rationalizer.load("org/mine")
    with pytest.raises(OSError, match=remedy):
        model.push_to_hub("org/mine", token="secret")


def test_missing_package(monkeypatch, tmp_path, model):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ImportError, match="huggingface_hub"):
        Rationalizer.load("org/mine")


def test_command_line(hub, model):
    model.push_to_hub("org/mine", token="secret")
    done = run("explain", "org/mine", TEXTS[0], "--format", "jsonl")
    assert json.loads(done.stdout)["label"] == model.predict(TEXTS)[0]
    assert "no model of that name on the Hugging Face Hub" in refused("explain", "org/other", TEXTS[0])
