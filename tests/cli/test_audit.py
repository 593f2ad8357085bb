"""`rationalizer audit`."""

import json

import pytest

from rationalizer.data import load
from tests.cli.calls import refused, run
from tests.export.untrained_models import save_model


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    path = tmp_path_factory.mktemp("audit") / "reviews.jsonl"
    corpus = load("reviews")
    rows = [{"text": row.text, "label": ("negative", "positive")[row.label]} for row in corpus.dev[:60]]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_report_and_exit_code(reviews, tmp_path):
    page, stored = tmp_path / "audit.html", tmp_path / "audit.json"
    checks = ["--check", "replaced-words", "--check", "budget"]
    printed = run("audit", "sentiment", reviews, *checks, "--report", page, "--json", stored).output
    assert "No leak found: 2 checks passed" in printed
    assert "Audit of sentiment" in page.read_text()
    assert json.loads(stored.read_text())["passed"] is True


def test_leak_has_exit_code_1(tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    rows = [{"premise": f"a man number {k} plays music", "hypothesis": "somebody plays"} for k in range(30)]
    pairs.write_text("".join(json.dumps({**row, "label": "no"}) + "\n" for row in rows))
    model = save_model(tmp_path / "model", "at-most-one", premise_context="whole")
    printed = run("audit", model, pairs, "--check", "replaced-words", code=1).output
    assert "1 leak found: replaced-words" in printed


def test_labels_are_optional(reviews, tmp_path):
    texts = tmp_path / "texts.csv"
    rows = [json.loads(line)["text"] for line in reviews.read_text().splitlines()]
    texts.write_text("text\n" + "".join(f'"{row}"\n' for row in rows[:30]))
    printed = run("audit", "sentiment", texts, "--check", "budget").output
    assert "texts: 30," in printed
    assert "accuracy" not in printed
    assert "accuracy" in run("audit", "sentiment", reviews, "--check", "budget").output
    assert "--split" in refused("audit", "sentiment", texts, "--split", "dev")


def test_limit_takes_a_sample(reviews):
    assert "texts: 25," in run("audit", "sentiment", reviews, "--check", "budget", "--limit", 25).output


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(["reviews.csv", "--check", "budgets"], "budget"), ([], "SOURCE"), (["--data-dir", "x"], "SOURCE")],
)
def test_bad_input(arguments, word):
    assert word in refused("audit", "sentiment", *arguments)
