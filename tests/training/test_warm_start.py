from dataclasses import replace

import pytest
import torch

from rationalizer import Rationalizer
from rationalizer.data import generated_reviews
from rationalizer.data.annotation_file import AnnotationFile, mask_characters, text_id, text_row
from rationalizer.data.single_examples import make_example
from rationalizer.models import TrainedModel
from rationalizer.training.trainer import train
from tests.cli.calls import run

CORPUS = generated_reviews(train=60, dev=20, test=20, seed=3)


@pytest.fixture(scope="module")
def start(spectra_run):
    return TrainedModel.load(spectra_run)


def go_on(start, corpus=CORPUS, **settings):
    return train(corpus, replace(start.config, **settings), start=start, progress=False)


def test_goes_on_from_the_weights(start):
    before = {name: tensor.clone() for name, tensor in start.model.state_dict().items()}
    still = go_on(start, epochs=1, averaging=0.0, learning_rate=1e-12)
    for name, tensor in still.model.state_dict().items():
        assert torch.allclose(tensor, before[name], atol=1e-6), name
    moved = go_on(start, epochs=1)
    assert any(not torch.equal(tensor, before[name]) for name, tensor in moved.model.state_dict().items())
    assert all(torch.equal(tensor, before[name]) for name, tensor in start.model.state_dict().items())
    assert (moved.classes, moved.encoder.description()) == (start.classes, start.encoder.description())


def test_pairs_learn_a_threshold_from_annotations(pair_run):
    from rationalizer.data import generated_pairs

    start = TrainedModel.load(pair_run)
    corpus = generated_pairs(train=30, dev=10, test=0)
    taught = go_on(start, corpus, epochs=1, annotation_weight=1.0)
    assert "threshold" in taught.model.state_dict()
    assert "threshold" not in start.model.state_dict()


@pytest.mark.parametrize(
    ("settings", "corpus", "word"),
    [
        ({"pooling": "mean"}, CORPUS, "pooling=max"),
        ({"encoder_options": {"hidden": 12, "vector_size": 8, "embeddings": None}}, CORPUS, "do not fit"),
        ({}, replace(CORPUS, classes=("a", "b")), "labels are a, b"),
        ({}, replace(CORPUS, rule="spaces"), "'words'"),
    ],
)
def test_what_does_not_fit_is_refused(start, settings, corpus, word):
    with pytest.raises(ValueError, match=word):
        go_on(start, corpus, **settings)


def test_fit_with_warm_start(spectra_run):
    model = Rationalizer.load(spectra_run).set_params(annotation_weight=1.0, epochs=1)
    texts = [example.text for example in CORPUS.train]
    labels = [CORPUS.classes[example.label] for example in CORPUS.train]
    annotations = [example.annotation if k < 5 else None for k, example in enumerate(CORPUS.train)]
    words = model.trained.encoder.description()
    model.fit(texts, labels, annotations=annotations, warm_start=True, progress=False)
    assert model.trained.encoder.description() == words
    with pytest.raises(ValueError, match="fine"):
        model.fit(texts, ["fine"] * len(texts), warm_start=True, progress=False)
    with pytest.raises(ValueError, match="not trained"):
        Rationalizer().fit(texts, labels, warm_start=True)


def test_train_from_annotations(tmp_path, spectra_run):
    header = {
        "pairs": False,
        "multi": False,
        "task": "classification",
        "rule": "words",
        "classes": ["negative", "positive"],
    }
    texts = [text_row(make_example(text=one.text), CORPUS.classes[one.label]) for one in CORPUS.train]
    file = AnnotationFile.open(tmp_path / "x.annotated.jsonl", header, texts)
    for example in CORPUS.train[::2]:
        row = {"label": CORPUS.classes[example.label], "rationale_chars": mask_characters(example.annotation, example)}
        row["removed_words"] = ["Acme", "the"]
        file.append({"id": text_id([example.text]), "annotator": "Ana", **row})
    file.append({"annotator": "Ana", "never": ["Lovely"]})

    out = tmp_path / "taught"
    printed = run("train", file.path, "--from", spectra_run, "--out", out, "--set", "epochs=1").output
    assert "Annotated: 30 texts by Ana" in printed
    assert "never selected: lovely" in printed
    assert "acme (30 texts); --constraint never=words:acme excludes" in " ".join(printed.split())
    assert "before" in printed
    assert "Now selected" in printed
    assert "what changed" in (out / "change.html").read_text()
    taught = Rationalizer.load(out)
    assert 4.5 < taught.config.annotation_weight < 7.5  # half of the texts are annotated
    assert taught.config.patience is None
    assert taught.explain("lovely lovely room with kind staff").spans
    assert "lovely" not in str(taught.explain("A lovely room with kind staff.").spans)

    wrong = run("train", file.path, "--from", spectra_run, "--out", tmp_path / "no", "--set", "hidden=9", code=2)
    assert "network" in wrong.stderr.rpartition("error: ")[2]
