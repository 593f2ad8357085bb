"""Datasets of the literature by name, from folders made up for the purpose."""

import json

import pytest

from tests.cli.calls import refused, run
from tests.data.test_beer import beer_folder
from tests.data.test_corpus_files import write
from tests.data.test_hatexplain import originals, post
from tests.data.test_word_alignment import jacana

SETTINGS = ("hidden=8", "vector_size=8", "epochs=1", "min_epochs=1", "batch_size=16", "embeddings=none")
TINY = [word for setting in SETTINGS for word in ("--set", setting)]


@pytest.mark.parametrize("options", [(), ("--column", "rationale_mask=rationale_majority")])
def test_hatexplain(tmp_path, options):
    labels = [["offensive"] * 2, ["normal"] * 2, ["hatespeech"] * 2, ["normal", "offensive"]]
    posts = {str(k): post(labels[k % 4], [] if k % 4 == 1 else [[0, 1, 1, 0], [0, 0, 1, 0]]) for k in range(40)}
    folder = originals(tmp_path, posts, {"train": [str(k) for k in range(32)], "val": [str(k) for k in range(32, 40)]})
    shown = run("train", "hatexplain", "--data-dir", folder, "--out", tmp_path / "run", *options, *TINY).stdout
    assert (
        "3 classes: normal, offensive, hatespeech\nhatexplain: 24 train, 6 dev; human annotations in train, dev"
        in shown
    )
    assert "dropped because of their label: 8 of train, 2 of dev" in shown
    assert "budget 30%" in shown
    assert "token-F1" in run("evaluate", tmp_path / "run").stdout
    facts = json.loads(run("info", tmp_path / "run", "--json").stdout)
    assert facts["data"]["columns"] == dict([option.split("=") for option in options[1:]])


def test_binary_beer(tmp_path):
    beer_folder(tmp_path, packed=False)
    shown = run("train", "beer-binary", "--data-dir", tmp_path, "--out", tmp_path / "run", *TINY).stdout
    assert (
        "2 classes: negative, positive\nbeer-binary-appearance: 2 train, 1 dev, 2 test; human annotations in test"
        in shown
    )
    assert "budget 18%" in shown
    message = refused("train", "beer-binary", "--data-dir", tmp_path, "--aspect", "foam", "--out", tmp_path / "other")
    assert "appearance, aroma" in message


def test_movies_parquet(tmp_path):
    rows = [{"tokens": ["a", "bad", "film"], "label": k % 2, "rationale_spans": [[1, 2], [2, 2]]} for k in range(20)]
    write(tmp_path / "train.parquet", rows)
    write(tmp_path / "val.parquet", rows[:4])
    shown = run("train", "movies", "--data-dir", tmp_path, "--out", tmp_path / "run", *TINY).stdout
    assert "2 classes: negative, positive\nmovies: 20 train, 4 dev; human annotations in train, dev" in shown


def test_human_alignments(tmp_path):
    jacana(tmp_path / "RTE2_dev_M.align.json")
    found = run("evaluate", "nli", "msr-rte", "--data-dir", tmp_path, "--split", "train", "--overview").stdout
    assert "alignment, exact match" in found
    assert "accuracy" not in found  # there is nothing to predict
    shown = run("train", "msr-rte", "--data-dir", tmp_path, "--out", tmp_path / "run", *TINY).stdout
    assert "1 class: pair\nmsr-rte: 18 train, 2 dev; gold alignments in train, dev (used in training)" in shown
    assert "alignment-F1" in shown
    assert "accuracy" not in run("evaluate", tmp_path / "run", "--report", tmp_path / "report.html").stdout
    assert "macro-F1" not in (tmp_path / "report.html").read_text()
    facts = run("info", tmp_path / "run").stdout
    assert "alignment-F1" in facts
    row = {"premise": "Two women hug .", "hypothesis_tokens": ["They", "touch", "."], "label": "neutral"}
    write(tmp_path / "dev.jsonl", [row | {"hypothesis_highlight": [0, 1, 0]}])
    assert "marked words aligned, hypothesis" in run("evaluate", "nli", "esnli", "--data-dir", tmp_path).stdout


def test_annotator_comparison(tmp_path):
    people = [[1, 0, 0, 0], [1, 1, 0, 0]]
    row = {"tokens": ["Great", "food", "rude", "staff"], "label": 1, "masks": people}
    write(tmp_path / "dev.parquet", [row] * 3)
    kept = tmp_path / "scores.json"
    shown = run("evaluate", "sentiment", "yelp-hat", "--data-dir", tmp_path, "--json", kept).stdout
    assert "the other annotators" in shown
    assert "3 texts with 2.0 annotators each" in shown
    found = json.loads(kept.read_text())["people"]
    assert found["person"]["token_f1"] == pytest.approx(2 / 3)
    assert "training" in refused("train", "yelp-hat", "--data-dir", tmp_path, "--out", tmp_path / "run")


def test_unknown_dataset_lists_known_ones():
    message = refused("train", "hatexplane")
    assert "did you mean 'hatexplain'?" in message
    assert all(name in message for name in ("beer", "hotels", "movies", "hatexplain", "yelp-hat"))
