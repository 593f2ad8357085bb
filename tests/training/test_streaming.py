"""Training from texts on disk gives the same weights as from texts in memory."""

import json

import pytest
import torch

from rationalizer import Rationalizer
from rationalizer.data import DiskExamples, read_corpus, stream_corpus
from rationalizer.data.disk_examples import word_counts
from rationalizer.models import configure
from rationalizer.models.batches import batch_loader
from rationalizer.nn import VectorEncoder
from rationalizer.text import Vocabulary
from rationalizer.training import train
from tests.training.interrupted import SMALL, Killed, killed_after, same, weights


@pytest.fixture(scope="module")
def file(corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "x.jsonl"
    rows = ({"text": e.text, "label": corpus.classes[e.label]} for e in corpus.train)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_streamed_weights_equal_in_memory_weights(file, tmp_path, monkeypatch):
    """Also if the run is killed in the middle of an epoch."""
    in_memory, on_disk = read_corpus(file), stream_corpus(file, cache_dir=tmp_path / "cache")
    assert isinstance(on_disk.dev, DiskExamples)
    config = configure("spectra", {**SMALL, "checkpoint_seconds": 0})
    threads = torch.get_num_threads()  # another number changes the last digits
    expected = train(in_memory, config, threads=threads)
    with monkeypatch.context() as patch:
        killed_after(patch, 8)  # in the second epoch of 6 steps
        with pytest.raises(Killed):
            train(on_disk, config, tmp_path / "killed", threads=threads)
    again = stream_corpus(file, cache_dir=tmp_path / "cache")
    resumed = train(again, config, tmp_path / "killed", resume=True, threads=threads)
    assert same(weights(resumed), weights(expected))
    assert resumed.history["data"] == expected.history["data"]
    assert resumed.examples == expected.examples
    train(in_memory, config, tmp_path / "killed", resume=True)  # recognized as the same run


def test_worker_processes_give_the_same_batches(file, tmp_path):
    corpus = stream_corpus(file, cache_dir=tmp_path / "cache")
    encoder = VectorEncoder(Vocabulary.from_counts(word_counts(corpus.train)))
    how = {"batch_size": 16, "batch_tokens": 300, "shuffle": True, "seed": 3}
    alone, shared = (
        list(batch_loader(examples, encoder, workers=workers, **how))
        for examples, workers in ((list(corpus.train), 0), (corpus.train, 2))
    )
    assert len({len(batch) for batch in alone}) > 1
    assert [batch.index.tolist() for batch in alone] == [batch.index.tolist() for batch in shared]
    assert all((a.texts[0].seen == b.texts[0].seen).all() for a, b in zip(alone, shared, strict=True))


def test_fit_takes_a_corpus(file, tmp_path):
    corpus = stream_corpus(file, cache_dir=tmp_path / "cache")
    model = Rationalizer(**{**SMALL, "epochs": 1}).fit(corpus)
    assert tuple(model.classes_) == corpus.classes
    with pytest.raises(ValueError, match="its own labels"):
        model.fit(corpus, [1, 2])
    with pytest.raises(ValueError, match="fit needs labels"):
        model.fit(["a", "b"])
