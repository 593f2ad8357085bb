"""A factor of one's own in a model of pairs: by name, in training, saved and loaded, exact in use."""

from __future__ import annotations

import itertools

import pytest
import torch

from rationalizer import Rationalizer
from rationalizer.constraints import BatchItem, ConstraintConflict, PairFactorConstraint, PairLayerConstraints
from rationalizer.data import make_examples
from rationalizer.graph import Factor
from rationalizer.nn import ALIGNERS
from rationalizer.text import PairExample
from tests.constraints.few_far import FewFar, far_links

SMALL = {"hidden": 8, "vector_size": 8, "epochs": 1, "batch_size": 8}
PAIR = ("Two old nurses often help dogs.", "Dogs never help two old medics.")
PAIRS = [PAIR, ("Two dogs help.", "Two dogs help.")] * 6
M, N = 4, 3


def pair_of(premise, hypothesis, position=0):
    return BatchItem(PairExample(*make_examples([premise, hypothesis])), position, 1)


class Together(PairFactorConstraint):
    """The first two premise words are aligned both or not at all: known to the engine by nothing but its oracle."""

    name = "together"

    def factors(self, z, pairs):
        return [BothOrNone(z)]


class BothOrNone(Factor):
    def map(self, scores):
        links = scores.masked_fill(~self.mask, -torch.inf).reshape(-1, M, N)
        best = torch.nn.functional.one_hot(links.argmax(-1), N).bool()
        some = torch.where((links > 0).any(-1, keepdim=True), links > 0, best)  # the best of each word that is not none
        both = torch.where(some, links, 0.0)[:, :2].sum((-2, -1)) > 0
        return torch.cat([some[:, :2] & both[:, None, None], links[:, 2:] > 0], dim=1).to(scores).flatten(1)


def matchings():
    for links in itertools.chain.from_iterable(
        itertools.combinations(list(itertools.product(range(M), range(N))), k) for k in range(min(M, N) + 1)
    ):
        if len({i for i, _ in links}) == len({j for _, j in links}) == len(links):
            yield links


KEPT = {
    "few-far": (FewFar(1), lambda links: sum(bool(far_links(M, N)[link]) for link in links) <= 1),
    "together": (Together(), lambda links: len({i for i, _ in links if i < 2}) != 1),
}
ASKED = {  # of a method, and what else is asked: what its alignments keep to
    ("at-most-one", ""): lambda links: True,
    ("budget", ""): lambda links: len(links) <= 2,
    ("xor-at-most-one", ""): lambda links: len(links) == N,
    ("ot-exact-k", ""): lambda links: len(links) == 2,
    ("at-most-one", "monotone"): lambda links: all(
        (a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in itertools.combinations(links, 2)
    ),
    ("at-most-one", "exactly"): lambda links: len(links) == 2,
    ("budget", "fixed"): lambda links: len(links) <= 2 and (0, 2) in links and (1, 1) not in links,
}


@pytest.mark.parametrize(("method", "limited"), ASKED)
@pytest.mark.parametrize("own", KEPT)
def test_decoding_is_optimal_and_relaxation_feasible(method, limited, own):
    """Against all matchings. The relaxation, where the method has one, is the projection onto a polytope that holds all
    of these, and becomes the best as the temperature falls."""
    constraint, keeps = KEPT[own]
    fixed = torch.zeros(1, M, N, dtype=torch.int8)
    fixed[0, 0, 2], fixed[0, 1, 1] = 1, -1
    more = {"monotone": {"monotone": True}, "exactly": {"exactly": 2}, "fixed": {"fixed": fixed}}.get(limited, {})
    limits = PairLayerConstraints(factors=(constraint,), texts=(pair_of("a b c d", "e f g"),), **more)
    masks = torch.ones(1, M, dtype=torch.bool), torch.ones(1, N, dtype=torch.bool)
    allowed = [links for links in matchings() if keeps(links) and ASKED[method, limited](links)]
    for seed in (4, 10):  # what is asked makes a difference
        scores = torch.randn(1, M, N, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 0.3
        best = max(allowed, key=lambda links: sum(float(scores[0][link]) for link in links))
        found = ALIGNERS[method]().decode(scores, *masks, torch.tensor([2]), limits).z
        assert {tuple(link) for link in found[0].nonzero().tolist()} == set(best)
        if method.startswith("ot-"):
            continue
        scores.requires_grad_()
        z = ALIGNERS[method](temperature=0.5).forward(scores, *masks, torch.tensor([2]), limits).z
        step = (scores / 0.5 - z).detach()[0]
        gains = [sum(float(step[link]) for link in links) - float((step * z[0].detach()).sum()) for links in allowed]
        assert max(gains) <= 1e-7  # no corner lies further in the direction that is left: z is the nearest point
        z.square().sum().backward()
        assert torch.isfinite(scores.grad).all()
        cold = ALIGNERS[method](temperature=1e-3).forward(scores, *masks, torch.tensor([2]), limits).z
        assert float((scores * (cold - found)).detach().sum()) >= -1e-6


@pytest.fixture(scope="module")
def model():
    asked = Rationalizer("at-most-one", constraints=["few-far=1"], **SMALL)
    return asked.fit(PAIRS, ["no", "yes"] * 6, progress=False, device="cpu")


def far_of(found):
    return sum(bool(far_links(*found.alignment.shape)[link]) for link in found.pairs)


def test_constraint_is_saved_and_can_be_changed(model, tmp_path):
    assert far_of(model.explain(*PAIR)) <= 1
    model.save(tmp_path / "run")
    again = Rationalizer.load(tmp_path / "run")
    assert again.constraints == (FewFar(1),)
    assert again.explain(*PAIR).pairs == model.explain(*PAIR).pairs
    found = again.explain([PAIR, PAIRS[1]], constraints=[FewFar(2), "must-align=words:two/two,dogs/dogs"])
    assert far_of(found[0]) == 2  # these two, and no others
    assert again.constraints == (FewFar(1),)


def test_infeasible_constraint_names_the_pair(model):
    with pytest.raises(ConstraintConflict, match=r"pair 2 \('Two old .* / 'Dogs never .*\) under few-far=1: "):
        model.explain([PAIRS[1], PAIR], constraints=["few-far=1", "must-align=words:two/two,dogs/dogs"])
    with pytest.raises(ValueError, match="softmax does not support your own factors"):
        Rationalizer("softmax", constraints=["few-far=1"])
