"""A budget on average over texts: one multiplier, with hard bounds on each text."""

import json

import numpy as np
import pyarrow as pa
import pytest
import torch

from rationalizer.bulk import Explainer
from rationalizer.data import generated_pairs, generated_reviews, read_corpus, stream_corpus
from rationalizer.inference import evaluate, predict
from rationalizer.metrics import mask_to_spans
from rationalizer.models import TrainedModel, configure
from rationalizer.nn.average_budget import ScoredTexts, find_multiplier, mean_share, multiplier_table
from rationalizer.nn.extractors import EXTRACTORS
from rationalizer.server import create_app, load_models
from rationalizer.text import Budget
from rationalizer.training import train
from tests.server.conftest import local_client

pytestmark = pytest.mark.long

BUDGET = Budget.average(0.18, least=0.08, most=0.35)
SMALL = {"hidden": 8, "epochs": 2, "min_epochs": 1, "batch_size": 16, "embeddings": None, "vector_size": 16}


@pytest.fixture(scope="module")
def corpus():
    return generated_reviews(train=128, dev=96, test=64)


@pytest.fixture(scope="module", params=["spectra", "pair-budget"])
def trained(request, corpus):
    return train(corpus, configure(request.param, {**SMALL, "budget": str(BUDGET)}), threads=1)


def counts(trained, examples, **how):
    """The numbers of selected and of all words that count."""
    selected = predict(trained, examples, **how).selected
    counted = [trained.encoder.counted(example.tokens) for example in examples]
    chosen = [int((mask & real).sum()) for mask, real in zip(selected, counted, strict=True)]
    return np.array(chosen), np.array([int(real.sum()) for real in counted])


def test_bounds_hold_for_every_text(trained, corpus):
    for budget in (BUDGET, Budget.average(0.12, least=0.1, most=0.2), Budget.average(0.5, least=0.4, most=0.6)):
        chosen, words = counts(trained, corpus.test, budget=budget)
        assert (chosen <= budget.most * words + 1e-9).all()
        assert (chosen >= budget.least * words - 1e-9).all()
        assert (chosen > 0).all()


def test_average_on_dev(trained, corpus):
    chosen, words = counts(trained, corpus.dev)
    assert len(set(chosen / words)) > 5  # not the same share of every text
    assert np.mean(chosen / words) == pytest.approx(0.18, abs=0.01)
    for share in (0.12, 0.24, 0.3):  # under the bounds of the training
        chosen, words = counts(trained, corpus.dev, budget=Budget.average(share, least=0.08, most=0.35))
        assert np.mean(chosen / words) == pytest.approx(share, abs=0.03)


def test_default_bounds_have_a_table(trained, corpus):
    assert trained.history["calibration"]["default_bounds"]["shares"]
    for share in (0.12, 0.3, 0.4, 0.6, 1.0):
        chosen, words = counts(trained, corpus.dev, budget=f"{share:.0%} on average")
        assert np.mean(chosen / words) == pytest.approx(share, abs=0.02)
        assert (chosen <= np.floor(2 * share * words + 1e-9)).all()
        assert (chosen >= share / 2 * words - 1e-9).all()


def test_scores_report_the_sizes(trained, corpus):
    scores = evaluate(trained, corpus.test)
    assert scores["size_min"] < scores["size"] < scores["size_max"]


def test_texts_do_not_influence_each_other(trained, corpus):
    together = predict(trained, corpus.test).selected
    for example, mask in zip(corpus.test[:10], together, strict=False):
        assert np.array_equal(predict(trained, [example]).selected[0], mask)


def test_saved_model(trained, corpus, tmp_path):
    trained.save(tmp_path)
    loaded = TrainedModel.load(tmp_path)
    assert loaded.config.budget == BUDGET
    assert loaded.history["calibration"] == trained.history["calibration"]
    for ours, theirs in zip(predict(loaded, corpus.test).selected, predict(trained, corpus.test).selected, strict=True):
        assert np.array_equal(ours, theirs)
    trained.with_budget("20%").save(tmp_path / "fixed")
    again = TrainedModel.load(tmp_path / "fixed").with_budget(BUDGET)
    assert np.array_equal(counts(again, corpus.test)[0], counts(trained, corpus.test)[0])


def test_bulk_and_server_use_the_stored_table(trained, corpus, tmp_path):
    trained.save(tmp_path)
    (served,) = load_models([tmp_path])
    texts = [example.text for example in corpus.test[:12]]
    with local_client(create_app([served])) as client:
        for budget in (None, "14% on average, 8% to 35%", "enough, at most 40%, 52% certain"):
            expected = [each.rationale for each in served.model.explain_examples(corpus.test[:12], budget=budget)]
            body = {"texts": texts, "budget": budget}
            answer = client.post("/explain", json=body).json()
            assert [each["rationale"] for each in answer["explanations"]] == expected
            alone = client.post("/explain", json=body | {"texts": texts[:1]}).json()
            assert alone["explanations"][0]["rationale"] == expected[0]
    assert (answer["budget"], answer["budget_unit"], answer["certainty"]) == (0.4, "enough", 0.52)
    rows = Explainer(served.model)(pa.table({"text": texts[:5]})).to_pylist()
    assert [row["rationale"] for row in rows] == [each.rationale for each in served.model.explain(texts)][:5]


def test_streamed_texts_give_the_same_table(corpus, tmp_path):
    file = tmp_path / "x.jsonl"
    rows = ({"text": e.text, "label": corpus.classes[e.label]} for e in corpus.train)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = configure("spectra", {**SMALL, "epochs": 1, "budget": BUDGET})
    first, second = (
        train(each, config, threads=1).history["calibration"]
        for each in (read_corpus(file), stream_corpus(file, cache_dir=tmp_path / "cache"))
    )
    assert first == second


def test_fixed_budgets_remain_possible(trained, corpus):
    chosen, words = counts(trained, corpus.test, budget="10%")
    assert (chosen <= np.maximum(1, np.round(0.1 * words))).all()


def test_a_model_without_multipliers_refuses(corpus):
    fixed = train(corpus, configure("spectra", {**SMALL, "epochs": 1}), threads=1)
    with pytest.raises(ValueError, match="average"):
        fixed.with_budget(BUDGET)


@pytest.mark.parametrize("method", [name for name, kind in EXTRACTORS.items() if not kind.supports_average])
def test_other_methods_refuse(method):
    with pytest.raises(ValueError, match="spectra"):
        configure(method, {"budget": BUDGET})


def test_refused_combinations():
    for constraint in ("monotone", "exactly-k=2"):
        with pytest.raises(ValueError, match=constraint.partition("=")[0]):
            configure("budget", {"budget": BUDGET, "constraints": constraint}, pairs=True)
    with pytest.raises(ValueError, match="budget"):
        configure("at-most-one", {"budget": BUDGET}, pairs=True)


@pytest.mark.parametrize("constraint", ["spans=2", "never=stopwords"])
def test_constraints(constraint, corpus):
    settings = {**SMALL, "epochs": 1, "budget": BUDGET, "constraints": constraint}
    trained = train(corpus, configure("spectra", settings), threads=1)
    chosen, words = counts(trained, corpus.dev)
    assert (chosen <= 0.35 * words + 1e-9).all()
    assert (chosen >= 0.08 * words - 1e-9).all()  # there are enough other words than stopwords
    assert np.mean(chosen / words) == pytest.approx(0.18, abs=0.02)
    if constraint == "spans=2":
        assert all(len(mask_to_spans(mask)) <= 2 for mask in predict(trained, corpus.dev).selected)
    chosen, words = counts(trained, corpus.test, constraints="spans=1")  # other ones than in training
    assert (chosen <= 0.35 * words + 1e-9).all()
    assert (chosen >= 0.08 * words - 1e-9).all()


def test_pairs():
    corpus = generated_pairs(train=96, dev=64, test=32)
    budget = Budget.average(0.4, least=0.2, most=0.8)
    trained = train(corpus, configure("budget", {**SMALL, "budget": budget}, pairs=True), threads=1)
    for share, constraints in ((0.4, None), (0.5, "never-align=words:the/the")):
        asked = Budget.average(share, least=0.2, most=0.8)
        aligned = predict(trained, corpus.dev, budget=asked, constraints=constraints).selected
        links = np.array([matrix.sum() for matrix in aligned])
        words = np.array([min(matrix.shape) for matrix in aligned])
        assert (links <= np.maximum(1, 0.8 * words)).all()
        assert (links >= np.minimum(0.2 * words, 1)).all()
        assert all(matrix.sum(0).max() <= 1 and matrix.sum(1).max() <= 1 for matrix in aligned)
        if constraints is None:
            counted = [min(int(mask.sum()) for mask in masks(trained, pair)) for pair in corpus.dev]
            assert np.mean(links / counted) == pytest.approx(0.4, abs=0.03)
    together = predict(trained, corpus.test).selected
    for example, matrix in zip(corpus.test[:5], together, strict=False):
        assert np.array_equal(predict(trained, [example]).selected[0], matrix)


def masks(trained, pair):
    return [trained.encoder.counted(text.tokens) for text in pair.texts]


@pytest.fixture
def method():
    torch.manual_seed(0)
    return EXTRACTORS["spectra"](5, transition=0.3)


def rows(generator):
    scores = torch.randn(200, 40, generator=generator)
    return scores, torch.arange(40) < torch.randint(5, 41, (200, 1), generator=generator)


def scored(method, budget, scores, mask):
    return [ScoredTexts.of(method, budget, scores, (mask,))]


def test_multiplier_of_any_average(method):
    words = rows(torch.Generator().manual_seed(0))
    texts = scored(method, BUDGET, *words)
    values = [mean_share(method, texts, multiplier) for multiplier in np.linspace(-4, 4, 30)]
    assert (np.diff(values) <= 0).all()
    for share in (0.12, 0.18, 0.3):
        assert mean_share(method, texts, find_multiplier(method, share, texts)) == pytest.approx(share, abs=1e-3)
    shares, multipliers = multiplier_table(method, 0.18, texts)
    assert shares == sorted(shares)
    assert (np.diff(multipliers) < 0).all()
    found = BUDGET.calibrated({"shares": shares, "multipliers": multipliers, "least": 0.08, "most": 0.35})
    assert mean_share(method, texts, found.multiplier) == pytest.approx(0.18, abs=2e-3)


@pytest.mark.parametrize("start", [-3.0, 3.0])
def test_dual_ascent_reaches_the_average(method, start):
    method.track_average(BUDGET)
    method.multiplier = torch.tensor(start)
    scores, mask = rows(torch.Generator().manual_seed(1))
    for _ in range(200):
        average = BUDGET.average_bounds(mask)
        extraction = method(torch.zeros(200, 40, 5), mask, BUDGET.word_limit(mask), average=average)
        loss = method.loss(extraction._replace(scores=scores), torch.zeros(200), mask, BUDGET.word_limit(mask))
        method.multiplier = loss.state["multiplier"]
    assert mean_share(method, scored(method, BUDGET, scores, mask), float(method.multiplier)) == pytest.approx(
        0.18, abs=0.01
    )


def test_gradient_within_the_bounds(method):
    """Between its bounds a text gets more words if all its scores rise; at a bound it does not."""
    method.temperature = 0.1  # so that the relaxed number of words is near the decoded one
    method.track_average(BUDGET)
    mask = torch.ones(1, 40, dtype=torch.bool)
    states = torch.randn(1, 40, 5, generator=torch.Generator().manual_seed(2))
    scores = method.score(states).detach()
    between = (
        find_multiplier(method, 0.18, scored(method, BUDGET, scores, mask)) - 0.05
    )  # not exactly where a word enters
    for multiplier, moves in ((between, True), (-9.0, False), (9.0, False)):
        method.multiplier = torch.tensor(multiplier)
        z = method(states, mask, BUDGET.word_limit(mask), average=BUDGET.average_bounds(mask)).z
        (gradient,) = torch.autograd.grad(z.sum(), method.scorer.bias)
        assert (abs(float(gradient)) > 1e-3) == moves
