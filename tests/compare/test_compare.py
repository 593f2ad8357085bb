"""Comparisons that train in this process, and their tables."""

import json
import shutil

import numpy as np
import pytest
from sklearn.metrics import f1_score

from rationalizer.compare import combine_objectives, compare, parse_methods, plan_runs
from rationalizer.data import DataSource, read_corpus
from rationalizer.inference import predict
from rationalizer.models import TrainedModel
from rationalizer.text import Budget, is_punctuation
from rationalizer.training import trainer
from rationalizer.training.loop import TrainingLoop
from tests.compare.small_runs import SMALL, learned, plan_small
from tests.training.interrupted import Killed

pytestmark = pytest.mark.long  # runs with `test_engines.py`, which uses the same comparison
BUDGETS = [Budget.share(0.1), Budget.share(0.2)]


def test_tables_match_the_saved_models(study, folder):
    out, runs, done = study
    assert (done.trained, done.failed) == (4, [])
    test = read_corpus(folder).test
    truth = [example.label for example in test]
    stored = json.loads((out / "table.json").read_text())["rows"]
    assert [(row["method"], row["seeds"], row["split"]) for row in stored] == [
        ("pair-budget", [0, 1], "test"),
        ("sparsemax", [0, 1], "test"),
    ]
    for row in stored:
        macro, size, agreement = [], [], []
        for seed in row["seeds"]:
            directory = next(j.directory for j in runs if j.method.label == row["method"] and j.config.seed == seed)
            found = predict(TrainedModel.load(directory), test)
            macro.append(f1_score(truth, found.outputs.argmax(1), average="macro"))
            words = [[not is_punctuation(token) for token in example.tokens] for example in test]
            size.append(np.mean([np.mean(w[k] > 0) for w, k in zip(found.weights, words, strict=True)]))
            gold = [np.array(example.annotation) for example in test]
            agreement.append(np.mean([f1_score(g, w > 0) for g, w in zip(gold, found.weights, strict=True)]))
        for name, values in (("macro_f1", macro), ("size", size), ("token_f1", agreement)):
            summary = row["scores"][name]
            assert summary["values"] == pytest.approx(values)
            assert summary["mean"] == pytest.approx(np.mean(values))
            assert (summary["min"], summary["max"]) == pytest.approx((min(values), max(values)))
            shown = f"{summary['mean']:.3f}".removeprefix("0")
            assert f"| {row['method']} |" in (out / "table.md").read_text()
            assert f" {shown} (" in (out / "table.md").read_text()
    assert stored[0]["scores"]["seconds_per_epoch"]["min"] > 0


def test_second_call_trains_nothing(study, monkeypatch):
    out, runs, _ = study
    monkeypatch.setattr(TrainingLoop, "training_step", None)
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*") if path.is_file()}
    table = json.loads((out / "table.json").read_text())
    done = compare(runs, out)
    assert (done.trained, done.failed) == (0, [])
    assert before == {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*") if path.is_file()}
    assert json.loads((out / "table.json").read_text()) == table


def test_only_what_is_missing_is_trained(study, folder, tmp_path):
    out = shutil.copytree(study[0], tmp_path / "study")  # other tests read the tables in the shared folder
    reported = []
    more = plan_small(folder, out, "full-text,pair-budget")
    done = compare(more, out, on_run_end=lambda count, outcome: reported.append(outcome.run.title))
    assert done.trained == 2
    assert reported == ["small, full-text, seed 0", "small, full-text, seed 1"]
    assert [row.method for row in done.rows] == ["full-text", "pair-budget"]
    assert not done.rows[0].findings.get("full_rationales")


def test_threads_are_set_and_not_measured(folder, tmp_path, monkeypatch):
    """Measured times would depend on the other runs."""
    monkeypatch.setattr(trainer, "measure_threads", None)
    runs = plan_small(folder, tmp_path, "full-text", seeds=(0,), epochs=1, batch_size=160)
    done = compare(runs, tmp_path, threads=2)
    assert (done.trained, done.failed) == (1, [])
    assert TrainedModel.load(runs[0].directory).history["threads"] == 2


def test_runs_with_other_settings_raise(study, folder):
    out, _, _ = study
    with pytest.raises(ValueError, match="hidden = 8, not 9"):
        compare(plan_small(folder, out, hidden=9), out)
    compare(plan_small(folder, out, checkpoint_seconds=5), out)  # does not change the result


def test_runs_on_other_texts_raise(folder, tmp_path):
    """The path and the settings are the same, but the file was edited."""
    copy = tmp_path / "small"
    shutil.copytree(folder, copy)
    runs = plan_small(copy, tmp_path / "out", "full-text")
    compare(runs, tmp_path / "out")
    lines = (copy / "train.jsonl").read_text().splitlines(keepends=True)
    (copy / "train.jsonl").write_text("".join(lines[:-1]))
    with pytest.raises(ValueError, match="holds a run with other training data"):
        compare(runs, tmp_path / "out")


def test_failed_run_does_not_stop_the_others(folder, tmp_path, monkeypatch):
    original = TrainingLoop.training_step

    def training_step(self, batch):
        if self.config.method == "sparsemax":
            raise RuntimeError("out of memory")
        return original(self, batch)

    monkeypatch.setattr(TrainingLoop, "training_step", training_step)
    done = compare(plan_small(folder, tmp_path, "sparsemax,full-text", [0]), tmp_path)
    assert done.trained == 1
    assert [outcome.run.method.name for outcome in done.failed] == ["sparsemax"]
    assert "RuntimeError: out of memory" in done.failed[0].error
    assert [row.method for row in done.rows] == ["full-text"]


def test_killed_comparison_resumes_to_the_same_weights(study, folder, tmp_path, monkeypatch):
    """Killed in the second epoch of the second run: the first run is not repeated, the second resumes."""
    runs = plan_small(folder, tmp_path, "pair-budget", [0]) + plan_small(
        folder, tmp_path, "sparsemax", [0], checkpoint_seconds=0
    )
    taken, deadly, original = [], ("sparsemax", 13), TrainingLoop.training_step

    def training_step(self, batch):
        taken.append((self.config.method, self.progress.step))
        if taken.count(deadly) == 1 and taken[-1] == deadly:
            raise Killed
        return original(self, batch)

    monkeypatch.setattr(TrainingLoop, "training_step", training_step)
    with pytest.raises(Killed):
        compare(runs, tmp_path)
    assert not (tmp_path / "table.json").exists()
    taken_before = len(taken)
    done = compare(runs, tmp_path)
    assert (done.trained, done.failed) == (1, [])
    assert taken[taken_before:] == [("sparsemax", step) for step in range(13, 20)]
    for run in runs:
        assert learned(run.directory) == learned(study[0] / run.directory.relative_to(tmp_path))
    assert [row.method for row in done.rows] == ["pair-budget", "sparsemax"]


def test_sweep_is_drawn(folder, tmp_path):
    own = tmp_path / "small"
    shutil.copytree(folder, own)
    (own / "note.txt").write_text("reduced\n")
    runs = plan_runs(
        [DataSource.resolve(str(own))], parse_methods("pair-budget,full-text"), [0], BUDGETS, SMALL, tmp_path
    )
    done = compare(runs, tmp_path)
    names = [path.name for path in done.files]
    against_budget = ["small-macro-f1.svg", "small-token-f1.svg", "small-iou-f1.svg", "small-auprc.svg"]
    assert names == ["table.md", "table.csv", "table.json", "small-score-size.svg", *against_budget, "small-cost.svg"]
    assert "![small-macro-f1.svg](small-macro-f1.svg)" in (tmp_path / "table.md").read_text()
    assert "small (reduced), test: macro-F1 against budget" in (tmp_path / "small-macro-f1.svg").read_text()
    sizes = [row.scores["size"].mean for row in done.rows if row.method == "pair-budget"]
    assert 0 < sizes[0] < sizes[1] < 0.25
    assert {row.note for row in compare(runs, tmp_path, notes={"small": "rebuilt"}).rows} == {"rebuilt"}


def test_objectives_have_rows_of_their_own(folder, tmp_path):
    variants, _ = combine_objectives(parse_methods("pair-budget"), ["joint", "mcd"])
    runs = plan_runs([DataSource.resolve(str(folder))], variants, [0], None, SMALL, tmp_path)
    done = compare(runs, tmp_path)
    assert [row.method for row in done.rows] == ["pair-budget+joint", "pair-budget+mcd"]
    table = (tmp_path / "table.md").read_text()
    assert "| pair-budget+mcd |" in table
    assert compare(runs, tmp_path).trained == 0
