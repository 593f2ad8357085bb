"""Pairs of texts on the command line, the HANS analysis, and the demo."""

import csv
import json
import re
import sys
from pathlib import Path

import pytest

from rationalizer.cli import demo as demo_module
from rationalizer.data import generated_pairs as pairs
from rationalizer.hub import starter
from tests.cli.calls import refused, run

SMALL = ["--set", "hidden=8", "--set", "vector_size=8", "--set", "epochs=1"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A user's file with two named columns, and gold alignments."""
    corpus = pairs(seed=3, train=60, dev=6, test=6)
    path = tmp_path_factory.mktemp("data") / "mine.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "answer", "label", "alignment"])
        for one in corpus.train:
            alignment = " ".join(f"{i}-{j}" for i, j in one.alignment)
            writer.writerow([one.premise.text, one.hypothesis.text, corpus.classes[one.label], alignment])
    return path


NAMED = ["--column", "premise=question", "--column", "hypothesis=answer"]


def test_train_evaluate_and_explain(table, tmp_path):
    folder = tmp_path / "run"
    done = run("train", table, *NAMED, "--method", "budget", "--budget", "3", "--out", folder, *SMALL)
    assert "budget, faithful, budget 3 pairs" in done.stdout
    assert "gold alignments in train, dev (not used in training)" in done.stdout
    assert "alignment-F1" in done.stdout
    run("evaluate", folder, "--json", tmp_path / "scores.json")
    scores = json.loads((tmp_path / "scores.json").read_text())["scores"]
    assert scores["violation"] == 0
    assert 0 < scores["alignments"] <= 3
    assert "single texts" in refused("evaluate", folder, "--faithfulness")


def test_compare_names_variants(table, tmp_path):
    methods = "at-most-one,at-most-one:not-faithful,softmax:not-faithful"
    run("compare", table, *NAMED, "--methods", methods, "--seeds", "0", "--out", tmp_path / "study", *SMALL)
    text = (tmp_path / "study" / "table.md").read_text()
    assert "| at-most-one:not-faithful |" in text
    assert "violation" in text
    assert (tmp_path / "study" / "mine-score-size.svg").is_file()
    said = refused("compare", table, *NAMED, "--methods", "spectra", "--out", tmp_path / "other")
    assert "'spectra'" in said
    refused("compare", table, "reviews", *NAMED, "--out", tmp_path / "other")


def _write_hans(folder, count):
    folder.mkdir()
    heuristics = {"l": "lexical_overlap", "s": "subsequence", "c": "constituent"}
    for name in ("train", "test"):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["premise", "hypothesis", "label", "heuristic", "subcase"])
            for k in range(count):
                for letter, heuristic in heuristics.items():
                    writer.writerow([f"The dog {k} saw a cat.", "The cat saw a dog.", 0, heuristic, f"{letter}n_swap"])
                    writer.writerow([f"The dog {k} saw a cat.", "The dog saw a cat.", 1, heuristic, f"{letter}e_same"])


def test_hans(table, tmp_path):
    _write_hans(tmp_path / "hans", 8)
    snli = tmp_path / "snli"
    snli.mkdir()
    corpus = pairs(seed=4, train=60, dev=12, test=6)
    for split in ("train", "dev"):
        with (snli / f"{split}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["premise", "hypothesis", "label"])
            for one in getattr(corpus, split):
                writer.writerow([one.premise.text, one.hypothesis.text, one.label])
            writer.writerow(["No label here.", "None at all.", -1])
    options = ["--data-dir", snli, "--hans-dir", tmp_path / "hans", "--out", tmp_path / "out", "--note", "tiny", *SMALL]
    done = run("hans", "snli", *options)
    assert "vanilla: 60 training pairs" in done.stdout
    assert "augmented: 108 training pairs" in done.stdout
    found = json.loads((tmp_path / "out" / "hans.json").read_text())
    assert set(found) == {"vanilla", "augmented"}
    trained = run("train", "snli", "--data-dir", snli, "--out", tmp_path / "run", *SMALL)
    assert "dropped because of their label: 1 of train, 1 of dev" in trained.stdout
    assert set(found["vanilla"]) == {
        f"{label} / {heuristic}"
        for label in ("entailment", "non-entailment")
        for heuristic in ("lexical_overlap", "subsequence", "constituent")
    }
    # Both pairs of a heuristic are the same for all three: so are the accuracies.
    assert len({found["vanilla"][f"entailment / {h}"] for h in ("lexical_overlap", "subsequence")}) == 1
    assert "| entailment | Lexical overlap |" in (tmp_path / "out" / "hans.md").read_text()
    assert "(tiny)" in (tmp_path / "out" / "hans.md").read_text()
    alone = run("hans", tmp_path / "out" / "vanilla", "--hans-dir", tmp_path / "hans")
    assert f"{found['vanilla']['entailment / subsequence']:.4f}".removeprefix("0") in alone.stdout
    run("hans", "snli", *options)
    assert json.loads((tmp_path / "out" / "hans.json").read_text()) == found


def test_hans_with_own_data(tmp_path):
    _write_hans(tmp_path / "hans", 4)
    corpus = pairs(seed=4, train=60, dev=12, test=6)
    files = {"mine": corpus.classes, "two": ("entailment", "contradiction", "contradiction")}
    for name, classes in files.items():
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            rows = ([one.premise.text, one.hypothesis.text, classes[one.label]] for one in corpus.train)
            csv.writer(file).writerows([["premise", "hypothesis", "label"], *rows])
    options = ["--hans-dir", tmp_path / "hans", "--out", tmp_path / "out", *SMALL]
    said = refused("hans", tmp_path / "two.csv", *options)
    assert "entailment, neutral, contradiction; got" in said
    assert not (tmp_path / "out").exists()  # said before an hour of training, not after it
    run("hans", tmp_path / "mine.csv", *options)
    assert len(json.loads((tmp_path / "out" / "hans.json").read_text())["augmented"]) == 6


def test_class_order_may_differ(table, tmp_path):
    """Of one's own file they are in alphabetical order, of a dataset in its own."""
    run("train", table, *NAMED, "--out", tmp_path / "run", *SMALL)
    run("evaluate", tmp_path / "run", "pairs", "--json", tmp_path / "named.json")
    corpus = pairs()
    with (tmp_path / "test.csv").open("w", newline="") as file:
        rows = ([one.premise.text, one.hypothesis.text, corpus.classes[one.label]] for one in corpus.test)
        csv.writer(file).writerows([["premise", "hypothesis", "label"], *rows])
    run("evaluate", tmp_path / "run", tmp_path / "test.csv", "--json", tmp_path / "file.json")
    named, own = (json.loads((tmp_path / f"{name}.json").read_text())["scores"] for name in ("named", "file"))
    assert named["accuracy"] == own["accuracy"]
    assert "predicts contradiction, entailment, neutral, but" in refused("evaluate", tmp_path / "run", "reviews")


def test_ignored_column(table, tmp_path):
    lines = table.read_text().splitlines()
    both = tmp_path / "both.csv"
    both.write_text("\n".join(["text," + lines[0], *(f"some text,{line}" for line in lines[1:])]))
    options = [*NAMED, "--column", "text=", "--out", tmp_path / "run", *SMALL]
    run("train", both, "--column", "alignment=", *options)
    assert "alignment-F1" not in run("evaluate", tmp_path / "run").stdout


def test_demo(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_module, "SETTINGS", {"epochs": 1})
    done = run("demo", "--out", tmp_path / "demo")
    texts, pairs, trained = re.split(r"(?:Pairs of sentences|A model of your own) ─", done.stdout)
    assert "[+spotless]" in texts or "[-rude]" in texts
    assert "premise: " in pairs
    assert "token-F1" in trained
    assert "generated reviews of hotel stays" in trained
    assert "marked in the data" in trained
    assert "rationalizer explain" in trained
    page = (tmp_path / "demo" / "report.html").read_text()
    shown = [*starter("sentiment").examples, *starter("nli").examples]
    assert page.count("<article") == len(shown) + demo_module.REPORTED
    assert "Pairs of sentences" in page


def test_demo_suggests_runnable_commands(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for line in demo_module._next_commands(demo_module._program_folder(), tmp_path):
        assert Path(line.split()[0]).is_file()
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    lines = demo_module._next_commands(demo_module._program_folder(), tmp_path)
    assert {line.split()[0] for line in lines} == {"rationalizer"}
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert any(line.startswith('pip install ".[web]"') for line in demo_module._next_commands("", tmp_path))
