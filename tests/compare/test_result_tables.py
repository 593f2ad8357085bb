"""Tables and the paper's figures, from records made by hand."""

import csv
import io
import json
from pathlib import Path

import pytest

from rationalizer.compare import parse_methods, plan_runs
from rationalizer.compare.result_tables import markdown, summarize, write_tables
from rationalizer.data import DataSource
from rationalizer.data.dataset_registry import PUBLISHED
from rationalizer.metrics import METRICS
from rationalizer.nn import EXTRACTORS
from rationalizer.paper.reported_figures import _TABLES
from rationalizer.text import Budget


def record(findings=(), **scores):
    return {"scores": {"test": scores, "dev": {**scores, "size": 0.5}}, "findings": {"test": list(findings), "dev": []}}


def plan_small(source, methods, seeds=(0, 1, 2), budgets=None):
    return plan_runs([source], parse_methods(methods, source.pairs), seeds, budgets, {}, Path("out"))


def test_mean_minimum_maximum_and_the_papers_figures(tmp_path):
    values = iter([0.81, 0.78, 0.82, 0.5, 0.6, 0.7])
    runs = plan_small(DataSource.resolve("sst"), "spectra,sparsemax")
    runs.sort(key=lambda run: run.method.name != "spectra")
    done = [(run, record(macro_f1=next(values), size=0.2, seconds_per_epoch=12.345)) for run in runs]
    write_tables(summarize(done), tmp_path)
    text = (tmp_path / "table.md").read_text()
    assert "| method | budget | macro-F1 | macro-F1, paper | size | size, paper | s/epoch |" in text
    assert "| spectra | 20% | .803 (.780/.820) | .80 (.79/.81) | .200 (.200/.200) |  | 12.3 (12.3/12.3) |" in text
    assert "| sparsemax | any | .600 (.500/.700) | .82 (.81/.83) | .200 (.200/.200) | .17 (.13/.23) |" in text
    assert "Mean (minimum/maximum) over seeds 0, 1, 2, test split." in text
    assert "is not the paper's" not in text
    assert "(five seeds, 300-dimensional vectors)" in text

    rows = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert [row["method"] for row in rows] == ["spectra", "sparsemax"]
    assert float(rows[0]["macro_f1_mean"]) == pytest.approx((0.81 + 0.78 + 0.82) / 3)
    assert (rows[0]["macro_f1_min"], rows[0]["paper_macro_f1_mean"], rows[0]["budget"]) == ("0.78", "0.8", "20%")
    assert rows[1]["budget"] == ""

    stored = json.loads((tmp_path / "table.json").read_text())["rows"]
    assert stored[0]["scores"]["macro_f1"]["values"] == [0.81, 0.78, 0.82]
    assert stored[0]["paper"]["macro_f1"] == {"mean": 0.8, "min": 0.79, "max": 0.81}


def test_paper_figures_of_matchings():
    runs = plan_small(DataSource.resolve("snli"), "budget,budget:not-faithful,ot-exact-k:not-faithful,ot-exact-k", [0])
    text = markdown(summarize([(run, record(macro_f1=0.5, alignments=4.0, violation=0.0)) for run in runs]), {})
    assert "| budget | 4 pairs | .500 | .82 (.81/.82) | 4.00 | 0 |" in text
    assert "| budget:not-faithful | 4 pairs | .500 | .85 (.85/.86) | 4.00 | 0 |" in text
    assert "| ot-exact-k:not-faithful | 4 pairs | .500 | .81 (.81/.81) | 4.00 | 0 |" in text
    assert "| ot-exact-k | 4 pairs | .500 |  | 4.00 | 0 |" in text
    assert "(three seeds, 300-dimensional vectors)" in text


def test_reduced_data_is_noted_and_own_data_has_no_paper_columns():
    done = [(run, record(macro_f1=0.5)) for run in plan_small(DataSource.resolve("hotels"), "spectra", [0])]
    text = markdown(summarize(done, notes={"hotels-location": "rebuilt"}), {})
    assert "## hotels-location (rebuilt)" in text
    assert "our data is rebuilt, which is not the paper's" in text
    own = [(run, record(macro_f1=0.5)) for run in plan_small(DataSource.resolve("reviews"), "spectra", [0])]
    assert "paper" not in markdown(summarize(own), {})


def test_paper_is_quoted_only_on_test_at_its_budget():
    runs = plan_small(DataSource.resolve("sst"), "spectra", [0], [*map(Budget.share, (0.1, 0.2))])
    rows = summarize([(run, record(macro_f1=0.5)) for run in runs])
    assert [(str(row.budget), bool(row.paper)) for row in rows] == [("10%", False), ("20%", True)]
    rows = summarize([(run, record(macro_f1=0.5)) for run in runs], split="dev")
    assert not any(row.paper for row in rows)
    assert rows[0].scores["size"].mean == 0.5
    assert "no figures that are comparable" in markdown(rows, {})


def test_token_f1_is_compared_under_the_papers_convention():
    runs = plan_small(DataSource.resolve("beer"), "spectra", [0])
    text = markdown(summarize([(runs[0], record(mse=0.0123, token_f1=0.3, token_f1_paper=0.4))]), {})
    assert "| 10% | .0123 | .017 (.016/.019) | .300 | .400 | .61 (.56/.68) |" in text
    own = plan_small(DataSource.resolve("reviews"), "spectra", [0])
    assert "convention" not in markdown(summarize([(own[0], record(macro_f1=1, token_f1=0.3, token_f1_paper=0.4))]), {})


def test_missing_seeds_are_counted_per_budget():
    runs = plan_small(DataSource.resolve("reviews"), "spectra,sfe", [0, 1], [Budget.parse("5%"), Budget.parse("10%")])
    lacks = [("spectra", "10%", 1), ("sfe", "5%", 1), ("sfe", "10%", 0)]
    done = [
        (run, record(macro_f1=0.9))
        for run in runs
        if (run.method.name, str(run.config.budget), run.config.seed) not in lacks
    ]
    text = markdown(summarize(done), {})
    assert " Seed 0 only: spectra at 10%, sfe at 5%. Seed 1 only: sfe at 10%.\n" in text


def test_missing_seeds_and_findings_are_named():
    runs = plan_small(DataSource.resolve("reviews"), "spectra,sfe", [0, 1])
    finding = {"kind": "empty_rationales", "message": "half of them are empty", "value": 0.5}
    done = [
        (run, record([finding] if run.method.name == "sfe" else (), macro_f1=0.9))
        for run in runs
        if (run.method.name, run.config.seed) != ("spectra", 1)
    ]
    text = markdown(summarize(done), {})
    assert " Seed 0 only: spectra." in text
    assert "- sfe, budget 22%, seeds 0, 1: half of them are empty" in text
    with pytest.raises(ValueError, match="no test split"):
        summarize([(runs[0], {"scores": {"dev": {}}, "findings": {"dev": []}})], split="test")


def test_quoted_figures_are_complete_and_plausible():
    # Printed with a mean outside its own range.
    odd = {("task", "agnews", "hardkuma"), ("task", "imdb", "hardkuma")}
    for measure, rows, datasets in _TABLES:
        for (method, decoding), row in rows.items():
            assert method in EXTRACTORS
            assert len(row.split()) == 3 * len(datasets)
            for dataset in datasets:
                mean, low, high = PUBLISHED[dataset][measure, method, decoding]
                assert (low <= mean <= high) == ((measure, dataset, method) not in odd)
    assert PUBLISHED["imdb"]["task", "gumbel", "contiguous"] == (0.72, 0.72, 0.73)
    assert PUBLISHED["hotels-location"]["token_f1", "hardkuma", "deterministic"] == (0.52, 0.37, 0.57)
    assert ("token_f1", "spectra", None) not in PUBLISHED["sst"]
    assert ("task", "sfe", None) not in PUBLISHED["sst"]
    assert ("task", "ot-exact-k", "not-faithful") in PUBLISHED["snli"].keys() - PUBLISHED["mnli"].keys()
    assert "beer-aroma" not in PUBLISHED


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("macro_f1", 0.8126, ".813"),
        ("macro_f1", 1.0, "1.000"),
        ("macro_f1", 0.99996, "1.000"),
        ("sufficiency", -0.0124, "-.012"),
        ("mse", 0.01734, ".0173"),
        ("mse", 350.21, "350"),
        ("mse", 0.00004321, "4.32e-05"),
        ("seconds_per_epoch", 0.512, "0.51"),
        ("seconds_per_epoch", 61.26, "61.3"),
        ("documents", 60.0, "60"),
        ("spans", 2.967, "2.97"),
        ("violation", 0.0, "0"),
        ("violation", 0.0000012, "1.2e-06"),
    ],
)
def test_numbers(name, value, shown):
    assert METRICS[name].format_value(value) == shown
