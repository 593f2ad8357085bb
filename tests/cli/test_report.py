"""`rationalizer evaluate --report`: a page that needs nothing beside it."""

import json
import os
import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
import torch

from rationalizer.data import generated_reviews as reviews
from rationalizer.inference.evaluate import FAITHFULNESS_PASSES, TrainedModel, evaluate
from tests.cli.calls import refused, run


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    corpus = reviews(train=1, dev=1, test=60)
    path = tmp_path_factory.mktemp("table") / "mine.csv"
    rows = [f"{e.text},{corpus.classes[e.label]},{' '.join(str(int(z)) for z in e.annotation)}" for e in corpus.test]
    path.write_text("\n".join(["text,label,rationale_mask", *rows]) + "\n")
    return path


def test_report(spectra_run, table, tmp_path):
    page = tmp_path / "report.html"
    result = run("evaluate", spectra_run, table, "--report", page)
    assert f"Report: {page}" in result.stdout
    html = page.read_text()
    assert "spectra on mine, all rows" in html
    shown = f"{evaluate(TrainedModel.load(spectra_run), _examples(table)).macro_f1:.3f}".removeprefix("0")
    assert shown in html
    assert "against budget" in html
    assert html.count("<svg") >= 2
    assert not re.search(r"src=|href=[^\"]|href=\"[^#]", html)
    assert 'href="#part-' in html
    assert not any(str(folder.parent) in html for folder in (spectra_run, table))


def test_corrections(spectra_run, table, tmp_path):
    page, file = tmp_path / "report.html", tmp_path / "wrong.jsonl"
    shown = run(
        "evaluate", spectra_run, table, "--report", page, "--corrections", file, "--json", tmp_path / "s"
    ).stdout
    examples = {example.text: ("negative", "positive")[example.label] for example in _examples(table)}
    (header, *rows) = map(json.loads, file.read_text().splitlines())
    assert header["classes"] == ["negative", "positive"]
    accuracy = json.loads((tmp_path / "s").read_text())["scores"]["accuracy"]
    assert len(rows) == round(len(examples) * (1 - accuracy)) > 0
    assert all(examples[row["text"]] == row["label"] for row in rows)
    assert f"{len(rows)} texts with a wrong prediction" in " ".join(shown.split())
    links = [unescape(link) for link in re.findall(r'<a href="(http[^"]*)">Correct this</a>', page.read_text())]
    assert len(links) == page.read_text().count("<article>") > 4
    assert all(link.startswith("http://127.0.0.1:8000/#text=") for link in links)
    assert {parse_qs(urlsplit(link).fragment)["text"][0] for link in links} <= examples.keys()


def test_overview(spectra_run, table, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")  # restored at the end
    shown = run("evaluate", spectra_run, table, "--overview", "--threads", torch.get_num_threads()).stdout
    assert os.environ["OMP_NUM_THREADS"] == str(torch.get_num_threads())
    assert "precision" in shown
    assert "true label, predicted as" in shown
    assert re.search(r"positive \(\d+\): .*\d+/\d+", shown)
    assert "Lowest confidence:" in shown
    assert "calibration error" in shown


def test_attribution_comparison(spectra_run, table, tmp_path):
    page = tmp_path / "report.html"
    shown = run("evaluate", spectra_run, table, "--attributions", "integrated-gradients", "--report", page).stdout
    assert re.search(r"the model's rationale +│ .* │ 100%", shown)
    assert re.search(r"integrated-gradients +│ [-.\d]+ +│ [-.\d]+ +│ \d+%", shown)
    assert shown.count("By integrated-gradients:") == 3
    section = page.read_text().split("<h2>Comparison with an attribution</h2>")[1]
    assert section.count("By integrated-gradients, and the prediction from the whole text") == 3
    message = refused("evaluate", spectra_run, table, "--attributions", "gradient")
    assert "unknown attribution 'gradient'" in message


def _examples(table):
    from rationalizer.data import Labels, read_examples

    return read_examples(table, labels=Labels("classification", ("negative", "positive")))


def test_report_without_budget(sparsemax_run, table, tmp_path):
    run("evaluate", sparsemax_run, table, "--report", tmp_path / "report.html")
    assert "against budget" not in (tmp_path / "report.html").read_text()


def test_pairs(pair_run, tmp_path):
    table = tmp_path / "pairs.csv"
    table.write_text(
        "premise,hypothesis,label\n" + "Two dogs run.,Animals run.,entailment\nDogs run.,Dogs sit.,neutral\n"
    )
    run("evaluate", pair_run, table, "--report", tmp_path / "report.html")
    assert "Animals" in (tmp_path / "report.html").read_text()


def test_no_report_if_scoring_fails(spectra_run, tmp_path):
    table = tmp_path / "bad.csv"
    table.write_text("text,label\nlovely care,good\n")
    assert "the label 'good'" in refused("evaluate", spectra_run, table, "--report", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("faithfulness", [False, True])
def test_progress_reaches_total(spectra_run, table, faithfulness):
    examples, told = _examples(table), []
    evaluate(TrainedModel.load(spectra_run), examples, faithfulness=faithfulness, on_batch=told.append)
    assert sum(told) == len(examples) * (1 + FAITHFULNESS_PASSES * faithfulness)
