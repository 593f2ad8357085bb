"""Starter models: size, card, scores, and predictions for everyday sentences."""

import json
import runpy
import shutil
import warnings
from pathlib import Path

import pytest

from rationalizer import ExportedModel, Rationalizer
from rationalizer.hub import STARTERS, locate, starter
from rationalizer.models.atomic_files import read_record, write_record
from rationalizer.models.trained_model import CONFIG, VECTORS
from tests.cli.calls import refused, run

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_starters.py"
NEGATIVE = {
    "The battery died after two days and nobody answered my emails.": {"died", "nobody"},
    "Dull, predictable and far too long.": {"dull", "predictable", "long"},
    "The waiter was rude and the soup was cold.": {"rude", "cold"},
    "What a waste of money!": {"waste"},
    "I would not recommend this hotel to anyone.": {"not", "recommend"},
    "The worst customer service I have ever had.": {"worst"},
    "It broke the first time I used it.": {"broke"},
    "A boring film with terrible acting.": {"boring", "terrible"},
}
POSITIVE = {
    "A warm, funny film with a wonderful cast.": {"warm", "funny", "wonderful"},
    "It works perfectly and arrived on time.": {"perfectly"},
    "We loved the view and the breakfast was excellent.": {"loved", "excellent"},
    "The best headphones I have ever owned.": {"best"},
    "Friendly staff, spotless rooms and a great location.": {"friendly", "spotless", "great"},
    "I laughed all the way through this delightful comedy.": {"laughed", "delightful"},
    "Beautiful, moving and superbly acted.": {"beautiful", "moving", "superbly"},
    "My kids love it and so do I.": {"love"},
}
PAIRS = {
    ("A man plays a guitar on the street.", "A man plays an instrument."): "entailment",
    ("Two children are playing in the snow.", "The children are asleep in their beds."): "contradiction",
    ("A dog runs along the beach with a stick.", "An animal is outdoors."): "entailment",
    ("A woman is reading a book on a bench.", "A woman is swimming in the sea."): "contradiction",
    ("A man in a suit walks down the street.", "The man is walking to his new job at the bank."): "neutral",
}
PARAPHRASES = {
    ("The committee rejected the proposal on Monday.", "On Monday, the plan was turned down by the committee."): {
        ("committee", "committee"),
        ("proposal", "plan"),
        ("rejected", "turned"),
        ("Monday", "Monday"),
        (".", "."),
    },
    ("She bought a used car for her daughter.", "The mother purchased a car for her child."): {
        ("bought", "purchased"),
        ("car", "car"),
        ("daughter", "child"),
    },
}


@pytest.fixture(scope="module")
def sentiment():
    return Rationalizer.load("sentiment")


@pytest.fixture(scope="module")
def nli():
    return Rationalizer.load("nli")


@pytest.fixture(scope="module")
def align():
    return Rationalizer.load("align")


@pytest.mark.parametrize("name", STARTERS)
def test_size_and_card(name):
    found = starter(name)
    assert found.bytes < 4_000_000
    assert (found.folder / VECTORS).stat().st_size < 1000  # a name, not a table
    card = (found.folder / "README.md").read_text(encoding="utf-8")
    for row in found.facts.data:
        assert row["terms"] in card
    for row in found.facts.scores:
        first = row["accuracy"] if "accuracy" in row else row["alignment_f1"]
        assert f"| {row['data']} | {first:.3f}".replace("| 0.", "| .") in card
    for limit in found.facts.limits:
        assert limit in card
    assert found.facts.about in card


def test_scores():
    scores = {row["data"].split(",")[0]: row for name in STARTERS for row in starter(name).facts.scores}
    assert scores["SST test"]["accuracy"] > 0.8
    assert scores["IMDB test"]["accuracy"] > 0.85
    assert scores["SNLI dev"]["accuracy"] > 0.75
    assert scores["Edinburgh++ dev"]["alignment_f1"] > 0.82


@pytest.mark.parametrize(("label", "texts"), [("negative", NEGATIVE), ("positive", POSITIVE)])
def test_everyday_sentences(sentiment, label, texts):
    for explanation, expected in zip(sentiment.explain(list(texts)), texts.values(), strict=True):
        read = {token.lower() for token, chosen in zip(explanation.tokens, explanation.selected, strict=True) if chosen}
        assert explanation.label == label, explanation.text
        assert read & expected, f"{explanation.text}: {read}"
        assert 1 <= explanation.selected_word_count <= max(1, round(0.2 * explanation.word_count))


def test_everyday_pairs(nli):
    for (premise, hypothesis), label in PAIRS.items():
        found = nli.explain(premise, hypothesis)
        assert found.label == label, (premise, hypothesis)
        assert found.pairs


def test_everyday_paraphrases(align):
    for (first, second), expected in PARAPHRASES.items():
        found = align.explain(first, second)
        links = {(link.premise, link.hypothesis) for link in found.words}
        assert expected <= links, links
        assert ExportedModel.load("align").explain(first, second).pairs == found.pairs


def test_other_languages_warn(sentiment, nli):
    with pytest.warns(UserWarning, match="German"):
        found = sentiment.explain("Das Zimmer war sauber, aber das Personal war sehr unfreundlich.")
    assert found.warnings[0] in found.to_html()
    assert found.warnings[0] in str(found)
    with pytest.warns(UserWarning, match="The hypothesis seems to be in German"):
        nli.explain("A man plays a guitar on the street.", "Ein Mann spielt auf der Straße Gitarre.")


def test_examples(sentiment, nli):
    assert all(one.selected_word_count for one in sentiment.explain(starter("sentiment").examples))
    assert all(one.pairs for one in nli.explain(starter("nli").examples))


def test_folder_takes_precedence(spectra_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert locate("sentiment") == STARTERS["sentiment"]
    shutil.copytree(spectra_run, "sentiment")
    with pytest.warns(UserWarning, match="sentiment"):
        assert Rationalizer.load("sentiment").trained.encoder.vectors is None
    done = run("info", "sentiment", "--json")
    assert "note: loading the folder sentiment" in done.stderr
    assert json.loads(done.stdout)["data"]["source"] == "reviews"


def test_unknown_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="'sentiment'"):
        Rationalizer.load("sentimnt")
    assert "no folder runs; starter models: sentiment, nli, align" in refused("explain", "runs", "A text.")


def test_command_line():
    shown = run("explain", "sentiment", "The room was spotless but the staff was rude.").stdout
    assert "[+spotless]" in shown or "[-rude]" in shown
    listed = run("models").stdout
    for name in STARTERS:
        assert name in listed
        assert str(starter(name).folder / "README.md") in listed
    for words in ("Stanford Sentiment Treebank", "without a licence", "CC BY-SA 4.0", "MB"):
        assert words in listed
    scores = [row for name in STARTERS for row in starter(name).facts.scores]
    assert all(row["data"] in listed for row in scores)
    assert '"classes"' in run("info", "nli", "--json").stdout


def test_renew(tmp_path, sentiment):
    """A newer setting gets the value that leaves the model unchanged."""
    folder = shutil.copytree(STARTERS["sentiment"], tmp_path / "old")
    stored = read_record(folder / CONFIG)
    del stored["config"]["annotation_weight"]
    write_record(folder / CONFIG, {**stored, "format": 4})
    runpy.run_path(str(SCRIPT))["renew"](folder)
    assert read_record(folder / CONFIG)["config"]["annotation_weight"] == 0
    text = next(iter(NEGATIVE))
    assert Rationalizer.load(folder).explain(text).to_dict() == sentiment.explain(text).to_dict()
