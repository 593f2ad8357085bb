"""The commands: real trainings on small data, and what bad input is answered with."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import rationalizer
from rationalizer import Rationalizer
from rationalizer.cli import app
from rationalizer.data import generated_reviews as reviews
from rationalizer.inference import evaluate
from rationalizer.models import TrainedModel
from tests.cli.calls import refused, run

SETTINGS = ("hidden=8", "vector_size=8", "epochs=2", "min_epochs=1", "batch_size=16")
TINY = [word for setting in SETTINGS for word in ("--set", setting)]


@pytest.fixture(scope="module")
def corpus():
    return reviews(train=240, dev=60, test=60)


def test_stream_option(table, tmp_path, monkeypatch):
    short = tmp_path / "short.csv"
    short.write_text("".join([*table.open().readlines()[:60], ",good\n"]))
    given = ["--column", "text=review", "--column", "label=stars"]
    training = [*TINY, "--out", tmp_path / "run", "--stream", "--cache-dir", tmp_path / "cache"]
    assert "row 60: the text is empty" in refused("train", short, *given, *training)
    told = run("train", short, *given, *training, "--skip-bad")
    (folder,) = (tmp_path / "cache").iterdir()
    assert f"texts stay on disk in {folder}" in told.stdout.replace("\n", "")
    assert "row 60: the text is empty" in told.stderr.replace("\n", " ")
    monkeypatch.delattr("rationalizer.data.streamed_labels.LabelsBuilder.add")  # the file is not read again
    assert "dev" in run("evaluate", tmp_path / "run").stdout
    stored = json.loads((tmp_path / "run" / "data.json").read_text())["source"]
    assert (stored["stream"], stored["cache_dir"]) == (True, str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def table(corpus, tmp_path_factory):
    """A user's own CSV, with names of its own for the columns."""
    path = tmp_path_factory.mktemp("table") / "mine.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "stars"])
        writer.writerows([e.text, ["bad", "good"][e.label]] for e in corpus.train)
    return path


@pytest.fixture(scope="module")
def trained(table, tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "mine"
    columns = ["--column", "text=review", "--column", "label=stars"]
    result = run("train", table, "--method", "pair-budget", "--budget", "25%", "--out", directory, *columns, *TINY)
    return directory, result


def test_train(trained, table):
    directory, result = trained
    assert result.stdout.startswith("Task: classification, 2 classes: bad, good\nmine: 216 train, 24 dev\n")
    assert f"pair-budget, budget 25%, seed 0: {directory}" in result.stdout
    assert f"rationalizer evaluate {directory}" in result.stdout
    assert "The folder keeps 6 texts" in " ".join(result.stdout.split())
    model = Rationalizer.load(directory)
    assert model.classes_.tolist() == ["bad", "good"]
    explained = model.explain("We found truly helpful lovely care.")
    assert 0 < explained.selected_word_count <= 2  # a quarter of 6 words
    config = model.config
    assert (str(config.budget), config.encoder_options["hidden"], config.epochs) == ("25%", 8, 2)


def test_evaluate_dev(trained, tmp_path):
    directory, printed = trained
    result = run("evaluate", directory, "--json", tmp_path / "scores.json", "--faithfulness")
    stored = json.loads((tmp_path / "scores.json").read_text())
    assert (stored["split"], stored["budget"], stored["scores"]["documents"]) == ("dev", "25%", 24)
    for name in ("comprehensiveness", "sufficiency", "aopc_comprehensiveness", "aopc_sufficiency"):
        assert name in stored["scores"]
    assert "p(y|x) is this model's predictor on the whole text" in result.stdout
    facts = json.loads(run("info", directory, "--json").stdout)  # has what was measured after the training
    assert {name: stored["scores"][name] for name in facts["scores"]["dev"]} == facts["scores"]["dev"]
    assert "scores, dev" in run("info", directory).stdout
    shown = f"{stored['scores']['macro_f1']:.3f}".removeprefix("0")
    assert shown in result.stdout
    assert shown in printed.stdout


def test_evaluate_other_data(trained, corpus, tmp_path):
    directory, _ = trained
    other = tmp_path / "other.jsonl"
    rows = [
        {"text": e.text, "label": ["bad", "good"][e.label], "rationale_mask": [int(z) for z in e.annotation]}
        for e in corpus.test
    ]
    other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("evaluate", directory, other, "--budget", "0.1", "--json", tmp_path / "scores.json")
    assert "other, all rows" in result.stdout
    stored = json.loads((tmp_path / "scores.json").read_text())
    expected = evaluate(TrainedModel.load(directory), corpus.test, budget=0.1).as_dict()
    assert stored["scores"] == pytest.approx(expected)
    assert expected["size"] < 0.15
    assert expected["annotated"] == 60
    assert "token-F1 (macro, empty = 0)" in result.stdout
    assert "omit --split" in refused("evaluate", directory, other, "--split", "test")
    assert "no test split" in refused("evaluate", directory, "--split", "test")
    assert "add a SOURCE" in refused("evaluate", directory, "--aspect", "food")


def test_evaluate_unknown_labels(trained, tmp_path):
    directory, _ = trained
    other = tmp_path / "other.csv"
    other.write_text("text,label\nlovely care,good\nlovely care,fine\n")
    assert "other.csv, row 2: the label 'fine'" in refused("evaluate", directory, other)
    assert "predicts bad, good, but the labels of reviews are negative, positive" in refused(
        "evaluate", directory, "reviews"
    )


def test_resume(trained, table):
    directory, first = trained
    again = ["train", table, "--method", "pair-budget", "--budget", "0.25", "--out", directory, *TINY]
    again += ["--column", "text=review", "--column", "label=stars"]
    before = (directory / "model.safetensors").stat().st_mtime_ns
    assert "--resume" in refused(*again)
    assert run(*again, "--resume").stdout == first.stdout
    assert (directory / "model.safetensors").stat().st_mtime_ns == before
    result = run(*again, "--resume", "--seed", "1", code=2)
    assert "seed" in result.stderr


def test_degeneration_warning(tmp_path):
    path = tmp_path / "coin.csv"
    path.write_text(
        "text,label\n" + "".join(f"w{k} w{k} once and again,{label}\n" for k in range(60) for label in (0, 1))
    )
    result = run("train", path, "--out", tmp_path / "run", "--method", "full-text", *TINY)
    assert "warning (dev): the predictor is no better" in result.stderr
    assert "selected completely" not in result.stderr  # which full-text does on purpose


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "revews"], "did you mean 'reviews'?"),
        (["train", "reviews", "--method", "spektra"], "did you mean 'spectra'?"),
        (["train", "reviews", "--set", "hiden=3"], "did you mean 'hidden'?"),
        (["train", "reviews", "--set", "hidden=few"], "'few'"),
        (["train", "reviews", "--set", "tv=1"], "fusedmax"),
        (["train", "reviews", "--set", "hidden"], "--set takes KEY=VALUE"),
        (["train", "reviews", "--budget", "0"], "got '0'"),
        (["train", "reviews", "--budget", "5", "--set", "budget=3"], "budget is given twice"),
        (["train", "reviews", "--aspect", "fod"], "got 'fod'"),
        (["train", "reviews", "--data-dir", "x"], "data_dir"),
        (["train", "reviews", "--column", "text"], "--column takes KEY=VALUE"),
        (["train", "reviews", "--embeddings", "no.txt"], "no.txt"),
        (["train", "reviews", "--device", "abacus"], "abacus"),
        (["train", "sst", "--data-dir", "nowhere"], "nowhere"),
        (["evaluate", "nowhere"], "sentiment, nli"),
        (["compare", "reviews", "--methods", "spectra,sve"], "did you mean 'sfe'?"),
        (["compare", "reviews", "--seeds", "a"], "--seeds 0,1,2"),
        (["compare", "reviews", "--budgets", "20,200"], "got '200'"),
        (["compare", "reviews", "--split", "train"], "got 'train'"),
        (["compare", "sst", "imdb", "--data-dir", "x"], "--data-dir sst=x"),
        (["compare", "revews", "--methods", "sfe"], "did you mean 'reviews'?"),
        (["compare", "reviews", "--engine", "slrum"], "did you mean 'slurm'?"),
        (["compare", "reviews", "--address", "auto"], "--address needs --engine ray"),
        (["compare", "reviews", "--engine", "ray", "--slurm", "mem=8G"], "--slurm needs --engine slurm"),
        (["compare", "reviews", "--engine", "slurm", "--slurm", "mem"], "--slurm takes KEY=VALUE"),
    ],
)
def test_bad_input(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments, code=2)
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.rglob("history.json"))


def test_traceback_option():
    with pytest.raises(ValueError, match="spektra"):
        CliRunner().invoke(app, ["--traceback", "train", "reviews", "--method", "spektra"], catch_exceptions=False)
    refused("train", "reviews", "--method", "spektra")


def test_compare(table, tmp_path):
    arguments = ["compare", table, "--methods", "pair-budget,full-text", "--seeds", "0", "--budgets", "10,20", *TINY]
    arguments += ["--column", "text=review", "--column", "label=stars", "--out", tmp_path, "--note", "reduced"]
    result = run(*arguments)
    assert "3 runs in" in result.stdout
    assert "3 runs trained now" in result.stdout
    assert "## mine (reduced)" in (tmp_path / "table.md").read_text()
    with (tmp_path / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], row["budget"]) for row in rows] == [
        ("pair-budget", "10%"),
        ("pair-budget", "20%"),
        ("full-text", ""),
    ]
    for row in rows:
        assert f"{float(row['macro_f1_mean']):.3f}".removeprefix("0") in result.stdout
    assert (tmp_path / "mine-macro-f1.svg").exists()
    assert "0 runs trained now" in run(*arguments).stdout


def test_interrupt_and_resume(table, tmp_path):
    """A process of its own: what it prints where, its exit code, and Ctrl-C in the middle of a run."""
    command = [sys.executable, "-m", "rationalizer", "train", str(table), "--method", "full-text", "--out", "run"]
    command += ["--column", "text=review", "--column", "label=stars", *TINY, "--set", "patience=none"]
    command[command.index("epochs=2")] = "epochs=100000"
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "run/checkpoint.safetensors").exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.splitlines()[-1].startswith("Stopped.")
    assert "mine: 216 train, 24 dev" in stdout
    for call in (["evaluate", tmp_path / "run"], ["explain", tmp_path / "run", "a text"], ["info", tmp_path / "run"]):
        assert "--resume" in refused(*call)


def test_version_and_help():
    assert run("--version").stdout.strip() == rationalizer.__version__
    for name in ("train", "evaluate", "compare"):
        assert name in run("--help").stdout
        assert "Usage" in run(name, "--help").stdout


def test_constraint_option(tmp_path):
    folder, table = tmp_path / "run", tmp_path / "mine.csv"
    corpus = reviews(train=60, dev=0, test=0)
    with table.open("w", newline="") as file:
        rows = [[example.text, corpus.classes[example.label]] for example in corpus.train]
        csv.writer(file).writerows([["text", "label"], *rows])
    small = [f"--set={s}" for s in ("hidden=8", "vector_size=8", "embeddings=none", "epochs=1", "min_epochs=1")]
    asked = ["--constraint", "spans=1", "--constraint", "never=stopwords"]
    printed = run("train", table, "--out", folder, *small, *asked).stdout
    assert "budget 20%, spans=1, never=stopwords" in printed
    assert "spans=1, never=stopwords" in run("info", folder).stdout
    kept = tmp_path / "scores.json"
    run("evaluate", folder, "--json", kept)
    own = json.loads(kept.read_text())
    assert own["constraints"] == ["spans=1", "never=stopwords"]
    run("evaluate", folder, "--json", kept, "--constraint", "none")
    free = json.loads(kept.read_text())
    assert free["constraints"] == []
    assert own["scores"]["spans"] <= 1 < free["scores"]["spans"]
    assert "sparsemax" in refused("train", table, "--method", "sparsemax", *asked)
