"""Training runs are reproducible and saved without pickle."""

import csv
import functools
import json
import random
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from rationalizer import ops
from rationalizer.data import Corpus
from rationalizer.data import generated_reviews as reviews
from rationalizer.inference import evaluate, predict
from rationalizer.models import TrainedModel, configure
from rationalizer.nn import EXTRACTORS
from rationalizer.text import Example
from rationalizer.training import train
from rationalizer.training.averaging import Average
from rationalizer.training.loop import TrainingLoop
from rationalizer.training.trainer import describe_model
from tests.training.interrupted import SMALL, same, weights


@pytest.mark.parametrize("method", sorted(EXTRACTORS))
def test_weights_depend_on_the_seed(corpus, method):
    config = configure(method, {**SMALL, "epochs": 2})
    torch.manual_seed(1)
    first = train(corpus, config)
    torch.manual_seed(2)  # the global random state has no effect
    np.random.seed(2)  # noqa: NPY002
    second = train(corpus, config)
    assert same(weights(first), weights(second))
    assert not same(weights(first), weights(train(corpus, replace(config, seed=1))))


def test_global_random_state_is_unchanged(corpus):
    torch.manual_seed(5)
    random.seed(5)
    expected = torch.rand(3), random.random()
    torch.manual_seed(5)
    random.seed(5)
    train(corpus, configure("sfe", {**SMALL, "epochs": 1}))
    assert torch.equal(torch.rand(3), expected[0])
    assert random.random() == expected[1]


def test_method_state_is_updated(corpus):
    kuma = train(corpus, configure("hardkuma", {**SMALL, "target_warmup": 0, "fused_target": 0})).model.method
    assert kuma.violations[0] > 0
    assert kuma.multipliers[0] > 1e-4
    assert kuma.multipliers[1] > 1e-4  # any change exceeds the target 0
    assert kuma.progress == pytest.approx(17 / 18)  # before the last batch
    sfe = train(corpus, configure("sfe-baseline", {**SMALL, "patience": None})).model.method
    assert sfe.batches.item() == 18
    assert 0.3 < sfe.average.item() < 2


def test_initialization_setting_is_used(corpus):
    still = {**SMALL, "epochs": 1, "learning_rate": 0}
    for initial, empty in (("pytorch", False), ("xavier", True)):
        model = train(corpus, configure("sfe", {**still, "initial_weights": initial})).model
        biases = [weight for name, weight in model.named_parameters() if "bias" in name]
        assert [not bias.any() for bias in biases] == [empty] * 10  # two LSTMs in two directions, scorer and head


def test_run_directory(corpus, tmp_path):
    config = configure("spectra", SMALL)
    trained = train(corpus, config, tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    stored = {
        "config.json",
        "encoder.json",
        "vectors.safetensors",
        "model.safetensors",
        "history.json",
        "examples.json",
    }
    assert names == {*stored, "history.csv", "logs"}
    rows = list(csv.DictReader((tmp_path / "run/history.csv").open()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert {"loss", "macro_f1", "size", "seconds"} <= rows[0].keys()
    assert list((tmp_path / "run/logs").glob("events.out.tfevents.*"))
    metrics = json.loads((tmp_path / "run/history.json").read_text())
    assert [row["epoch"] for row in metrics["epochs"]] == [1, 2, 3]

    loaded = TrainedModel.load(tmp_path / "run")
    assert same(weights(loaded), weights(trained))
    assert loaded.description == trained.description
    one, other = predict(loaded, corpus.test), predict(trained, corpus.test)
    assert np.array_equal(one.outputs, other.outputs)
    assert all(map(np.array_equal, one.weights, other.weights))


def test_csv_log_without_tensorboard(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("rationalizer.training.history_log.find_spec", lambda name: None)
    train(corpus, configure("spectra", {**SMALL, "epochs": 1}), tmp_path)
    assert (tmp_path / "history.csv").is_file()
    assert not (tmp_path / "logs").exists()


def test_unconverged_selections_warn(corpus, monkeypatch):
    """One warning per epoch with the number of selections and the largest gap; otherwise only the gap is logged."""
    settings = {**SMALL, "epochs": 1, "temperature": 1.0, "transition": 1.0, "mask_tolerance": 0.01}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ops.ConvergenceWarning)
        (row,) = train(corpus, configure(overrides=settings)).history["epochs"]
    assert row["stopped_short"] == 0
    assert 0 < row["mask_gap"] <= 0.01**2
    hurried = functools.partial(ops.sequence_budget, max_iterations=1)
    monkeypatch.setattr(ops, "sequence_budget", hurried)
    with pytest.warns(ops.ConvergenceWarning, match=r"epoch 1: \d+ of \d+ selections stopped .* mask_tolerance"):
        (row,) = train(corpus, configure(overrides=settings)).history["epochs"]
    assert 0 < row["stopped_short"] <= len(corpus.train)
    assert row["mask_gap"] > 0.01**2
    (row,) = train(corpus, configure("pair-budget", {**SMALL, "epochs": 1})).history["epochs"]
    assert "mask_gap" not in row


def test_early_stopping_keeps_the_best_epoch(corpus, monkeypatch):
    scores = iter([0.2, 0.5, 0.4, 0.5, 0.3, 0.1])
    states = []

    def score(task, truth, predictions, classes):
        return {"accuracy": 0.0, "macro_f1": next(scores)}

    original = TrainingLoop._keep_best

    def keep_best(self, row):
        states.append({name: w.clone() for name, w in self.model.state_dict().items()} | self.average.weights)
        states[-1] = {name: w.clone() for name, w in states[-1].items()}
        original(self, row)

    monkeypatch.setattr("rationalizer.training.validation.score_task", score)
    monkeypatch.setattr(TrainingLoop, "_keep_best", keep_best)
    trained = train(corpus, configure("spectra", {**SMALL, "epochs": 9, "patience": 3, "keep_by": "score"}))
    assert (trained.history["best"], trained.history["best_epoch"]) == (0.5, 2)
    assert len(trained.history["epochs"]) == 5
    assert same(weights(trained), states[1])
    assert not same(weights(trained), states[-1])


def test_without_patience_the_last_epoch_is_kept(corpus, monkeypatch):
    scores = iter([0.9, 0.5, 0.4])
    monkeypatch.setattr(
        "rationalizer.training.validation.score_task", lambda *_: {"macro_f1": next(scores), "accuracy": 0.0}
    )
    trained = train(corpus, configure("spectra", {**SMALL, "patience": None}))
    assert (trained.history["best"], trained.history["best_epoch"]) == (0.4, 3)


def test_epochs_over_the_target_size_are_not_kept(corpus, monkeypatch):
    scores = iter([0.9, 0.5, 0.4])
    monkeypatch.setattr(
        "rationalizer.training.validation.score_task", lambda *_: {"macro_f1": next(scores), "accuracy": 0.0}
    )
    trained = train(corpus, configure("hardkuma", {**SMALL, "target_warmup": 0.5, "keep_by": "score"}))
    assert (trained.history["best"], trained.history["best_epoch"]) == (0.5, 2)


def test_corpus_without_dev_trains_all_epochs(corpus):
    trained = train(replace(corpus, dev=()), configure("spectra", {**SMALL, "patience": 1}))
    assert len(trained.history["epochs"]) == 3
    assert trained.history["best"] is None


def regression(values):
    words = ["bad", "poor", "fine", "good", "great"]
    generator = np.random.default_rng(0)
    examples = []
    for _ in range(240):
        level = int(generator.integers(5))
        tokens = ["the", "beer", "is", *generator.permutation([words[level], "cold", "brown", "today"])]
        text = " ".join(tokens)
        starts = np.cumsum([0, *(len(token) + 1 for token in tokens[:-1])])
        offsets = tuple((int(s), int(s) + len(t)) for s, t in zip(starts, tokens, strict=True))
        examples.append(Example(text, tuple(tokens), offsets, float(values[level])))
    return Corpus("levels", "regression", (), examples[:200], examples[200:], ())


@pytest.mark.parametrize("values", [[0.0, 0.25, 0.5, 0.75, 1.0], [-40, -20, 0, 50, 110]])
def test_regression_predicts_in_the_units_of_the_data(values, tmp_path):
    corpus = regression(values)
    settings = {**SMALL, "epochs": 12, "learning_rate": 0.02, "budget": 1, "hidden": 12}
    trained = train(corpus, configure("spectra", settings), tmp_path)
    scores = evaluate(trained, corpus.dev)
    assert scores.mse < 0.1 * np.var(values)
    assert trained.history["score"] == "mse"
    assert trained.description.target["sigmoid"] == (max(values) <= 1)
    outputs = predict(TrainedModel.load(tmp_path), corpus.dev).outputs
    assert np.mean((outputs - [e.label for e in corpus.dev]) ** 2) == pytest.approx(scores.mse, rel=1e-4)


def test_invalid_corpora_raise(corpus):
    config = configure("spectra", SMALL)
    with pytest.raises(ValueError, match="no training examples"):
        train(replace(corpus, train=()), config)
    with pytest.raises(ValueError, match=r"reviews train\[1\] has no label"):
        train(replace(corpus, train=[corpus.train[0], replace(corpus.train[1], label=None)]), config)
    with pytest.raises(ValueError, match=r"reviews dev\[0\] has the label 2; expected 0 to 1"):
        train(replace(corpus, dev=[replace(corpus.dev[0], label=2)]), config)


def test_diverging_training_raises(corpus):
    with pytest.raises((FloatingPointError, ValueError), match=r"learning_rate|finite"):
        train(corpus, configure("spectra", {**SMALL, "learning_rate": 1e30, "epochs": 3}))


def test_digest_depends_on_texts_and_labels(corpus):
    changed = [replace(corpus.train[0], label=1 - corpus.train[0].label), *corpus.train[1:]]
    moved = replace(corpus, train=corpus.train[:-1], dev=[corpus.train[-1], *corpus.dev])
    digests = {corpus.digest, replace(corpus, train=changed).digest, moved.digest}
    assert len(digests) == 3
    assert corpus.digest == reviews(train=96, dev=24, test=24).digest


def test_no_pickle(tmp_path, corpus, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("pickle")

    for module, name in ((torch, "save"), (torch, "load")):
        monkeypatch.setattr(module, name, refuse)
    train(corpus, configure("spectra", {**SMALL, "checkpoint_seconds": 0}), tmp_path)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert not path.read_bytes().startswith((b"\x80", b"PK"))


def test_description_of_targets():
    unit = describe_model(regression([0, 0.2, 0.4, 0.6, 1]), configure())
    assert unit.target == {"sigmoid": True}
    wide = describe_model(regression([0, 2, 4, 6, 8]), configure())
    assert wide.target["sigmoid"] is False
    assert wide.target["deviation"] > 1


def test_progress_shows_loss_and_dev_score(corpus, capsys, monkeypatch):
    config = configure("spectra", {**SMALL, "epochs": 2})
    train(corpus, config, progress=True)
    printed, shown = capsys.readouterr()
    assert printed == ""  # no progress bar in a file
    for part in ("Epoch 1/2", "Epoch 2/2", "loss 0.", "dev macro-F1 0."):
        assert part in shown
    monkeypatch.setattr("rationalizer.progress.LINE_SECONDS", 0)
    train(corpus, config, progress="lines")
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"Epoch 2/2: \d of \d+ batches, .* left \(.*\); loss 0\.\d+, dev macro-F1 0\.\d+", lines[-2])
    train(corpus, config)  # standard error is not a terminal
    assert capsys.readouterr() == ("", "")


def test_keyboard_interrupt_is_not_wrapped(corpus, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rationalizer.training.loop.TrainingLoop.training_step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(corpus, configure("spectra", SMALL))


def test_epoch_with_lowest_dev_loss_is_kept(corpus):
    trained = train(corpus, configure("spectra", {**SMALL, "epochs": 4}))
    losses = [row["dev_loss"] for row in trained.history["epochs"]]
    assert trained.history["best_epoch"] == 1 + int(np.argmin(losses))
    truth = torch.tensor([example.label for example in corpus.dev])
    kept = torch.from_numpy(predict(trained, corpus.dev).outputs).log()
    assert torch.nn.functional.nll_loss(kept, truth).item() == pytest.approx(min(losses), rel=1e-4)


def test_averaged_weights_are_kept(corpus, monkeypatch):
    """w̄ ← w̄ + (1 − a)(w − w̄), computed here from the weights after every step."""
    steps = []
    original = Average.update

    def update(self, model, step):
        steps.append(model.head.linear.weight.detach().clone())
        original(self, model, step)

    monkeypatch.setattr(Average, "update", update)
    start = train(corpus, configure("spectra", {**SMALL, "epochs": 1, "learning_rate": 0.0, "averaging": 0.0}))
    average = start.model.head.linear.weight.detach().clone()
    steps.clear()
    trained = train(corpus, configure("spectra", {**SMALL, "epochs": 2, "patience": None, "averaging": 0.6}))
    for step, weight in enumerate(steps):
        average += (1 - min(0.6, (1 + step) / (10 + step))) * (weight - average)
    torch.testing.assert_close(trained.model.head.linear.weight, average)
    assert not torch.allclose(average, steps[-1])


@pytest.mark.parametrize(
    ("trainer", "message"),
    [
        ({"devices": 99}, "devices=99"),
        ({"devices": 0}, "devices must be at least 1, or -1 for all GPUs, got 0"),
        ({"devices": -1}, "devices must be at least 1"),
        ({"precision": "nope"}, "Lightning cannot train with .*precision='nope'"),
        ({"strategy": "nope"}, "strategy 'nope'"),
        ({"device": "nope"}, "unknown device 'nope'"),
        ({"num_nodes": 0}, "the number of nodes must be at least 1, got 0"),
        ({"devices": 2, "strategy": "ddp_spawn"}, "'ddp_spawn'"),
        ({"num_nodes": 99}, "a batch of 16 among 99 processes"),
    ],
)
def test_invalid_data_raises_before_anything_is_written(corpus, tmp_path, trainer, message):
    with pytest.raises(ValueError, match=message):
        train(corpus, configure("spectra", SMALL), tmp_path / "run", **{"device": "cpu", **trainer})
    assert not (tmp_path / "run").exists()
