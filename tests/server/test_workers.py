"""One process or several at one port, and how they stop; without a model, which takes seconds to load."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from rationalizer.server.supervisor import READY, send_report


@pytest.fixture
def serving():
    """Start `small_server`; return its process and its address."""
    processes = []

    def start(count):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.server.small_server", str(count)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env={name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"},
            start_new_session=True,
        )
        processes.append(process)
        address = process.stdout.readline().strip()
        assert address, process.stderr.read()
        return process, address

    yield start
    for process in processes:
        process.kill()  # its workers end with it
        process.wait(30)
        process.stdout.close()
        process.stderr.close()


def children(process):
    """The process numbers of the workers."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in found if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def send_slow_request(address):
    """Send a request that takes half a second; return its thread and a list for the answer once it has arrived."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(httpx.get(f"{address}/slow", timeout=60)))
    thread.start()
    eventually(lambda: "rationalizer_texts_total 1.0" in httpx.get(f"{address}/counts").text)
    return thread, answers


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")


@needs_proc
@pytest.mark.parametrize(
    ("count", "sent", "code"),
    [(1, signal.SIGINT, 130), (1, signal.SIGTERM, -signal.SIGTERM), (2, signal.SIGINT, 130), (2, signal.SIGTERM, 143)],
)
def test_processes_stop_together_and_answer_accepted_requests(serving, count, sent, code):
    process, address = serving(count)
    workers = children(process)
    assert len(workers) == (0 if count == 1 else count)
    thread, answers = send_slow_request(address)
    os.killpg(process.pid, sent)  # as a terminal sends Ctrl-C: to all of them
    assert process.wait(30) == code
    thread.join()
    assert answers[0].text == "done"
    assert not any(map(alive, workers))
    assert process.stderr.read() == ""


@needs_proc
def test_dead_worker_is_replaced_and_none_outlives_the_parent(serving):
    process, address = serving(2)
    workers = children(process)
    assert httpx.get(f"{address}/threads").text == str(max(1, os.cpu_count() // 2))  # they share the cores
    for left, right in (workers, workers[::-1]):  # whichever is stopped, the other goes on
        os.kill(left, signal.SIGSTOP)
        for _ in range(3):
            assert httpx.get(f"{address}/process", timeout=20).text == str(right)
        os.kill(left, signal.SIGCONT)
    thread, _ = send_slow_request(address)
    thread.join()
    os.kill(workers[0], signal.SIGKILL)
    eventually(lambda: len(children(process)) == 2 and workers[0] not in children(process))
    assert process.stderr.readline() == f"worker process {workers[0]} ended with code -9 and was replaced\n"
    left, replaced = workers[1], (set(children(process)) - {workers[1]}).pop()
    os.kill(left, signal.SIGSTOP)
    assert httpx.get(f"{address}/process", timeout=60).text == str(replaced)
    os.kill(left, signal.SIGCONT)
    assert "rationalizer_texts_total 1.0" in httpx.get(f"{address}/counts").text  # whoever it was that counted

    workers = children(process)
    process.kill()
    process.wait(30)
    eventually(lambda: not any(map(alive, workers)))
    assert process.stderr.read() == ""


def test_parent_reports_why_a_worker_cannot_start():
    command = [sys.executable, "-m", "tests.server.small_server", "2", "fail"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=120)
    assert done.returncode == 1
    assert "error: there is nothing to serve" in done.stderr
    assert "Traceback" not in done.stderr


def test_worker_without_a_parent_reports_nothing():
    reports, report = multiprocessing.Pipe(duplex=False)
    reports.close()
    send_report(report, READY)
    report.close()
