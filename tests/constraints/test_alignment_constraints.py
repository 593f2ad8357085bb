"""Constraints on alignments: written, trained with, kept, changed in use, and refused where they cannot hold."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import torch

from rationalizer import Rationalizer
from rationalizer.constraints import (
    Constraint,
    ConstraintConflict,
    ExactlyK,
    Monotone,
    MustAlign,
    NeverAlign,
    PairLayerConstraints,
)
from rationalizer.constraints.base import BatchItem
from rationalizer.constraints.pair_layer_arguments import PairRequirements
from rationalizer.data import generated_pairs
from rationalizer.nn import ALIGNERS
from rationalizer.text import Example, PairExample

SMALL = {"hidden": 8, "vector_size": 8, "epochs": 1, "batch_size": 16}
PAIR = ("Two old nurses often help dogs.", "Two medics never help old cats.")


@pytest.fixture(scope="module")
def data():
    corpus = generated_pairs(seed=2, train=48, dev=8, test=8)
    return [(e.premise.text, e.hypothesis.text) for e in corpus.train], [corpus.classes[e.label] for e in corpus.train]


def fitted(data, method, constraints, **settings):
    model = Rationalizer(method, constraints=constraints, **SMALL, **settings)
    return model.fit(*data, progress=False, device="cpu")


@pytest.fixture(scope="module")
def model(data):
    return fitted(data, "at-most-one", ["monotone"])


def crossing(pairs) -> bool:
    return any((a - c) * (b - d) <= 0 for (a, b), (c, d) in itertools.combinations(pairs, 2))


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("must-align=equal", MustAlign(equal=True)),
        ("must-align=equal,stopwords", MustAlign(equal=True, stopwords=True)),
        ("must-align=equal,words:not/never,good/great", MustAlign([("not", "never"), ("good", "great")], equal=True)),
        ("never-align=stopwords", NeverAlign(stopwords=True)),
        ("monotone", Monotone()),
        ("exactly-k=3", ExactlyK(3)),
    ],
)
def test_text_and_json_round_trip(text, constraint):
    assert Constraint.parse(text) == constraint
    assert Constraint.parse(str(constraint)) == constraint
    assert Constraint.parse(constraint.to_json()) == constraint
    assert constraint.pairs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("must-align", "no words"),
        ("must-align=stopwords", "give equal too"),
        ("never-align=good", r"equal, stopwords or words:\.\.\. was expected, got 'good'"),
        ("never-align=words:good", r"words are pairs such as \[\('not', 'never'\)\]"),
        ("exactly-k=0", "k must be at least 1"),
        ("monotone=2", "takes no value"),
    ],
)
def test_invalid_constraint_raises(text, message):
    with pytest.raises(ValueError, match=message):
        Constraint.parse(text)


def test_constraints_are_saved_and_can_be_changed(model, tmp_path):
    found = model.explain(*PAIR)
    assert not crossing(found.pairs)
    model.save(tmp_path / "run")
    again = Rationalizer.load(tmp_path / "run")
    assert again.constraints == (Monotone(),)
    assert again.explain(*PAIR).pairs == found.pairs
    assert len(again.explain(*PAIR, constraints=["exactly-k=2"]).pairs) == 2
    both = again.explain(*PAIR, constraints=[MustAlign(equal=True), NeverAlign([("nurses", "medics")])])
    aligned = {(words.premise, words.hypothesis) for words in both.words}
    assert {("Two", "Two"), ("help", "help"), ("old", "old")} <= aligned
    assert ("nurses", "medics") not in aligned
    linked = again.explain([PAIR, PAIR], constraints=[MustAlign(links=[[(0, 5)], []]), Monotone()])
    assert linked[0].pairs == ((0, 5),)
    assert linked[1].pairs == found.pairs
    shape = (len(found.premise_tokens), len(found.hypothesis_tokens))
    nothing = torch.ones(shape, dtype=torch.int64)
    assert again.explain(*PAIR, constraints=[NeverAlign(matrix=nothing)]).pairs == ()
    with pytest.warns(UserWarning, match="No word is selected under never-align=matrix"):
        again.predict([PAIR], constraints=[NeverAlign(matrix=nothing)])


@pytest.mark.parametrize("method", ["budget", "xor-at-most-one", "ot-relaxed", "ot-exact-k"])
def test_all_decoding_methods_satisfy_constraints(data, method):
    model = fitted(data, method, ["monotone", "never-align=words:two/two"], budget="100%")
    for found in model.explain(data[0][:12]):
        assert not crossing(found.pairs)
        assert ("Two", "Two") not in found.words


@pytest.mark.parametrize("method", ["at-most-one", "budget", "xor-at-most-one"])
def test_relaxation_satisfies_constraints(method):
    """No gradient reaches a link that crosses one that must be aligned, and what is fixed is 1."""
    fixed = torch.zeros(1, 4, 5, dtype=torch.int8)
    fixed[0, 1, 2] = 1
    scores = torch.randn(1, 4, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    masks = torch.ones(1, 4, dtype=torch.bool), torch.ones(1, 5, dtype=torch.bool)
    z = (
        ALIGNERS[method]()
        .forward(scores, *masks, torch.tensor([3]), PairLayerConstraints(monotone=True, fixed=fixed))
        .z
    )
    assert z[0, 1, 2] == 1
    assert (z[0, 0, 3:] == 0).all()
    assert (z[0, 2:, :2] == 0).all()
    z.square().sum().backward()
    assert (scores.grad[0, 0, 3:] == 0).all()


def test_conflict_names_the_pair_and_the_constraints(model, data):
    cases = {
        r"pair 1 \('Two old .* under must-align=equal, never-align=equal: 'Two'–'Two' must be .* but never may": [
            "must-align=equal",
            "never-align=equal",
        ],
        "'Two'–'never' and 'Two'–'medics' must be aligned .*, but a word has one partner at most": [
            MustAlign(links=[(0, 2), (0, 1)])
        ],
        r"'Two'–'old' and 'old'–'Two' must be aligned .*, but they cross": [
            MustAlign(links=[(0, 4), (1, 0)]),
            "monotone",
        ],
        r"no alignment by at-most-one satisfies all of them \(6 and 6 words\)": ["exactly-k=7"],
        r"\(0, 44\) .* pair 1": [MustAlign(links=[(0, 44)])],
        "there are 1 pair": [MustAlign(links=[[(0, 0)], [(0, 0)]])],
        "cannot both hold": ["exactly-k=2", "exactly-k=3"],
        "constraint spans=2 is for single texts": ["spans=2"],
    }
    for message, constraints in cases.items():
        with pytest.raises(ValueError, match=message):
            model.explain(*PAIR, constraints=constraints)
    with pytest.raises(ConstraintConflict, match=r"train: pair \d+ .* no alignment by budget .* budget 1"):
        fitted(data, "budget", ["must-align=equal"], budget=1)
    with pytest.raises(ValueError, match="cannot be used in"):
        Rationalizer("budget", constraints=[MustAlign(links=[(0, 0)])])
    with pytest.raises(ValueError, match="already determines exactly-k=2"):
        Rationalizer("xor-at-most-one", constraints=["exactly-k=2"])
    with pytest.raises(ValueError, match=r"softmax does not follow constraints \(monotone\)"):
        Rationalizer("softmax", constraints=["monotone"])


@pytest.mark.parametrize("kind", [MustAlign, NeverAlign])
def test_many_pairs_of_words_on_long_texts_are_fast(kind):
    tokens = tuple(f"w{k}" for k in range(490)) if kind is MustAlign else ("a",) * 490
    pairs = list(zip(tokens, tokens, strict=True))
    text = Example(" ".join(tokens), tokens, ((0, 0),) * 490)
    requirements = PairRequirements(BatchItem(PairExample(text, text), 0, 1))
    started = time.monotonic()
    kind(words=(pairs * 3)[:1000]).update_pair(requirements)
    assert requirements.find_conflict(*[np.ones(490, dtype=bool)] * 2, monotone=True) is None
    assert time.monotonic() - started < 1
    assert len(requirements.must) == (490 if kind is MustAlign else 0)
    assert requirements.never.all() == (kind is NeverAlign)
