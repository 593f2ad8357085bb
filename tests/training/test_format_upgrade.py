"""Folders of format 4 load as the same models."""

import pytest

from rationalizer.data import generated_reviews
from rationalizer.inference import predict
from rationalizer.models import TrainedModel, configure
from rationalizer.models.atomic_files import read_record, read_tensors, write_record, write_tensors
from rationalizer.models.format_upgrade import FORMAT, upgrade_record
from rationalizer.training import read_source, run, train
from rationalizer.training.runs import read_run_record
from tests.training.interrupted import SMALL, Killed, killed_after, same, weights

OLD_SETTINGS = {
    "annotation_weight": "rationale_weight",
    "encoder_options": "reading",
    "word_splitting": "cut",
}


def old_settings(settings):
    """Return settings as format 4 had them; nested ones if there are `objective_options`."""
    own = settings.get("objective_options", {})
    settings = {**settings, **own, **({"guide": "label", "slow_predictor": False} if "method" in settings else {})}
    settings = {
        key: value for key, value in settings.items() if key not in ("objective", "objective_options", "shared")
    }
    renamed = {OLD_SETTINGS.get(key, key): value for key, value in settings.items()}
    if isinstance(renamed.get("reading"), dict):
        renamed["reading"] = {key: value for key, value in renamed["reading"].items() if key != "shared"}
    return renamed | {"sentences": "marks"} if renamed.get("sentences") == "punctuation" else renamed


def rewrite_as_format_4(folder, compact=False):
    stored = read_record(folder / "config.json")
    write_record(folder / "config.json", {**stored, "format": 4, "config": old_settings(stored["config"])})
    for old, new in (("reader.json", "encoder.json"), ("metrics.json", "history.json")):
        write_record(folder / old, old_settings(read_record(folder / new)))
        (folder / new).unlink()
    tensors, state = read_tensors(folder / "model.safetensors")
    if compact:
        state = {"coded": [name.replace("encoder.", "reader.", 1) for name in state["coded"]]}
    tensors = {name.replace("encoder.", "reader.", 1): tensor for name, tensor in tensors.items()}
    write_tensors(folder / "model.safetensors", tensors, state)
    if (folder / "scores.json").is_file():
        record = read_record(folder / "scores.json")
        write_record(folder / "scores.json", {**record, "config": old_settings(record["config"])})


@pytest.mark.parametrize("compact", [False, True])
def test_format_4_folder_loads(corpus, tmp_path, monkeypatch, compact):
    monkeypatch.setattr("rationalizer.models.compact_weights.LARGE", 100)  # so that some weights are coded
    config = configure("spectra", {**SMALL, "epochs": 1})
    run(corpus, config, tmp_path)
    trained = TrainedModel.load(tmp_path)
    if compact:
        trained.save(tmp_path, compact=True)
        trained = TrainedModel.load(tmp_path)
    record = read_run_record(tmp_path)
    rewrite_as_format_4(tmp_path, compact)
    loaded = TrainedModel.load(tmp_path)
    assert loaded.description == trained.description
    assert loaded.history == trained.history
    assert same(weights(loaded), weights(trained))
    assert (predict(loaded, corpus.dev).outputs == predict(trained, corpus.dev).outputs).all()
    assert read_source(tmp_path) is None
    assert read_run_record(tmp_path) == record
    assert train(corpus, config, tmp_path, resume=True).history == trained.history  # finished: loaded
    assert read_record(tmp_path / "config.json")["format"] == 4  # nothing is written


def test_unfinished_format_4_run_raises(tmp_path, monkeypatch):
    corpus = generated_reviews(train=32, dev=8, test=0)
    config = configure("spectra", {**SMALL, "batch_size": 8, "checkpoint_seconds": 0})
    with monkeypatch.context() as patch:
        killed_after(patch, 2)
        with pytest.raises(Killed):
            train(corpus, config, tmp_path)
    tensors, state = read_tensors(tmp_path / "checkpoint.safetensors")
    progress = state["progress"]
    progress["waited"] = progress.pop("epochs_without_improvement")
    write_tensors(tmp_path / "checkpoint.safetensors", tensors, state)
    with pytest.raises(ValueError, match="start again"):
        train(corpus, config, tmp_path, resume=True)


@pytest.mark.parametrize("number", [3, FORMAT + 1, None])
def test_other_formats_raise(corpus, tmp_path, number):
    train(corpus, configure("spectra", {**SMALL, "epochs": 1}), tmp_path)
    stored = read_record(tmp_path / "config.json")
    write_record(tmp_path / "config.json", {**stored, "format": number})
    with pytest.raises(ValueError, match=f"format {number}"):
        TrainedModel.load(tmp_path)


FULL = {"full_text_weight": 2.0, "full_text_epochs": 1}


@pytest.mark.parametrize(
    ("old", "objective", "options"),
    [
        ({"guide": "label", **FULL}, "full-text", FULL),
        ({"guide": "label", "full_text_weight": 0.0, "full_text_epochs": 0}, "joint", {}),
        ({"guide": "full-text", **FULL}, "mcd", FULL),
        ({"slow_predictor": True, **FULL}, "dr", {"slowest": 0.05, **FULL}),
        (
            {"slow_predictor": True, "objective": "joint", **FULL},
            "dr",
            {"slowest": 0.05, "full_text_weight": 0, "full_text_epochs": 0},
        ),
        ({"objective": "joint", **FULL}, "joint", {}),
    ],
)
def test_format_5_settings_become_objectives(corpus, tmp_path, old, objective, options):
    train(corpus, configure("spectra", {**SMALL, "epochs": 2}), tmp_path)
    stored = read_record(tmp_path / "config.json")
    config = {key: value for key, value in stored["config"].items() if key != "objective_options"}
    config["encoder_options"] = {key: value for key, value in config["encoder_options"].items() if key != "shared"}
    config |= {"objective": "full-text", "guide": "label", "slow_predictor": False, **old}
    write_record(tmp_path / "config.json", {**stored, "format": 5, "config": config})
    loaded = TrainedModel.load(tmp_path).config
    assert (loaded.objective, loaded.objective_options) == (objective, options)
    assert loaded.encoder_options["shared"] is False
    settings = {key: value for key, value in config.items() if key not in ("options", "encoder_options")}
    flat = upgrade_record({**settings, **config["options"], **config["encoder_options"]})
    assert flat["objective"] == objective
    assert {key: flat[key] for key in options} == options
    assert "guide" not in flat
