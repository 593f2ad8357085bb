"""Damaged files raise an error in one line that names the file, the problem and the remedy."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
import torch

from rationalizer.compare.grid import PlannedRun, Variant
from rationalizer.compare.single_run import finished_record
from rationalizer.data import DataSource
from rationalizer.models import TrainedModel, configure
from rationalizer.models import atomic_files as files
from rationalizer.text.errors import InputError
from rationalizer.training import read_source, run, train
from tests.training.interrupted import SMALL, Killed, killed_after

SETTINGS = {**SMALL, "epochs": 1, "checkpoint_seconds": 0}


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A finished run."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    run(corpus, configure("spectra", SETTINGS), folder, source=DataSource.resolve("reviews"))
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


@pytest.fixture(scope="module")
def stopped(corpus, tmp_path_factory):
    """A run that was killed in its first epoch."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.MonkeyPatch.context() as patch:
        killed_after(patch, 4)
        with pytest.raises(Killed):
            train(corpus, configure("spectra", SETTINGS), folder)
    return folder


@pytest.fixture
def unfinished(stopped, tmp_path):
    return shutil.copytree(stopped, tmp_path / "unfinished")


def refused(message, call, *args, **options):
    with pytest.raises(ValueError, match=message) as caught:
        call(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def damage(path, how):
    content = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    if how == "flipped":
        content[(begin + len(content)) // 2] ^= 0x10
    else:
        content[begin:] = bytes(len(content) - begin)
    path.write_bytes(content)


def rewrite(path, change):
    """Change the content of a file and give it a valid checksum."""
    stored = json.loads(path.read_text())
    stored.pop("checksum", None)
    files.write_record(path, change(stored))


def without(*keys):
    return lambda stored: changed(stored, keys, lambda inner, key: inner.pop(key))


def having(*keys, value):
    return lambda stored: changed(stored, keys, lambda inner, key: inner.__setitem__(key, value))


def changed(stored, keys, change):
    inner = stored
    for key in keys[:-1]:
        inner = inner[key]
    change(inner, keys[-1])
    return stored


def planned_run(folder):
    return PlannedRun(DataSource.resolve("reviews"), Variant("spectra"), configure("spectra", SETTINGS), folder)


# Bits


@pytest.mark.parametrize("how", ["flipped", "zeroed"])
@pytest.mark.parametrize("name", ["model.safetensors", "vectors.safetensors"])
def test_damaged_model_raises(folder, name, how):
    damage(folder / name, how)
    refused(rf"{name} .*checksum.*; copy it again, or train again", TrainedModel.load, folder)


@pytest.mark.parametrize("how", ["flipped", "zeroed"])
def test_damaged_checkpoint_raises(corpus, unfinished, how):
    damage(unfinished / "checkpoint.safetensors", how)
    config = configure("spectra", SETTINGS)
    refused(r"checkpoint\.safetensors .*start again", train, corpus, config, unfinished, resume=True)
    (unfinished / "checkpoint.safetensors").unlink()
    train(corpus, config, unfinished, resume=True)


def with_every_bit_flipped(path, read):
    """Yield the content read after each change, or None if reading raises an error that names the file."""
    content = path.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
            try:
                found = read(path)
            except ValueError as error:
                found = None if path.name in str(error) else error
            yield found


def test_flipped_bit_in_tensors_is_detected(tmp_path):
    tensors = {"a": torch.randn(2, 3), "b": torch.arange(2), "c": torch.zeros(0), "d": torch.ones(2).bool()}
    path = tmp_path / "x.safetensors"
    files.write_tensors(path, tensors, {"epoch": 3})
    for found in with_every_bit_flipped(path, files.read_tensors):
        if found is not None:  # padding of the header has no meaning
            read, state = found
            assert state == {"epoch": 3}
            assert read.keys() == tensors.keys()
            assert all(read[name].dtype == t.dtype and torch.equal(read[name], t) for name, t in tensors.items())


def test_flipped_bit_in_a_record_is_detected(tmp_path):
    value = {"words": ["a", "ü"], "number": 0.1, "nested": {"on": True, "none": None}}
    files.write_record(tmp_path / "x.json", value)
    assert files.read_record(tmp_path / "x.json") == value
    assert all(found in (None, value) for found in with_every_bit_flipped(tmp_path / "x.json", files.read_record))


def test_edited_files_raise(folder):
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"20%"', '"30%"'))
    refused(r"config\.json .*edited by hand.*copy it again, or train again", TrainedModel.load, folder)


def test_tensors_without_checksum_raise(folder):
    import safetensors.torch

    safetensors.torch.save_file(safetensors.torch.load_file(folder / "model.safetensors"), folder / "model.safetensors")
    refused(r"model\.safetensors has no checksum", TrainedModel.load, folder)


@pytest.mark.parametrize("name", ["config.json", "encoder.json", "history.json"])
@pytest.mark.parametrize("content", ["[]", "null", "{}", '{"checksum": 3}', "[" * 100_000, "", "NaN"])
def test_invalid_json_content_raises(folder, name, content):
    (folder / name).write_text(content)
    refused(rf"{name} .*again", TrainedModel.load, folder)


# Keys

CONFIG = [
    (without("task"), "task is missing"),
    (without("config"), "config is missing"),
    (without("target"), "target is missing"),
    (having("task", value="regression"), "classes"),
    (having("task", value="guessing"), "task is 'guessing'"),
    (having("classes", value="ab"), "classes is 'ab', not a list"),
    (having("classes", value=[1, 2]), r"classes\[0\] is 1, not a text"),
    (having("target", value={"sigmoid": 3}), r"target\.sigmoid is 3, not true or false"),
    (having("target", value={"sigmoid": True, "other": 1}), r"target\.other is not known"),
    (having("label_type", value=None), "label_type is None"),
    (having("config", value=[]), r"config is \[\], not an object"),
    (without("config", "method"), r"config\.method"),
    (without("config", "options"), r"config\.options"),
    (without("config", "encoder_options", "hidden"), r"config\.encoder_options\.hidden is missing"),
    (without("config", "punctuation"), r"config\.punctuation is missing"),
    (having("config", "hiden", value=3), "there is no setting 'hiden'"),
    (having("config", "dropout", value="much"), "dropout must be a number"),
    (having("config", "seed", value=[]), "seed must be a whole number"),
    (having("config", "pairs", value=3), r"config\.pairs is 3"),
    (having("config", "encoder", value=3), "encoder must be a text"),
    (having("config", "method", value=["x"]), r"config\.method is \['x'\]"),
]


@pytest.mark.parametrize(("change", "message"), CONFIG)
def test_invalid_config_keys_raise(folder, change, message):
    rewrite(folder / "config.json", change)
    refused(rf"config\.json.*{message}.*copy it again, or train again", TrainedModel.load, folder)


ENCODER_FILE = [
    (without("rule"), "rule"),
    (having("rule", value=["words"]), "rule"),
    (without("vocabulary"), "'vocabulary' is missing"),
    (having("vocabulary", value=3), "a stored vocabulary"),
    (having("vocabulary", "words", value=["a", "a"]), "'a' comes several times"),
    (having("vector_size", value="64"), "vector_size is '64'"),
    (having("pretrained_words", value=None), "saved with None"),
    (having("other", value=3), "other is not known"),
]


@pytest.mark.parametrize(("change", "message"), ENCODER_FILE)
def test_invalid_encoder_keys_raise(folder, change, message):
    rewrite(folder / "encoder.json", change)
    refused(rf"encoder\.json.*{message}.*copy", TrainedModel.load, folder)


HISTORY = [
    *((without(key), f"{key} is missing") for key in ("score", "best", "best_epoch", "steps", "epochs", "data")),
    (having("epochs", value=3), "epochs is 3, not a list"),
    (having("epochs", value=[3]), r"epochs\[0\] is 3, not an object"),
    (having("epochs", 0, value={"loss": 1.0}), r"epochs\[0\]\.seconds"),
    (having("epochs", 0, value={"loss": "x", "seconds": 1}), r"epochs\[0\]\.loss is 'x', not a number"),
    (having("best", value="good"), "best is 'good', not a number or none"),
    (having("score", value="rouge"), "score is 'rouge'"),
    (having("versions", value=[]), r"versions is \[\]"),
]


@pytest.mark.parametrize(("change", "message"), HISTORY)
def test_invalid_history_keys_raise(folder, change, message):
    rewrite(folder / "history.json", change)
    refused(rf"history\.json.*{message}.*copy it again, or train again", TrainedModel.load, folder)


SCORES = [
    (without("config"), "config is missing"),
    (without("scores"), "scores is missing"),
    (without("findings"), "findings is missing"),
    (without("data", "source"), "source is missing"),
    (without("findings", "test"), r"findings"),
    (having("scores", value=[]), r"scores is \[\], not an object"),
    (having("scores", "test", value={"accuracy": "x"}), r"scores\.test\.accuracy is 'x', not a number"),
    (having("findings", "test", value=[{"kind": "x"}]), r"findings\.test\[0\]"),
    (having("data", value=None), "data is None"),
    (having("seconds", value="x"), "seconds is 'x'"),
]


@pytest.mark.parametrize(("change", "message"), SCORES)
def test_invalid_scores_keys_raise(folder, change, message):
    assert finished_record(planned_run(folder)) is not None
    rewrite(folder / "scores.json", change)
    refused(rf"scores\.json.*{message}.*delete it", finished_record, planned_run(folder))


DATA = [
    (without("source"), "source is missing"),
    (without("source", "columns"), r"source\.columns"),
    (having("source", "columns", value=[]), r"source\.columns is \[\]"),
    (having("source", "source", value=3), r"source\.source is 3, not a text"),
    (having("source", value="reviews"), "source is 'reviews'"),
]


@pytest.mark.parametrize(("change", "message"), DATA)
def test_invalid_data_keys_raise(folder, change, message):
    rewrite(folder / "data.json", change)
    refused(rf"data\.json.*{message}", read_source, folder)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("identity", None, "identity is missing"),
        ("progress", None, "progress is missing"),
        ("precision", None, "precision is missing"),
        ("progress", {"epoch": 1}, "progress.batch"),
        ("identity", [], "identity is"),
    ],
)
def test_invalid_checkpoint_keys_raise(corpus, unfinished, key, value, message):
    path = unfinished / "checkpoint.safetensors"
    tensors, state = files.read_tensors(path)
    state.pop(key)
    files.write_tensors(path, tensors, state if value is None else {**state, key: value})
    config = configure("spectra", SETTINGS)
    refused(rf"checkpoint\.safetensors.*{message}.*start again", train, corpus, config, unfinished, resume=True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epoch", -1),
        ("epoch", 1),  # of 1, and the run is not finished
        ("epoch", 2),
        ("batch", 6),  # an epoch has 6 batches
        ("batch", 2**70),
        ("step", 2**70),
        ("step", -1),
        ("unconverged", 2**70),
        ("loss", 10**400),
        ("best_epoch", 3),
        ("history", [{"loss": 1.0, "seconds": 1.0}]),
        ("threads", 0),
        ("threads", -1),
    ],
)
def test_impossible_progress_in_a_signed_checkpoint_raises(corpus, unfinished, key, value):
    """The checksum is valid: it detects damage, not forgery."""
    path, config = unfinished / "checkpoint.safetensors", configure("spectra", SETTINGS)
    tensors, state = files.read_tensors(path)
    state["progress"][key] = value
    files.write_tensors(path, tensors, state)
    with pytest.raises(InputError, match=rf"progress\.{key}") as raised:
        train(corpus, config, unfinished, resume=True)
    assert "start again" in raised.value.remedy


def test_invalid_checkpoint_types_raise(corpus, folder, unfinished):
    path, config = unfinished / "checkpoint.safetensors", configure("spectra", SETTINGS)
    tensors, state = files.read_tensors(path)
    shutil.copy(folder / "model.safetensors", path)
    refused(r"checkpoint\.safetensors .*start again", train, corpus, config, unfinished, resume=True)
    name = next(name for name in tensors if name.startswith("model."))
    moment = next(name for name in tensors if name.startswith("optimizer.") and name.endswith(".exp_avg_sq"))
    for other, message in (
        ({**tensors, "more.x": torch.zeros(1)}, "more.x"),
        ({key: value for key, value in tensors.items() if key != name}, "missing"),
        ({**tensors, name: torch.zeros(1, 2)}, "shape"),
        ({**tensors, name: tensors[name].int()}, "int32"),
        ({**tensors, moment: tensors[moment] * float("nan")}, "finite"),
        ({**tensors, moment: -tensors[moment].abs() - 1}, "negative"),
        ({**tensors, "optimizer.x.step": torch.zeros(())}, r"optimizer\.x\.step"),
    ):
        files.write_tensors(path, other, state)
        said = refused(r"checkpoint\.safetensors.*start again", train, corpus, config, unfinished, resume=True)
        assert re.search(message, said), said


# Weights


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.int(), "int32"),
        (lambda w: w * float("nan"), "not finite"),
        (lambda w: w + float("inf"), "not finite"),
        (lambda w: w[..., :1], "shape"),
        (lambda w: None, "missing"),
    ],
)
def test_invalid_weights_raise(folder, change, message):
    tensors, _ = files.read_tensors(folder / "model.safetensors")
    tensors = {name: change(w) if w.is_floating_point() else w for name, w in tensors.items()}
    files.write_tensors(folder / "model.safetensors", {name: w for name, w in tensors.items() if w is not None})
    refused(rf"model\.safetensors.*{message}.*copy the folder again, or train again", TrainedModel.load, folder)


# Two trainings in one folder, and what a killed one leaves

HOLD = """
import sys, time
from rationalizer.training.folder_lock import lock_folder
with lock_folder(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_folder_is_locked_until_the_process_ends(corpus, tmp_path):
    config, folder = configure("spectra", SETTINGS), tmp_path / "run"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        for resume in (False, True):
            with pytest.raises(OSError, match=f"run is in use by process {holder.pid}"):
                train(corpus, config, folder, resume=resume)
        assert os.listdir(folder) == [".lock"]
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    train(corpus, config, folder)
    assert ".lock" not in os.listdir(folder)


def test_second_lock_in_one_process_raises(tmp_path):
    from rationalizer.training.folder_lock import lock_folder

    with lock_folder(tmp_path / "new" / "run"):
        with pytest.raises(OSError, match="in use"), lock_folder(tmp_path / "new" / "run"):
            pass
        with lock_folder(tmp_path / "other"):
            pass
    assert os.listdir(tmp_path) == []  # empty folders are removed


def test_files_of_a_killed_run_are_removed(corpus, unfinished):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    kept = {f".config.json.{os.getppid()}.tmp", ".notes.tmp", f"model.safetensors.{dead.pid}.tmp"}
    for name in {f".checkpoint.safetensors.{dead.pid}.tmp", f".history.json.{dead.pid}.tmp", *kept}:
        (unfinished / name).write_text("half")
    train(corpus, configure("spectra", SETTINGS), unfinished, resume=True)
    assert {name for name in os.listdir(unfinished) if name.endswith(".tmp")} == kept
