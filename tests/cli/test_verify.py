"""`rationalizer explain --record` and `rationalizer verify`."""

import csv
import json
import os
import subprocess
import sys

import pytest

from rationalizer import Rationalizer
from rationalizer.data import generated_reviews
from rationalizer.records import read_records
from tests.cli.calls import refused, run
from tests.records.key_files import write_private, write_public

TEXTS = [example.text for example in generated_reviews(train=1, dev=1, test=12).test]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "review"], *enumerate(TEXTS), ["13", ""]])
    return path


@pytest.fixture
def decisions(spectra_run, table, tmp_path):
    """Records of all texts of the table, without the texts."""
    path = tmp_path / "decisions.jsonl"
    options = ("--file", table, "--column", "text=review", "--out", tmp_path / "out.jsonl")
    run("explain", spectra_run, *options, "--record", path, "--batch-size", 5)
    return path


def test_records_of_a_file(spectra_run, table, decisions):
    records = list(read_records(decisions))
    assert len(records) == len(TEXTS)
    assert all(text.text is None for record in records for text in record.texts)
    printed = run("verify", decisions, "--model", spectra_run, "--file", table, "--column", "text=review").stdout
    assert printed == "12 decisions: 12 identical\n"


def test_output_is_the_same_as_without_records(spectra_run, table, decisions, tmp_path):
    run("explain", spectra_run, "--file", table, "--column", "text=review", "--out", tmp_path / "plain.jsonl")
    plain, recorded = (
        [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        for name in ("plain.jsonl", "out.jsonl")
    )
    assert [row.keys() for row in plain] == [row.keys() for row in recorded]
    assert [row.get("spans") for row in plain] == [row.get("spans") for row in recorded]


def test_records_are_appended(spectra_run, tmp_path):
    path = tmp_path / "new" / "decisions.jsonl"
    for text in TEXTS[:2]:
        run("explain", spectra_run, text, "--record", path, "--record-text")
    assert [record.texts[0].text for record in read_records(path)] == TEXTS[:2]
    assert run("verify", path, "--model", spectra_run).stdout.endswith("2 identical\n")
    path.write_text(path.read_text()[:-1])
    assert "line" in refused("explain", spectra_run, TEXTS[0], "--record", path)


def test_resumed_output_records_each_row_once(spectra_run, table, decisions, tmp_path):
    out, again = tmp_path / "out.jsonl", tmp_path / "again.jsonl"
    complete = out.read_text()
    out.write_text("".join(complete.splitlines(keepends=True)[:9]))
    options = ("--file", table, "--column", "text=review", "--out", out, "--batch-size", 1, "--resume")
    run("explain", spectra_run, *options, "--record", again)
    assert out.read_text() == complete
    assert [record.texts[0].sha256 for record in read_records(again)] == [
        record.texts[0].sha256 for record in list(read_records(decisions))[8:]
    ]


def test_texts_are_found_by_their_hashes(spectra_run, tmp_path):
    path = tmp_path / "decisions.jsonl"
    run("explain", spectra_run, *TEXTS[:2], "--record", path)
    given = [part for text in reversed(TEXTS[:3]) for part in ("--text", text)]
    assert "2 identical" in run("verify", path, "--model", spectra_run, *given).stdout
    assert "SHA-256" in refused("verify", path, "--model", spectra_run, "--text", TEXTS[0])
    assert "record 1" in refused("verify", path, "--model", spectra_run)


def test_pairs(pair_run, tmp_path):
    path, pair = tmp_path / "decision.json", ("A man plays a guitar.", "A man makes music.")
    Rationalizer.load(pair_run).explain(*pair, record=True).record.save(path)
    texts = ("--text", pair[0], "--text", pair[1])
    assert "identical: the same words" in run("verify", path, "--model", pair_run, *texts).stdout


def test_exit_codes(spectra_run, sparsemax_run, tmp_path):
    path, other = tmp_path / "decision.json", tmp_path / "other.json"
    model = Rationalizer.load(spectra_run)
    model.explain(TEXTS[0], record="with-text").record.save(path)
    run("verify", path, "--model", spectra_run, code=0)
    assert "another model" in run("verify", path, "--model", sparsemax_run, code=1).stdout
    stored = json.loads(path.read_text())
    other.write_text(json.dumps({**stored, "label": "other"}))
    printed = run("verify", path, other, "--model", spectra_run, code=1).stdout
    assert "other.json, record 1: failed" in printed
    assert "1 identical, 1 failed" in printed
    name, value = next(iter(stored["probabilities"].items()))
    stored["probabilities"][name] = value + 1e-6
    other.write_text(json.dumps(stored))
    run("verify", other, "--model", spectra_run, code=1)
    stored["machine"]["processor"] = "another one"
    other.write_text(json.dumps(stored))
    printed = run("verify", other, "--model", spectra_run, code=0).stdout
    assert "not the same bits" in printed
    assert "another one" in printed
    for content in ("", "{}", json.dumps({**stored, "format": 99})):
        other.write_text(content)
        assert str(other) in refused("verify", other, "--model", spectra_run)
    refused("verify", tmp_path / "none.json", "--model", spectra_run)


def test_signed_records(spectra_run, tmp_path, monkeypatch):
    keys = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    key, other = keys.Ed25519PrivateKey.generate(), keys.Ed25519PrivateKey.generate()
    private, public = write_private(key, tmp_path / "key.pem", "secret"), write_public(key, tmp_path / "key.pub")
    foreign, path = write_public(other, tmp_path / "other.pub"), tmp_path / "decisions.jsonl"
    call = ("explain", spectra_run, TEXTS[0], "--record", path, "--record-text")
    verify = ("verify", path, "--model", spectra_run, "--public-key")
    assert "passphrase" in refused(*call, "--sign-key", private)
    monkeypatch.setenv("RATIONALIZER_SIGN_PASSPHRASE", "secret")
    run(*call, "--sign-key", private)
    run(*verify, public, code=0)
    assert "another key" in run(*verify, foreign, code=1).stdout
    run(*call)  # not signed
    assert "not signed" in run(*verify, public, code=1).stdout
    assert "openssl" in refused(*verify, private)


def test_options_that_contradict(spectra_run, table, tmp_path):
    assert "--record" in refused("explain", spectra_run, "text", "--record-text")
    assert "--record" in refused("explain", spectra_run, "text", "--sign-key", "key.pem")
    assert "folder" in refused("explain", spectra_run, "text", "--record", tmp_path)
    parquet = ("--file", table, "--column", "text=review", "--out", tmp_path / "out.parquet")
    assert "Parquet" in refused("explain", spectra_run, *parquet, "--record", tmp_path / "d.jsonl")
    assert "--file" in refused("verify", table, "--model", spectra_run, "--column", "text=review")


def test_other_instructions_and_threads(spectra_run, decisions, table):
    """In a process of its own, as on another machine: PyTorch reads these variables once."""
    command = [sys.executable, "-m", "rationalizer", "verify", decisions, "--model", spectra_run, "--file", table]
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [*map(str, command), "--column", "text=review"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 decisions" in done.stdout
