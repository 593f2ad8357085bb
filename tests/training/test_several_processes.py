"""Two processes train the same model as one, and end with an error if one of them is killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from rationalizer.data import generated_reviews
from rationalizer.models.atomic_files import read_tensors
from rationalizer.models.batches import Shard
from rationalizer.training.distributed import is_first_process
from tests.cli.calls import run as call
from tests.nn.tiny_transformers import write_encoder
from tests.training.distributed_cases import CASES, RANDOM, record_batches, state, train_case

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Return the folder with the files that two processes wrote."""
    folder = tmp_path_factory.mktemp("two")
    write_encoder(folder / "encoder")
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    torchrun += ["--log-dir", str(folder / "logs"), "--redirects", "3"]
    command = [sys.executable, "-m", *torchrun, "-m", "tests.training.distributed_cases", str(folder)]
    done = subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr + "".join(path.read_text() for path in folder.rglob("stderr.log"))
    return folder


@pytest.fixture(scope="module")
def facts(two):
    return [json.loads((two / f"facts-{rank}.json").read_text()) for rank in (0, 1)]


def without_times(metrics):
    rows = [{key: value for key, value in row.items() if key != "seconds"} for row in metrics["epochs"]]
    return {**metrics, "epochs": rows, "seconds_per_epoch": None}


@pytest.mark.parametrize("case", CASES)
def test_two_processes_equal_one(case, two, facts):
    first, second = (load_file(two / f"{case}-{rank}.safetensors") for rank in (0, 1))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    metrics = [without_times(each["metrics"][case]) for each in facts]
    assert metrics[0] == metrics[1]
    if case in RANDOM:
        return
    with record_batches() as whole:
        alone = train_case(case, two, devices=1)
    parts = zip(*(each["batches"][case] for each in facts), strict=True)
    for (step, positions, _), ours in zip(whole, parts, strict=True):
        assert [part[0] for part in ours] == [step, step]
        counted = [part[1] if part[2] else [] for part in ours]
        assert counted == [positions[0::2], positions[1::2]]  # each text once, in the order of one process
        assert [part[2] for part in ours] == [len(own) / len(positions) for own in counted]
    for name, value in state(alone).items():
        torch.testing.assert_close(first[name], value, atol=1e-8, rtol=0, msg=lambda text, name=name: f"{name} {text}")
    expected = without_times(alone.history)
    for row, wanted in zip(metrics[0]["epochs"], expected["epochs"], strict=True):
        assert row == pytest.approx(wanted, rel=1e-4)
    assert metrics[0]["best_epoch"] == expected["best_epoch"]


def test_only_the_first_process_writes_and_logs(two):
    assert (two / "run-0/model.safetensors").is_file()
    assert len((two / "run-0/history.csv").read_text().splitlines()) == 1 + 2
    assert len(list((two / "run-0/logs").iterdir())) == 1
    assert not (two / "run-1").exists()
    logs = {path.parent.name: path.read_text() for path in two.rglob("stderr.log")}
    assert "Epoch 2/2" in logs["0"]
    assert "Epoch" not in logs["1"]
    assert "warning" not in logs["1"].lower()
    assert not [line for line in logs["0"].splitlines() if "Warning" in line and "DegenerationWarning" not in line]


def test_two_processes_resume_to_the_same_weights(two, facts):
    names = sorted(load_file(two / "hardkuma-0.safetensors"))
    assert [sorted(each["equal after resuming"]) for each in facts] == [names, names]


def test_different_settings_raise(facts):
    message = "process 1 trains with seed = 1, process 0 with seed = 0; give all processes the same data and settings"
    assert all(message in each["error"] for each in facts)


def test_killed_process_ends_the_others_and_the_run_resumes(tmp_path):
    corpus = generated_reviews(train=40, dev=8, test=0)
    lines = [json.dumps({"text": e.text, "label": corpus.classes[e.label]}) for e in [*corpus.train, *corpus.dev]]
    for name, part in (("train", lines[:40]), ("dev", lines[40:])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(part))
    settings = {"hidden": 4, "vector_size": 6, "embeddings": "none", "epochs": 3, "min_epochs": 3, "dropout": 0.0}
    settings |= {"batch_size": 16, "checkpoint_seconds": 0}
    given = [f"--set={name}={value}" for name, value in settings.items()]
    command = ["train", str(tmp_path), *given, "--device", "cpu", "--out"]
    two = [sys.executable, "-m", "tests.training.killed_process", *command, str(tmp_path / "run"), "--devices", "2"]
    done = subprocess.run(two, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, timeout=200)
    # Fabric kills the other process if it has not ended within seconds.
    assert done.returncode in (2, -9), done.stderr
    assert "error: another process of this training has ended or cannot be reached" in done.stderr
    assert "--resume" in done.stderr
    assert "Traceback" not in done.stderr
    assert read_tensors(tmp_path / "run/checkpoint.safetensors")[1]["progress"]["step"] == 5

    call(*command, tmp_path / "run", "--resume")
    call(*command, tmp_path / "whole")
    resumed, whole = (load_file(tmp_path / name / "model.safetensors") for name in ("run", "whole"))
    for name in whole.keys() - {"method.scorer.bias"}:
        torch.testing.assert_close(resumed[name], whole[name], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("variables", "devices", "first"),
    [
        ({}, 2, True),
        ({"LOCAL_RANK": "1"}, 2, False),
        ({"RANK": "4", "LOCAL_RANK": "0"}, 4, False),  # on a second machine
        ({"NODE_RANK": "1"}, 1, False),
        ({"SLURM_PROCID": "1"}, 2, False),
        ({"SLURM_PROCID": "1"}, 1, True),  # independent runs in one Slurm job
    ],
)
def test_first_process_is_detected(variables, devices, first, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_first_process(devices) is first


def test_shards_contain_every_example_once():
    for size in range(1, 8):
        batch = list(range(size))
        taken = [Shard(rank, 3).take(batch) for rank in range(3)]
        assert sorted(position for own, share in taken if share for position in own) == batch
        assert sum(share for _, share in taken) == pytest.approx(1)
        assert all(own for own, _ in taken)
    assert Shard().take(batch) == (batch, 1.0)
