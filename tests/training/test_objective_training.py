"""Training with every objective: with both kinds of encoders, resumed, and without a trace in the trained model."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rationalizer.data import generated_reviews
from rationalizer.inference import predict
from rationalizer.metrics import Finding
from rationalizer.metrics.degeneration import LABEL_DOCUMENTS
from rationalizer.models import TrainedModel, configure
from rationalizer.models.atomic_files import read_tensors
from rationalizer.nn import OBJECTIVES
from rationalizer.training import train
from rationalizer.training.alarms import DegenerationWarning, add_alarms
from rationalizer.training.loop import TrainingLoop
from rationalizer.training.validation import Validation
from tests.nn.tiny_transformers import write_encoder
from tests.training.interrupted import Killed, killed_after, require_resumable

pytestmark = pytest.mark.long

SMALL = {"epochs": 3, "min_epochs": 1, "batch_size": 8, "keep_examples": 0}
VECTORS = {"hidden": 4, "vector_size": 6, "embeddings": None}


@pytest.fixture(scope="module")
def corpus():
    return generated_reviews(train=24, dev=8, test=0)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def config_of(objective, encoder=None, method=None, **settings):
    own = VECTORS if encoder is None else {"encoder": encoder, "generator_rate": 1e-3}
    return configure(method, {"objective": objective, **SMALL, **own, **settings})


@pytest.mark.parametrize("kind", ["bilstm", "transformer"])
@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_every_objective_trains(corpus, encoder, objective, kind, tmp_path):
    warmup = {"full_text_epochs": 1} if objective == "dar" else {}
    config = config_of(objective, encoder if kind == "transformer" else None, epochs=1 + len(warmup), **warmup)
    trained = train(corpus, config, tmp_path / "run")
    loaded = TrainedModel.load(tmp_path / "run")
    decided = {"options": {**config.options, "transition": 0.1}, "class_weight": None}  # by the data
    assert loaded.config == trained.config == replace(config, **decided)
    assert (predict(loaded, corpus.dev).outputs == predict(trained, corpus.dev).outputs).all()
    plain = train(corpus, config_of("joint", shared=objective == "fr")) if kind == "bilstm" else None
    if plain is not None:  # what the objective trains beside the model is not saved
        assert plain.model.state_dict().keys() == loaded.model.state_dict().keys()


@pytest.mark.parametrize(
    ("objective", "settings", "steps"),  # 3 steps an epoch
    [
        ("dar", {"full_text_epochs": 1}, (2, 3, 5)),
        ("mgr", {"averaging": 0.9, "accumulate": 2}, (2, 4)),
        ("mgr", {"method": "hardkuma"}, (4,)),
        ("mrd", {}, (4,)),
        ("dr", {"full_text_epochs": 1}, (4,)),
        ("fr", {}, (4,)),
    ],
)
def test_resumed_run_equals_uninterrupted_run(corpus, objective, settings, steps, tmp_path, monkeypatch):
    config = config_of(objective, checkpoint_seconds=0, **settings)
    require_resumable(corpus, config, steps, tmp_path, monkeypatch)


def test_resumed_transformer_with_further_generators(corpus, encoder, tmp_path, monkeypatch):
    config = config_of("mgr", encoder, checkpoint_seconds=0, epochs=2)
    require_resumable(corpus, config, (4,), tmp_path, monkeypatch)


def test_checkpoints_hold_the_objectives_modules(corpus, tmp_path, monkeypatch):
    config = config_of("mgr", checkpoint_seconds=0)
    with monkeypatch.context() as patch:
        killed_after(patch, 4)
        with pytest.raises(Killed):
            train(corpus, config, tmp_path)
    tensors, _ = read_tensors(tmp_path / "checkpoint.safetensors")
    assert any(name.startswith("objective.generators.1.encoder.generator") for name in tensors)
    assert any(name.startswith("optimizer.objective.generators.0.method") for name in tensors)


def test_mgr_generators_learn_at_their_own_rates(corpus, monkeypatch):
    steps, original = [], TrainingLoop._update_weights

    def update_weights(self):
        named = {"model": self.model.method.scorer.weight}
        named |= {i: each.method.scorer.weight for i, each in enumerate(self.objective.generators)}
        before = {name: weight.detach().clone() for name, weight in named.items()}
        original(self)
        steps.append({name: (weight - before[name]).abs().max().item() for name, weight in named.items()})

    monkeypatch.setattr(TrainingLoop, "_update_weights", update_weights)
    config = config_of("mgr", epochs=1, learning_rate=1e-3, weight_decay=0.0, averaging=0.0)
    train(corpus, config, device="cpu", precision="64-true")
    # Adam's first step is the learning rate, for every weight whose gradient is not 0.
    assert [steps[0][name] for name in ("model", 0, 1)] == pytest.approx([1e-3, 2e-3, 3e-3], rel=1e-3)


@pytest.fixture
def selects_nothing(monkeypatch):
    """After every step, all scores are negative."""
    original = TrainingLoop._update_weights

    def update_weights(self):
        original(self)
        with torch.no_grad():
            self.model.method.scorer.weight.zero_()
            self.model.method.scorer.bias.fill_(-1.0)

    monkeypatch.setattr(TrainingLoop, "_update_weights", update_weights)


@pytest.mark.usefixtures("selects_nothing")
def test_degeneration_is_reported_during_training(corpus, tmp_path):
    config = config_of("joint", averaging=0.0, patience=None)
    with pytest.warns(DegenerationWarning, match="epochs 1 and 2: .*empty"):
        train(corpus, config, tmp_path)
    history = TrainedModel.load(tmp_path).history
    empty = [alarm for alarm in history["alarms"] if alarm["kind"] == "empty_rationales"]
    assert [(alarm["epoch"], alarm["value"]) for alarm in empty] == [(1, 1.0), (2, 1.0), (3, 1.0)]


def test_labels_told_by_size_are_reported_during_training(monkeypatch):
    original = Validation.add

    def add(self, model, batch, budget):
        """Select two random words of a text of the first class, and five of the second."""
        original(self, model, batch, budget)
        for index, label in zip(batch.index.tolist(), batch.labels.tolist(), strict=True):
            ranks = np.random.default_rng(index).permutation(len(self.rationales[index]))
            self.rationales[index] = ranks < 2 + 3 * label

    monkeypatch.setattr(Validation, "add", add)
    with pytest.warns(DegenerationWarning, match="epochs 1 and 2: .*size"):
        history = train(generated_reviews(train=8, dev=LABEL_DOCUMENTS, test=0), config_of("joint", epochs=2)).history
    sizes = [alarm for alarm in history["alarms"] if alarm["kind"] == "label_from_size"]
    assert [alarm["epoch"] for alarm in sizes] == [1, 2]
    assert min(alarm["value"] for alarm in sizes) > 0.9


@pytest.mark.parametrize(("kind", "epochs"), [("empty_rationales", [2, 6]), ("no_better_than_majority", [3, 6])])
def test_lasting_signs_are_reported_once(kind, epochs):
    alarms, reported = [], []
    for epoch in (1, 2, 3, 5, 6, 7):  # gone in epoch 4
        findings = [Finding(kind, "a message", 0.5)]
        reported += [epoch for _ in add_alarms(alarms, findings, epoch, min_epochs=3)]
    assert reported == epochs
    assert [alarm["epoch"] for alarm in alarms] == [1, 2, 3, 5, 6, 7]


def test_no_alarm_in_warmup_epochs_or_without_a_generator(corpus):
    history = train(corpus, config_of("full-text", full_text_epochs=2)).history
    assert all(alarm["epoch"] == 3 for alarm in history["alarms"])
    history = train(corpus, config_of("full-text", method="full-text")).history
    assert not {alarm["kind"] for alarm in history["alarms"]} & {"full_rationales", "ignores_text"}


@pytest.mark.usefixtures("selects_nothing")
def test_alarms_survive_resuming(corpus, tmp_path, monkeypatch):
    config = config_of("joint", checkpoint_seconds=0, patience=None)
    expected = train(corpus, config).history["alarms"]
    assert expected
    with monkeypatch.context() as patch:
        killed_after(patch, 7)
        with pytest.raises(Killed):
            train(corpus, config, tmp_path)
    assert train(corpus, config, tmp_path, resume=True).history["alarms"] == expected
