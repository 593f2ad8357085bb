"""Exported models against PyTorch: methods, poolings, encoders, settings."""

import random

import numpy as np
import pytest

from rationalizer import Rationalizer
from rationalizer.export import ExportedModel, export_model
from tests.export.untrained_models import TEXTS, save_model
from tests.nn.tiny_transformers import write_encoder

PAIRS = list(zip(TEXTS, (*TEXTS[1:], TEXTS[0]), strict=True))
WORDS = sorted({word.strip(".,!;?()") for text in TEXTS[1:4] for word in text.lower().split()})
# Shuffled: the scores of a repeated text would be tied up to rounding.
LONG = " ".join(random.Random(0).sample(" ".join(TEXTS).split(), 50) + random.Random(1).sample(TEXTS, 4))
NOTHING = "never-align=stopwords,words:" + ",".join(f"{one}/{other}" for one in WORDS for other in WORDS)
MODELS = {
    "spectra": {},
    "pair-budget, gaps closed": {"method": "pair-budget", "gaps": "closed", "pooling": "max-mean", "transition": 0.3},
    "gaps closed, last": {"gaps": "closed", "pooling": "last", "word_sums": False},
    "shared": {"shared": True, "objective": "fr", "pooling": "mean", "word_scores": False},
    "top-k": {"method": "sfe-baseline", "pooling": "last", "embeddings": "none"},
    "sparsemax": {"method": "sparsemax", "temperature": 2.0},
    "punctuation counts": {"punctuation": "count", "budget": 3},
    "constraints": {"constraints": ["spans=1", "never=stopwords"], "budget": 0.5},
    "regression": {"classes": (), "target": {"sigmoid": False, "mean": 3.0, "deviation": 2.0}},
    "sigmoid": {"classes": (), "target": {"sigmoid": True}},
    "average": {
        "budget": "30% on average, 10% to 60%",
        "calibration": {
            "shares": [0.1, 0.6],
            "multipliers": [1.5, -1.5],
            "least": 0.1,
            "most": 0.6,
            "default_bounds": {"shares": [0.2, 0.5], "multipliers": [0.3, -0.3]},
        },
    },
    "pairs": {"method": "at-most-one"},
    "pairs, budget": {"method": "budget", "budget": 2, "faithful": False, "word_scores": True, "pooling": "last"},
    "pairs, complete": {"method": "xor-at-most-one", "constraints": ["monotone"], "pooling": "max"},
    "pairs, whole premise": {"method": "at-most-one", "premise_context": "whole"},
    "pairs, no links": {"method": "at-most-one", "constraints": [NOTHING]},
    "pairs, threshold": {"method": "at-most-one", "annotation_weight": 1.0},
}

AVERAGES = ("40% on average", "20% on average, 10% to 60%", "30% on average, 20% to 50%")


def assert_equal(model, exported, **changes):
    texts = PAIRS if model.pairs else [*TEXTS, LONG]
    examples = model.examples(texts)
    expected, found = (each.explain_examples(examples, reasons=None, **changes) for each in (model, exported))
    for one, other in zip(expected, found, strict=True):
        assert one.label == pytest.approx(other.label, abs=1e-4)
        mine, theirs = one.to_dict(), other.to_dict()
        for key in mine.keys() - {"probabilities", "label", "mask", "words"}:
            assert mine[key] == theirs[key], key
        if one.probabilities is not None:
            assert mine["probabilities"] == pytest.approx(theirs["probabilities"], abs=1e-5)
        if not model.pairs:
            np.testing.assert_allclose(one.mask, other.mask, atol=1e-5)
        weights = [
            {(word.premise_index, word.hypothesis_index) if model.pairs else word.index: word.weight for word in each}
            for each in (one.words, other.words)
        ]
        assert weights[0].keys() == weights[1].keys()
        for place, weight in weights[0].items():
            assert weight == pytest.approx(weights[1][place], abs=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_bilstm_models(name, tmp_path):
    folder = save_model(tmp_path / "model", **MODELS[name])
    model = Rationalizer.load(folder, device="cpu")
    if name == "pairs, no links":
        assert not model.explain_examples(model.examples(PAIRS[1:2]))[0].pairs
    for exported in (ExportedModel.load(folder), ExportedModel.load(export_model(folder, tmp_path / "out"))):
        assert_equal(model, exported)
        if not model.pairs and exported.manifest["method"]["follows_budget"]:
            assert_equal(model, exported, budget="100%" if model.constraints else "50%")
        for budget in AVERAGES if name == "average" else ():
            assert_equal(model, exported, budget=budget)


TRANSFORMERS = {
    "bert": {},
    "roberta": {"kind": "roberta", "gaps": "marked", "unselected": "mask", "window": 54, "overlap": 16},
    "closed gaps, windows": {"window": 50, "overlap": 16, "pooling": "max-mean", "method": "sparsemax"},
    "kept gaps, zero": {"gaps": "kept", "unselected": "zero", "shared": True},
    "pairs": {"method": "at-most-one"},
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers(name, tmp_path):
    settings = dict(TRANSFORMERS[name])
    encoder = write_encoder(tmp_path / "encoder", settings.pop("kind", "bert"))
    folder = save_model(tmp_path / "model", encoder=encoder, **settings)
    model = Rationalizer.load(folder, device="cpu")
    assert_equal(model, ExportedModel.load(export_model(folder, tmp_path / "out")))
    compact = ExportedModel.load(export_model(folder, tmp_path / "out", eight_bit=True))
    examples = model.examples(PAIRS if model.pairs else TEXTS)
    pairs = zip(model.explain_examples(examples), compact.explain_examples(examples), strict=True)
    assert max(abs(a.probabilities["yes"] - b.probabilities["yes"]) for a, b in pairs) < 0.2
