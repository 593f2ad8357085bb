"""Compact models are small, predict the same labels, and never load with other vectors."""

import numpy as np
import pytest
import torch

from rationalizer.data import generated_reviews
from rationalizer.inference import predict
from rationalizer.models import TrainedModel, configure
from rationalizer.models import compact_weights as compacting
from rationalizer.models.atomic_files import read_tensors, write_tensors
from rationalizer.models.compact_weights import compact_weights, restore_weights
from rationalizer.models.trained_model import MODEL, VECTORS
from rationalizer.text import BUNDLED, WordVectors
from rationalizer.training import train


@pytest.fixture(scope="module")
def corpus():
    return generated_reviews(train=200, dev=40, test=0)


@pytest.fixture(scope="module")
def trained(corpus):
    settings = {"hidden": 8, "epochs": 2, "min_epochs": 1, "learning_rate": 0.01, "embeddings": BUNDLED}
    return train(corpus, configure("spectra", settings), progress=False)


def size(folder):
    return sum(path.stat().st_size for path in folder.iterdir())


def test_tables_are_quantized_and_other_weights_halved():
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(3000, 100, generator=generator) * torch.logspace(-6, 3, 3000)[:, None]
    table[7] = 0
    weights = {"table": table, "matrix": torch.randn(8, 9, generator=generator), "count": torch.arange(3)}
    small, state = compact_weights(weights)
    assert {name: tensor.dtype for name, tensor in small.items()} == {
        "table.codes": torch.int8,
        "table.scales": torch.float32,
        "matrix": torch.float16,
        "count": torch.int64,
    }
    back = restore_weights(small, state)
    assert back.keys() == weights.keys()
    # Half a step of each row's own scale, however small the row is.
    assert ((back["table"] - table).abs().amax(1) <= table.abs().amax(1) / 254 * (1 + 1e-5)).all()
    assert torch.equal(back["matrix"], weights["matrix"].half().float())
    assert torch.equal(back["count"], weights["count"])


def test_compact_model_is_a_tenth_of_the_size(trained, corpus, tmp_path):
    trained.save(tmp_path / "whole")
    trained.save(tmp_path / "small", compact=True)
    assert size(tmp_path / "small") < size(tmp_path / "whole") / 10
    loaded = TrainedModel.load(tmp_path / "small")
    assert loaded.encoder.vectors.words == trained.encoder.vectors.words
    ours, theirs = (predict(model, corpus.dev) for model in (trained, loaded))
    np.testing.assert_allclose(theirs.outputs, ours.outputs, atol=0.01)
    agree = [np.array_equal(a, b) for a, b in zip(ours.weights, theirs.weights, strict=True)]
    assert np.mean(agree) > 0.9


def test_other_vectors_are_saved(corpus, tmp_path):
    words = sorted({token.lower() for example in corpus.train for token in example.tokens})
    vectors = WordVectors.from_floats(words, np.random.default_rng(0).normal(size=(len(words), 20)))
    np.savez(tmp_path / "own.npz", **vectors.to_arrays())
    settings = {"hidden": 4, "epochs": 1, "min_epochs": 1, "embeddings": str(tmp_path / "own.npz")}
    trained = train(corpus, configure("spectra", settings), progress=False)
    trained.save(tmp_path / "small", compact=True)
    assert np.array_equal(TrainedModel.load(tmp_path / "small").encoder.vectors.codes, trained.encoder.vectors.codes)


def test_changed_package_vectors_raise(trained, tmp_path, monkeypatch):
    trained.save(tmp_path, compact=True)
    other = compacting._bundled()
    other["codes"][5, 5] += 1
    monkeypatch.setattr(compacting, "_bundled", lambda: other)
    with pytest.raises(ValueError, match="another version of the vectors"):
        TrainedModel.load(tmp_path)


def test_codes_without_scales_raise(trained, tmp_path):
    trained.save(tmp_path, compact=True)
    tensors, state = read_tensors(tmp_path / MODEL)
    name = next(iter(tensors))
    write_tensors(tmp_path / MODEL, {key: tensor for key, tensor in tensors.items() if key != name}, state)
    with pytest.raises(ValueError, match=rf"does not fit .*{name.split('.')[-1]}"):
        TrainedModel.load(tmp_path)
    write_tensors(tmp_path / VECTORS, {}, {"vectors": "others", "checksum": "x"})
    with pytest.raises(ValueError, match="does not describe an encoder"):
        TrainedModel.load(tmp_path)
