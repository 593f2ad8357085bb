"""Training on annotations: `annotation_weight`."""

from dataclasses import replace

import numpy as np
import pytest

from rationalizer.data import Corpus
from rationalizer.data import generated_pairs as pairs
from rationalizer.data import generated_reviews as reviews
from rationalizer.data.single_examples import make_example
from rationalizer.inference import evaluate, predict
from rationalizer.models import TrainedModel, configure
from rationalizer.models.format_upgrade import ADDED_SETTINGS
from rationalizer.training import train
from rationalizer.training.checkpoint import data_digest
from tests.training.interrupted import SMALL


@pytest.fixture(scope="module")
def texts() -> Corpus:
    return reviews(train=128, dev=32, test=0)


def test_removed_words_lose_their_place(texts):
    """A word that is in all texts, and that nobody marks, is selected until people unmark it in some texts."""

    def planted(example, *, removed):
        tokens = ("acme", *example.tokens)
        flags = tuple(token == "acme" for token in tokens) if removed else None
        plain = make_example(tokens=list(tokens), mask=[0] * len(tokens), label=example.label, rule="spaces")
        return replace(plain, removed=flags)

    def selected(removed):
        corpus = replace(texts, rule="spaces")
        split = [planted(example, removed=removed and k % 2 == 0) for k, example in enumerate(texts.train)]
        dev = [planted(example, removed=False) for example in texts.dev]
        split[1] = replace(split[1], annotation=(True, *split[1].annotation[1:]))  # there is an annotation either way
        trained = fit(replace(corpus, train=split, dev=dev), annotation_weight=3, epochs=2, patience=None)
        return np.mean([words[0] for words in predict(trained, dev).selected])

    assert selected(removed=True) == 0
    assert selected(removed=False) > 0


def without_classes(corpus: Corpus) -> Corpus:
    """Give all texts the same class, so that only annotations can be learned."""
    train, dev = ([replace(example, label=0) for example in split] for split in (corpus.train, corpus.dev))
    return replace(corpus, classes=("text",), train=train, dev=dev)


def fit(corpus, run_dir=None, **settings):
    options = {**SMALL, "embeddings": None, "vector_size": 16, "epochs": 6, "learning_rate": 0.02, **settings}
    options |= {"budget": corpus.budget}
    config = configure("at-most-one" if corpus.pairs else "spectra", options, pairs=corpus.pairs)
    return train(corpus, config, run_dir, device="cpu", resume=run_dir is not None)


def test_annotations_improve_agreement(texts):
    half = replace(texts, train=[replace(e, annotation=None) if k % 2 else e for k, e in enumerate(texts.train)])
    alone, taught = (evaluate(fit(half, annotation_weight=weight), texts.dev) for weight in (0, 2))
    assert taught.token_f1 > alone.token_f1 + 0.2
    assert taught.size <= 0.25  # the budget stays hard


def test_training_on_annotations_only(texts, tmp_path):
    trained = fit(without_classes(texts), tmp_path / "run", annotation_weight=1)
    rows = trained.history["epochs"]
    assert trained.history["score"] == "token_f1"
    assert trained.history["best"] == max(row["token_f1"] for row in rows) > 0.5
    found = evaluate(TrainedModel.load(tmp_path / "run"), without_classes(texts).dev)
    assert found.token_f1 == pytest.approx(trained.history["best"])  # the best epoch is kept
    assert found.accuracy is found.macro_f1 is None
    unmarked = [replace(example, label=None, annotation=None) for example in texts.dev]
    with pytest.raises(ValueError, match="example 0 has neither"):
        evaluate(trained, unmarked)


def test_training_on_annotated_alignments_only():
    corpus = without_classes(pairs(train=128, dev=32, test=0))
    trained = fit(corpus, annotation_weight=1)
    assert trained.history["score"] == "alignment_f1"
    assert trained.model.threshold is not None
    found = evaluate(trained, corpus.dev)
    assert found.alignment_f1 == pytest.approx(trained.history["best"])
    assert found.alignment_f1 > 0.5
    assert found.violation == 0


def test_missing_targets_raise(texts):
    with pytest.raises(ValueError, match=r"all labels are 'text'.*--set annotation_weight=1"):
        fit(without_classes(texts))
    nobody = replace(texts, train=[replace(example, annotation=None) for example in texts.train])
    with pytest.raises(ValueError, match="rationale_mask=NAME"):
        fit(nobody, annotation_weight=1)
    with pytest.raises(ValueError, match="full-text has none"):
        configure("full-text", {"annotation_weight": 1})
    with pytest.raises(ValueError, match="annotation_weight must be at least 0"):
        configure("spectra", {"annotation_weight": -1})


def test_digest_includes_annotations_if_used(texts):
    changed = replace(texts, train=[replace(texts.train[0], annotation=None), *texts.train[1:]])
    assert texts.digest == changed.digest
    taught = configure("spectra", {"annotation_weight": 1})
    assert data_digest(texts, taught) != data_digest(changed, taught)
    assert data_digest(texts, configure("spectra")) == texts.digest


def test_added_settings_have_their_old_defaults():
    stored = configure(
        "spectra", {"class_weight": None, "rationales": "shared", "premise_context": "whole"}
    ).to_json()  # with newer defaults
    assert {name: stored[name] for name in ADDED_SETTINGS} == ADDED_SETTINGS
