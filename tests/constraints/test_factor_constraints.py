"""A factor of one's own in a model: by name, in training, saved, and loaded where nobody has imported it."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest
import torch

from rationalizer import Rationalizer
from rationalizer.constraints import (
    CONSTRAINTS,
    BatchItem,
    ConstraintConflict,
    FactorConstraint,
    LayerConstraints,
    Spans,
)
from rationalizer.graph import Factor
from rationalizer.nn.extractors import graph_selection
from rationalizer.text import Example, sentence_numbers
from tests.constraints.few_sentences import FewSentences

SMALL = {"hidden": 8, "vector_size": 8, "epochs": 1, "batch_size": 8, "transition": 0.0}
TEXT = "A good room. Bad food here. A rude staff."
TEXTS = [TEXT, "Good staff. Good food.", "Rude staff. Good view.", "A bad room. Bad view."] * 4
LABELS = ["bad", "good", "bad", "bad"] * 4


def example(text: str) -> Example:
    tokens, at = [], 0
    for token in text.replace(".", " .").split():
        at = text.index(token, at)
        tokens.append((token, (at, at + len(token))))
        at += len(token)
    return Example(text, *(tuple(part) for part in zip(*tokens, strict=True)))


@pytest.fixture(scope="module")
def model():
    return Rationalizer(budget=4, constraints=["few-sentences=1"], **SMALL).fit(
        TEXTS, LABELS, progress=False, device="cpu"
    )


def sentences(explanation) -> set[int]:
    numbers = sentence_numbers(example(explanation.text))
    return {int(numbers[i]) for i, weight in enumerate(explanation.mask) if weight}


def test_constraint_can_be_changed_after_training(model):
    assert model.constraints == (FewSentences(1),)
    assert len(sentences(model.explain(TEXT))) == 1
    both = model.explain(TEXT, constraints=["few-sentences=2", Spans(1)])
    assert len(sentences(both)) <= 2
    assert sum(weight for weight, counts in zip(both.mask, both.counted, strict=True) if counts) <= 4


def test_round_trip_in_a_new_process(model, tmp_path):
    model.save(tmp_path / "run")
    script = (
        "from rationalizer import Rationalizer\n"
        "try:\n    Rationalizer.load({run!r})\n"
        "except ValueError as error:\n    print(error)\n"
        "import tests.constraints.few_sentences\n"
        "print(Rationalizer.load({run!r}).explain({text!r}))\n"
    )
    code = script.format(run=str(tmp_path / "run"), text=TEXT)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    unknown, _, shown = run.stdout.partition("\n")
    assert "there is no constraint 'few-sentences'" in unknown
    assert "rationalizer.plugins" in unknown
    assert shown.strip() == str(model.explain(TEXT)).strip()


def test_entry_point_is_loaded_by_name(tmp_path, monkeypatch):
    (tmp_path / "odd_words.py").write_text(
        "from dataclasses import dataclass\n"
        "from rationalizer.constraints import FactorConstraint, register\n"
        "@register('odd-words', 'odd-words')\n"
        "@dataclass(frozen=True, repr=False)\n"
        "class OddWords(FactorConstraint):\n"
        "    def factors(self, z, texts):\n"
        "        return []\n"
    )
    package = tmp_path / "odd_words-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-words\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[rationalizer.plugins]\nodd-words = odd_words:OddWords\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert Rationalizer(constraints=["odd-words"]).constraints[0].name == "odd-words"
    finally:
        CONSTRAINTS.pop("odd-words", None)


@pytest.mark.parametrize("transition", [0.0, 0.4])
@pytest.mark.parametrize("other", [{}, {"spans": 1}])
def test_decoding_is_optimal_and_relaxation_feasible(transition, other):
    """Against all selections; the relaxation keeps the budget, and becomes the decision as the temperature falls."""
    text = example("a b. c d. e f.")
    numbers = sentence_numbers(text)
    mask = torch.tensor([[token != "." for token in text.tokens]])
    limits = LayerConstraints(factors=(FewSentences(2),), texts=(BatchItem(text, 0, 1),), **other)
    words = mask[0].nonzero().flatten().tolist()
    budget = torch.tensor([3])
    for seed in range(6):
        scores = torch.randn(1, len(text.tokens), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        best = 0.0
        for count in range(4):
            for chosen in itertools.combinations(range(len(words)), count):
                pairs = sum(b == a + 1 for a, b in itertools.pairwise(chosen))
                spans = count - pairs
                if len({int(numbers[words[i]]) for i in chosen}) <= 2 and spans <= other.get("spans", 9):
                    best = max(best, float(scores[0, [words[i] for i in chosen]].sum()) + transition * pairs)
        y = graph_selection.decode(scores, mask, budget, limits, transition=transition)
        chosen = [i for i, word in enumerate(words) if y[0, word]]
        pairs = sum(b == a + 1 for a, b in itertools.pairwise(chosen))
        assert float((scores * y).sum()) + transition * pairs == pytest.approx(best, abs=1e-9)
        scores.requires_grad_()
        z = graph_selection.relax(scores, mask, budget, limits, transition=transition, temperature=0.5)
        assert z.sum() <= 3 + 1e-9
        assert (z[~mask] == 0).all()
        z.square().sum().backward()
        assert torch.isfinite(scores.grad).all()


def test_infeasible_constraint_names_the_text():
    class Never(Factor):
        def map(self, scores):
            return torch.ones_like(scores)

    class All(FactorConstraint):
        name = "all"

        def factors(self, z, texts):
            return [Never(z, dim=-1)]

    limits = LayerConstraints(factors=(All(),), texts=(BatchItem(example(TEXT), 4, 9),))
    scores = torch.randn(1, len(example(TEXT).tokens), dtype=torch.float64)
    with pytest.raises(ConstraintConflict, match=r"text 5 \('A good room\. .* under all: "):
        graph_selection.decode(scores, torch.ones_like(scores).bool(), torch.tensor([2]), limits, transition=0.0)


def test_unsupported_methods_raise():
    with pytest.raises(ValueError, match="use one of spectra, pair-budget"):
        Rationalizer("sfe", constraints=[FewSentences(2)])
