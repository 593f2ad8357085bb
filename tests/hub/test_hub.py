"""Models on the Hugging Face Hub: the real client with a fake server."""

import json
import os
import pickle
import socket
import sys

import numpy as np
import pytest

from rationalizer import Rationalizer
from tests.cli.calls import refused, run
from tests.hub.hub_server import serving

file_download = pytest.importorskip("huggingface_hub.file_download", reason='the extra "hub" is not installed')
constants = pytest.importorskip("huggingface_hub.constants", reason='the extra "hub" is not installed')
TEXTS = ["We found very rude careless neglect. It was our first visit.", "There was truly lovely friendly care."]


def connect(monkeypatch, address, folder):
    """Point the client to another server; it has read its environment at import."""
    monkeypatch.setattr(constants, "ENDPOINT", address)
    for module in (constants, file_download):  # old versions have a copy there
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(module, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    # Large files by Git LFS, not by Xet storage, which old versions do not know.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True, raising=False)
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
    assert b'Rationalizer.load("org/mine")' in files["README.md"]
    back = Rationalizer.load("org/mine")
    np.testing.assert_array_equal(back.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert [one.spans for one in back.explain(TEXTS)] == [one.spans for one in model.explain(TEXTS)]


SENTENCES = [
    f"The {noun} was {word} on day {k}." for k in range(15) for noun, word in (("room", "fine"), ("bath", "bad"))
]


@pytest.fixture
def private_run(tmp_path):
    """A run with texts, data, word vectors and a cache in folders that must stay private."""
    home = tmp_path / "home" / "jane-doe"
    (home / "customers").mkdir(parents=True)
    words = ["the", "room", "was", "fine", "on", "day", "bath", "bad"]
    vectors = home / "vectors.txt"
    vectors.write_text("".join(f"{word} {' '.join(str(len(word) + k) for k in range(8))}\n" for word in words))
    data = home / "customers" / "complaints-2024.csv"
    data.write_text("text,label\n" + "".join(f"{text},{k % 2}\n" for k, text in enumerate(SENTENCES)))
    options = ["--set", "hidden=8", "--set", "epochs=2", "--embeddings", str(vectors), "--out", str(home / "run")]
    run("train", str(data), *options)
    return home / "run"


def assert_nothing_private(files, home):
    everything = b"\n".join(files.values()) + "\n".join(files).encode()
    for private in (str(home), home.name, os.path.expanduser("~"), "complaints-2024", "customers", *SENTENCES):
        assert private.encode() not in everything, private


def test_texts_and_paths_are_not_uploaded(hub, private_run):
    model = Rationalizer.load(private_run)
    kept = "".join(path.read_text(encoding="utf-8") for path in private_run.glob("*.json"))
    assert str(private_run.parent) in kept  # the folder itself keeps them
    assert any(text in kept for text in SENTENCES)
    model.push_to_hub("org/mine", token="secret")
    files = hub.repositories["org/mine"]["main"]
    assert_nothing_private(files, private_run.parent)
    assert "examples.json" not in files
    assert b"macro_f1" in files["scores.json"]
    assert b'"vectors.txt"' in files["config.json"]
    back = Rationalizer.load("org/mine")
    np.testing.assert_array_equal(back.predict_proba(SENTENCES), model.predict_proba(SENTENCES))


def test_save_says_what_it_keeps(private_run, tmp_path, recwarn):
    model = Rationalizer.load(private_run)
    model.save(tmp_path / "copy")
    (said,) = [str(one.message) for one in recwarn if "The folder keeps" in str(one.message)]
    for kept in ("texts of the data", "examples.json", "paths in config.json", "origin of the data in scores.json"):
        assert kept in said
    nothing = Rationalizer(keep_examples=0, epochs=1, hidden=4, vector_size=4, embeddings="none")
    nothing.fit(SENTENCES, [0, 1] * 15).save(tmp_path / "nothing")
    assert len([one for one in recwarn if "The folder keeps" in str(one.message)]) == 1


def test_examples_are_uploaded_if_asked_for(hub, private_run):
    Rationalizer.load(private_run).push_to_hub("org/mine", token="secret", include_examples=True)
    files = dict(hub.repositories["org/mine"]["main"])
    examples = files.pop("examples.json")
    assert any(text.encode() in examples for text in SENTENCES)
    assert_nothing_private(files, private_run.parent)


def test_the_folder_of_an_encoder_is_not_uploaded(hub, tmp_path):
    pytest.importorskip("transformers")
    from tests.nn.tiny_transformers import write_encoder

    home = tmp_path / "home" / "jane-doe"
    (home / "bilstm").mkdir(parents=True)  # also the name of an encoder of the package
    encoder = write_encoder(home / "bilstm")
    model = Rationalizer(encoder=str(encoder), epochs=1).fit(SENTENCES, [0, 1] * 15, run_dir=home / "run")
    model.push_to_hub("org/mine", token="secret")
    assert_nothing_private(hub.repositories["org/mine"]["main"], home)
    model.save(tmp_path / "saved")
    assert_nothing_private({"README.md": (tmp_path / "saved" / "README.md").read_bytes()}, home)
    back = Rationalizer.load("org/mine")
    np.testing.assert_array_equal(back.predict_proba(SENTENCES), model.predict_proba(SENTENCES))


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
