"""Runs in subprocesses, on Ray and through submitit give the same weights and stop cleanly."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from rationalizer.compare import compare
from rationalizer.compare.engines import LocalEngine, RayEngine, SlurmEngine
from rationalizer.compare.engines.slurm_engine import _minutes
from rationalizer.compare.single_run import RunOutcome, RunTask
from rationalizer.data import DataError
from rationalizer.ray_cluster import ray_session
from rationalizer.subprocesses import CommandResult
from rationalizer.text.errors import InputError
from rationalizer.training.folder_lock import LOCK
from rationalizer.training.loop import TrainingLoop
from tests.compare.small_runs import learned, plan_small

pytestmark = pytest.mark.long

ENDLESS = {"epochs": 100_000, "patience": "none", "checkpoint_seconds": 0}


@pytest.fixture
def two(folder, tmp_path):
    """Return a run of `study` and a run that does not end by itself."""
    return plan_small(folder, tmp_path, "pair-budget", [0]) + plan_small(
        folder, tmp_path, "pair-budget", [1], **ENDLESS
    )


def when_trained_on(run, deadline=300):
    """Return the ID of the training process, after its first checkpoint."""
    begun = time.monotonic()
    while not (run.directory / "checkpoint.safetensors").exists():
        assert time.monotonic() - begun < deadline, f"{run.title} has kept no checkpoint"
        time.sleep(0.01)
    return int((run.directory / LOCK).read_text())


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def assert_learned_the_same(run, tmp_path, study):
    assert learned(run.directory) == learned(study[0] / run.directory.relative_to(tmp_path))


def test_subprocesses_give_the_same_weights_and_stop_on_interrupt(two, tmp_path, study, monkeypatch):
    """Ctrl-C after the first of two runs; the next call resumes the second from its checkpoint."""
    done, endless = two
    trained_by = []

    def ended(count, outcome):
        assert (outcome.run, outcome.error) == (done, None)
        trained_by.append(when_trained_on(endless))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(two, tmp_path, engine=LocalEngine(2), on_run_end=ended)
    assert not is_alive(trained_by[0])
    assert_learned_the_same(done, tmp_path, study)

    steps = []

    def training_step(self, batch):
        steps.append(self.progress.step)
        raise RuntimeError("enough")

    monkeypatch.setattr(TrainingLoop, "training_step", training_step)
    again = compare(two, tmp_path)
    assert [outcome.run for outcome in again.failed] == [endless]
    assert steps[0] > 0, "it began again instead of going on"


def test_ray_gives_the_same_weights(folder, tmp_path, study):
    runs = plan_small(folder, tmp_path, "pair-budget", [0])
    with ray_session(None, cores=2):
        comparison = compare(runs, tmp_path, engine=RayEngine())
    assert (comparison.trained, comparison.failed) == (1, [])
    assert_learned_the_same(runs[0], tmp_path, study)


def test_submitit_gives_the_same_weights(folder, tmp_path, study):
    runs = plan_small(folder, tmp_path, "pair-budget", [0])
    engine = SlurmEngine(tmp_path / "slurm", {"partition": "any", "time": "0:10:00"}, cluster="local")
    assert compare(runs, tmp_path, engine=engine).trained == 1
    assert_learned_the_same(runs[0], tmp_path, study)


def test_bad_data_stops_the_comparison(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("text,label\ngood,1\n,0\n")
    for engine in (None, LocalEngine(2)):
        with pytest.raises(DataError, match=r"bad\.csv, row 2"):
            compare(plan_small(path, tmp_path, "full-text", [0]), tmp_path / "out", engine=engine)


def test_subprocess_exits_when_stdin_closes(two):
    """However the parent process ends, its end of the pipe is closed."""
    task = json.dumps(RunTask(two[1]).to_json()) + "\n"
    process = subprocess.Popen([sys.executable, "-m", "rationalizer.compare"], stdin=subprocess.PIPE, text=True)
    try:
        process.communicate(task, timeout=120)
        assert process.returncode == -signal.SIGTERM
    finally:
        process.kill()


def test_dead_subprocess_is_reported(two):
    run, log = two[0], two[0].directory / "logs/process.log"
    assert RunOutcome.from_result(run, CommandResult(-9, "")) == RunOutcome(
        run, error=f"its process ended by SIGKILL; see {log}"
    )
    assert RunOutcome.from_result(run, CommandResult(1, "ValueError: no")) == RunOutcome(run, error="ValueError: no")


def test_task_json_round_trip(two):
    for run in two:
        task = RunTask(run, 3, "cuda:1", "bf16-mixed")
        assert RunTask.from_json(json.loads(json.dumps(task.to_json()))) == task


def test_missing_packages_and_commands_are_named(two, tmp_path, monkeypatch):
    tasks = [RunTask(run) for run in two]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OSError, match="sbatch"):
        next(SlurmEngine(tmp_path).run(tasks))
    for engine, package in ((SlurmEngine(tmp_path), "submitit"), (RayEngine(), "ray")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=rf"needs the package {package}: pip install"):
            next(engine.run(tasks))


def test_time_limits():
    for text, minutes in {"90": 90, "90:30": 91, "2:00:00": 120, "1-12": 2160, "1-0:05": 1445, "0:30": 1}.items():
        assert _minutes(text) == minutes, text
    with pytest.raises(ValueError, match="'2h'"):
        _minutes("2h")


@pytest.mark.parametrize("value", ["any\n#SBATCH --uid=0", "a\rb", "a\x00b"])
def test_control_characters_in_slurm_options_raise(tmp_path, value):
    with pytest.raises(InputError, match="partition") as raised:
        SlurmEngine(tmp_path, {"partition": value})
    assert "\n" not in str(raised.value)
