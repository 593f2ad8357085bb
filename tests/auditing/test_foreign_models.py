"""Audits of what models of other packages do: draw words at random, show another prediction, select nothing."""

import zlib

import numpy as np
import pytest

from rationalizer.auditing import Adapter, audit
from rationalizer.text.errors import InputError
from tests.auditing.planted_models import WordLists, make_texts


def one_word(texts, masks):
    """The label depends on which word is selected, and on nothing else."""
    chosen = [
        " ".join(word for word, m in zip(text, mask, strict=True) if m) for text, mask in zip(texts, masks, strict=True)
    ]
    return np.eye(2)[[zlib.crc32(words.encode()) % 2 for words in chosen]]


def test_chance_is_not_a_trigger():
    """A model that draws its words flips labels without any inserted word."""
    rng = np.random.default_rng(11)
    texts, labels = make_texts(rng, 200)
    draw = lambda texts: [np.arange(len(text)) == rng.integers(len(text)) for text in texts]  # noqa: E731
    found = audit(
        Adapter(draw, one_word, classes=[0, 1]),
        texts,
        labels,
        checks=["batches", "repetition", "triggers"],
        progress=False,
    )
    assert found.leaks == ["batches", "repetition"]
    assert found.results["batches"].shown.endswith("rationales")
    assert found.results["batches"].details["again"] > 100
    flips, _ = found.results["triggers"].details["without_insertion"]
    assert flips == pytest.approx(found.results["triggers"].value, abs=0.2)
    assert flips > 0.2


def test_prediction_that_is_not_from_the_rationale():
    rng = np.random.default_rng(12)
    texts, labels = make_texts(rng, 60)
    model = WordLists(rng)
    whole = lambda texts: model.predict_from(texts, [np.ones(len(text)) for text in texts])  # noqa: E731
    shown = lambda texts: model.predict_from(texts, model.select(texts))  # noqa: E731
    for predict, leaks in ((whole, ["same-path"]), (shown, [])):
        adapter = Adapter(model.select, model.predict_from, predict=predict, classes=[0, 1])
        assert audit(adapter, texts, labels, checks=["same-path"], progress=False).leaks == leaks
    short = Adapter(model.select, model.predict_from, predict=lambda texts: whole(texts)[:-1], classes=[0, 1])
    with pytest.raises(InputError, match="predict returned"):
        audit(short, texts, labels, checks=["same-path"], progress=False)


def test_an_empty_rationale_shows_an_independent_reader_nothing():
    """The label is told by emptiness; a reader must not be credited with it because its bias is the same label."""
    rng = np.random.default_rng(13)
    texts, labels = make_texts(rng, 200)
    code = {" ".join(text): label for text, label in zip(texts, labels, strict=True)}
    select = lambda texts: [np.full(len(text), code[" ".join(text)], dtype=float) for text in texts]  # noqa: E731
    predict = lambda texts, masks: np.eye(2)[[int(mask.any()) for mask in masks]]  # noqa: E731
    adapter = Adapter(select, predict, classes=[0, 1])
    details = (
        audit(adapter, texts, labels, checks=["independent-reader"], progress=False)
        .results["independent-reader"]
        .details
    )
    assert details["rationale"] == pytest.approx(
        (1 + 0.5) / 2, abs=0.05
    )  # certain on whole texts, a guess on empty ones
    assert details["rationale"] == details["random"]
