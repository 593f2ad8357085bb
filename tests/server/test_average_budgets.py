"""Budgets on average: in the endpoint, on the page and in files, every text stays within its own bounds."""

import json
import re

import pytest

from rationalizer.data import generated_pairs, generated_reviews
from rationalizer.server import create_app, load_models
from rationalizer.text import Budget, is_punctuation
from tests.cli.calls import run
from tests.server.conftest import listening, local_client

BUDGETS = (None, "30% on average", "15% on average, 12% to 20%", "60% on average, 50% to 70%")


@pytest.fixture(scope="module")
def average_run(make_run):
    return make_run("spectra", "average", budget="22% on average, 10% to 40%")


@pytest.fixture(scope="module")
def pair_run(make_run):
    return make_run("budget", "average-pairs", budget="40% on average, 20% to 80%")


@pytest.fixture(scope="module")
def models(average_run, pair_run, spectra_run):
    return load_models([average_run, pair_run, spectra_run])


def assert_within_bounds(selected, words, budget):
    least, most = budget.bounds_for(words)
    assert least <= selected <= most


def sizes(explanation):
    """The numbers of selected and of all words that count."""
    counted = explanation["counted"]
    return sum(s for s, c in zip(explanation["selected"], counted, strict=True) if c), sum(counted)


def test_endpoint(models):
    texts = [example.text for example in generated_reviews(train=1, dev=1, test=12).test]
    texts += ["Lovely.", "Dirty rooms", "The staff was rude , and slow . " * 20]
    with local_client(create_app(models)) as client:
        for budget in BUDGETS:
            answer = client.post("/explain", json={"model": "average", "texts": texts, "budget": budget}).json()
            used = Budget.parse(budget or "22% on average, 10% to 40%")
            assert (answer["budget"], answer["least"], answer["most"]) == (used.amount, used.least, used.most)
            for text, explanation in zip(texts, answer["explanations"], strict=True):
                assert_within_bounds(*sizes(explanation), used)
                alone = client.post("/explain", json={"model": "average", "text": text, "budget": budget}).json()
                assert alone["explanations"][0]["selected"] == explanation["selected"]


def test_endpoint_for_pairs(models):
    pairs = [[text.text for text in pair.texts] for pair in generated_pairs(train=1, dev=1, test=12).test]
    with local_client(create_app(models)) as client:
        for budget in (None, "50% on average", "30% on average, 25% to 40%"):
            answer = client.post("/explain", json={"model": "average-pairs", "pairs": pairs, "budget": budget}).json()
            used = Budget.parse(budget or "40% on average, 20% to 80%")
            for explanation in answer["explanations"]:
                sides = (explanation["premise_tokens"], explanation["hypothesis_tokens"])
                words = min(sum(not is_punctuation(token) for token in side) for side in sides)
                assert_within_bounds(len(explanation["pairs"]), words, used)


def test_streamed_file(average_run, tmp_path):
    texts = [example.text for example in generated_reviews(train=1, dev=1, test=30).test]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    for number, budget in enumerate(BUDGETS[1:]):
        out = tmp_path / f"{number}.jsonl"
        run("explain", average_run, "--file", tmp_path / "in.jsonl", "--budget", budget, "--out", out)
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert [row["text"] for row in rows] == texts
        for row in rows:
            assert_within_bounds(*sizes(row), Budget.parse(budget))


def test_slider(page, models):
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    text = "We found truly helpful lovely care. Expect barely musty regrettable comfort, and slow staff at the bar."
    singles = [model for model in models if not model.pairs]
    with listening(create_app(singles, examples=[text])) as address:
        page.goto(address)
        amount, cards = page.locator("#amount"), page.locator("#results:not(.stale) article")
        playwright.expect(amount).to_have_text("22% on average, 10% to 40% of each text")
        for share in (30, 5, 80, 100):
            page.locator("#budget").fill(str(share))
            words = str(amount.inner_text())
            assert words.startswith(f"{share}% on average, {share / 2:g}% to {min(100, 2 * share)}%")
            playwright.expect(cards.first.locator(".method")).to_contain_text(words)
            selected, of = map(int, re.findall(r"\d+", cards.first.locator(".summary").inner_text())[:2])
            assert_within_bounds(selected, of, Budget.average(share / 100))
        # A model with a fixed budget, beside it, gets the same share.
        playwright.expect(cards.nth(1).locator(".method")).to_contain_text("up to 100% of the words")
