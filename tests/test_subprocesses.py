"""Modules in subprocesses: their output, and that they end."""

import signal
import threading

import pytest

from rationalizer import subprocesses
from rationalizer.subprocesses import Command, CommandResult, run_module

PROGRAMS = {
    "answers": "import sys; print(input()[::-1]); print('a warning', file=sys.stderr); sys.exit(2)",
    "dies": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "stays": "import sys; sys.stdin.read(); sys.stdin.read()",
    "is_deaf": "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)",
}


@pytest.fixture
def call(tmp_path):
    for name, code in PROGRAMS.items():
        (tmp_path / f"{name}.py").write_text(code)
    return lambda name: Command(name, "abc", str(tmp_path), f"logs/{name}.log")


def test_output_and_log(call, tmp_path):
    assert run_module(call("answers")) == CommandResult(2, "cba")
    assert run_module(call("answers")).code == 2
    assert (tmp_path / "logs/answers.log").read_text() == "a warning\n" * 2


def test_killed_process(call):
    assert run_module(call("dies")) == CommandResult(-signal.SIGKILL, "")
    assert [CommandResult(code, "").describe() for code in (-9, 143, 3)] == ["by SIGKILL", "by SIGTERM", "with code 3"]


@pytest.mark.parametrize(("name", "code"), [("stays", -signal.SIGTERM), ("is_deaf", -signal.SIGKILL)])
def test_terminate_from_another_thread(call, name, code, monkeypatch):
    monkeypatch.setattr(subprocesses, "GRACE_SECONDS", 0.2)
    started, ended = threading.Event(), []

    def tell(process):
        if name == "is_deaf":  # once it is
            process.stdout.readline()
        processes.append(process)
        started.set()

    processes = []
    thread = threading.Thread(target=lambda: ended.append(run_module(call(name), tell)))
    thread.start()
    assert started.wait(60)
    subprocesses.terminate(processes[0])
    thread.join(60)
    assert [found.code for found in ended] == [code]
