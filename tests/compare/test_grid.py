"""The runs of a comparison: which ones, with what settings, in which folders."""

from pathlib import Path

import pytest

from rationalizer.compare import (
    Variant,
    combine_objectives,
    parse_assignments,
    parse_budgets,
    parse_methods,
    parse_objectives,
    parse_seeds,
    plan_runs,
)
from rationalizer.compare.grid import PlannedRun
from rationalizer.data import Columns, DataSource
from rationalizer.nn import OBJECTIVES
from rationalizer.text import Budget

SST = DataSource.resolve("sst")
REVIEWS = DataSource.resolve("reviews")


def folders(runs):
    return [str(run.directory) for run in runs]


def test_methods_seeds_and_budgets_are_crossed():
    runs = plan_runs([REVIEWS], parse_methods("spectra,sfe"), [0, 3], [*map(Budget.share, (0.1, 0.2))], {}, Path("out"))
    found = {(run.method.name, run.config.seed, run.config.budget) for run in runs}
    assert found == {(m, s, b) for m in ("spectra", "sfe") for s in (0, 3) for b in map(Budget.share, (0.1, 0.2))}
    assert len(set(folders(runs))) == len(runs) == 8
    assert folders(runs)[0] == "out/runs/reviews/spectra/budget-10/seed-0"


def test_methods_without_budget_run_once_per_seed():
    budgets = [*map(Budget.share, (0.05, 0.1, 0.2))]
    runs = plan_runs([REVIEWS], parse_methods("sparsemax,fusedmax,full-text,hardkuma"), [0, 1], budgets, {}, Path("o"))
    counts = {name: sum(run.method.name == name for run in runs) for name in ("sparsemax", "fusedmax", "full-text")}
    assert set(counts.values()) == {2}
    assert sum(run.method.name == "hardkuma" for run in runs) == 6
    assert "o/runs/reviews/full-text/any-budget/seed-1" in folders(runs)


def test_budget_and_preset_of_datasets():
    hotels = plan_runs([DataSource.resolve("hotels")], parse_methods("spectra"), [0], None, {}, Path("out"))[0]
    assert (str(hotels.config.budget), hotels.config.patience, hotels.config.encoder_options["hidden"]) == (
        "15%",
        25,
        200,
    )
    assert str(hotels.directory) == "out/runs/hotels-location/spectra/budget-15/seed-0"
    snli = plan_runs(
        [DataSource.resolve("snli")], parse_methods("budget:not-faithful", True), [0], None, {}, Path("out")
    )[0]
    assert (snli.config.budget, snli.config.faithful) == (Budget.count(4), False)
    assert str(snli.directory) == "out/runs/snli/budget-not-faithful/budget-4-pairs/seed-0"
    own = plan_runs([REVIEWS], parse_methods("spectra"), [0], None, {}, Path("out"))[0]
    assert (str(own.config.budget), own.config.encoder_options["hidden"]) == ("22%", 64)


def test_file_named_like_a_dataset_gets_no_preset(tmp_path):
    path = tmp_path / "sst-mine.csv"
    path.write_text("text,label\ngood,1\nbad,0\n")
    run = plan_runs([DataSource.resolve(str(path))], parse_methods("spectra"), [0], None, {}, tmp_path)[0]
    assert run.config.encoder_options["hidden"] == 64
    assert run.source.name == "sst-mine"


def test_settings_for_all_methods_and_for_one():
    settings = {"hidden": "8", "spectra.temperature": "0.5", "sfe.hidden": "9"}
    spectra, sfe = plan_runs([REVIEWS], parse_methods("spectra,sfe"), [0], None, settings, Path("out"))
    assert (spectra.config.encoder_options["hidden"], spectra.config.options["temperature"]) == (8, 0.5)
    assert sfe.config.encoder_options["hidden"] == 9
    with pytest.raises(ValueError, match=r"METHOD\.temperature="):
        plan_runs([REVIEWS], parse_methods("spectra,sfe"), [0], None, {"temperature": "0.5"}, Path("out"))
    with pytest.raises(ValueError, match=r"'spektra'.*'spectra'"):
        plan_runs([REVIEWS], parse_methods("sfe"), [0], None, {"spektra.temperature": "1"}, Path("out"))
    with pytest.raises(ValueError, match="--seeds"):
        plan_runs([REVIEWS], parse_methods("sfe"), [0], None, {"seed": "1"}, Path("out"))


def test_decodings():
    assert Variant.parse("sfe:top-k") == Variant("sfe")  # its default
    run = plan_runs([REVIEWS], [Variant.parse("sfe:contiguous")], [0], None, {}, Path("out"))[0]
    assert run.config.options["decoding"] == "contiguous"
    assert "/sfe-contiguous/" in str(run.directory)
    with pytest.raises(ValueError, match=r"'viterbi'.*sfe:top-k, sfe:contiguous"):
        Variant.parse("sfe:viterbi")
    with pytest.raises(ValueError, match="'top-k'"):
        Variant.parse("spectra:top-k")


def test_objectives_are_a_second_axis():
    methods = parse_methods("spectra,sfe,full-text")
    variants, left_out = combine_objectives(methods, parse_objectives("joint,mcd"))
    assert [each.label for each in variants] == ["spectra+joint", "spectra+mcd", "sfe+joint", "full-text"]
    assert len(left_out) == 1
    assert "sfe" in left_out[0]
    runs = plan_runs([SST], variants, [0], None, {"mcd.full_text_weight": 2, "full-text.epochs": 3}, Path("out"))
    assert [run.config.objective for run in runs] == ["joint", "mcd", "joint", "joint"]  # the last by the preset
    assert runs[1].config.objective_options["full_text_weight"] == 2
    assert [run.config.epochs for run in runs] == [25, 25, 25, 3]
    assert folders(runs)[1] == "out/runs/sst/spectra+mcd/budget-20/seed-0"
    assert PlannedRun.from_json(runs[1].to_json()) == runs[1]
    assert "spectra+mcd" in runs[1].title
    every, _ = combine_objectives(parse_methods("spectra"), parse_objectives("all"))
    assert {each.objective for each in every} == set(OBJECTIVES)


def test_impossible_objectives_raise():
    spectra = [Variant("spectra", objective="joint")]
    with pytest.raises(ValueError, match="mcd"):
        parse_objectives("mcdd")
    with pytest.raises(ValueError, match="twice"):
        parse_objectives("mcd,mcd")
    with pytest.raises(ValueError, match="differentiable"):
        combine_objectives(parse_methods("sfe"), ["mcd"])
    with pytest.raises(ValueError, match="--objectives"):
        plan_runs([REVIEWS], spectra, [0], None, {"objective": "mcd"}, Path("out"))
    with pytest.raises(ValueError, match=r"OBJECTIVE\.full_text_weight="):
        plan_runs([REVIEWS], spectra, [0], None, {"full_text_weight": 1}, Path("out"))


def test_parse_lists():
    assert parse_budgets("20,2,5%") == [*map(Budget.share, (0.02, 0.05, 0.2))]
    assert parse_seeds("2, 0") == [2, 0]
    assert parse_assignments(["a=1", "b=x=y"], "--set") == {"a": "1", "b": "x=y"}
    for text, message in (
        ("10,150", "'150'"),
        ("2,,5", "commas"),
        ("5,5", "twice"),
    ):
        with pytest.raises(ValueError, match=message):
            parse_budgets(text)
    with pytest.raises(ValueError, match="'-1'"):
        parse_seeds("0,-1")
    with pytest.raises(ValueError, match="'sfe'"):
        parse_methods("sfe,sfe:top-k")
    with pytest.raises(ValueError, match="'hidden'"):
        parse_assignments(["hidden"], "--set")
    with pytest.raises(ValueError, match="'a'"):
        parse_assignments(["a=1", "a=2"], "--set")


def test_sources_with_the_same_name_raise(tmp_path):
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / "mine.csv")
        paths[-1].write_text("text,label\ngood,1\nbad,0\n")
    with pytest.raises(ValueError, match="'mine'"):
        plan_runs([DataSource.resolve(str(p)) for p in paths], parse_methods("sfe"), [0], None, {}, tmp_path)


def test_source_json_round_trip(folder):
    source = DataSource.resolve(str(folder), columns=Columns.from_names({"text": "text"}))
    assert DataSource.from_json(source.to_json()) == source
    assert source.name == "small"
    assert len(source.load().train) == 160
    with pytest.raises(ValueError, match=r"'txt'.*'text'"):
        Columns.from_names({"txt": "review"})
