"""`rationalizer serve` as a process of its own: many requests at once, of which none is lost, and how it ends."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from rationalizer import Rationalizer
from rationalizer.data import generated_reviews as reviews
from tests.cli.calls import refused

REQUESTS, AT_ONCE = 200, 20


@pytest.fixture
def serving(spectra_run):
    """Starts a process; gives it and its address, at a port that was free."""
    processes = []

    def start(*options, **variables):
        command = [sys.executable, "-m", "rationalizer", "serve", str(spectra_run), "--port", "0", *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
        processes.append(process)
        line = process.stderr.readline()
        found = re.match(r"(http://127\.0\.0\.1:\d+) ", line)
        assert found, line + process.stderr.read()
        return process, found[1]

    yield start
    for process in processes:
        if process.poll() is None:
            process.terminate()
            process.wait(30)
        process.stderr.close()


def test_many_requests_then_ctrl_c(serving, spectra_run):
    process, address = serving()
    texts = [example.text for example in reviews(train=1, dev=1, test=REQUESTS).test]
    budgets = [None, 1, "100%"]  # the last two must never share a batch
    bodies = [{"text": text, "budget": budgets[k % 3]} for k, text in enumerate(texts)]
    answers = asyncio.run(_ask_all(address, bodies))
    assert [answer.status_code for answer in answers] == [200] * REQUESTS
    model = Rationalizer.load(spectra_run)
    for k, budget in enumerate(budgets):
        model.budget = budget or 0.2
        for expected, answer in zip(model.explain(texts[k::3]), answers[k::3], strict=True):
            found = answer.json()["explanations"][0]
            assert found["text"] == expected.text
            assert found["selected"] == list(expected.selected)
            assert found["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)
    _stop_in_the_middle(process, address)


async def _ask_all(address, bodies):
    gate = asyncio.Semaphore(AT_ONCE)
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:

        async def ask(body):
            async with gate:
                return await client.post("/explain", json=body)

        return await asyncio.gather(*(ask(body) for body in bodies))


def _stop_in_the_middle(process, address):
    """Ctrl-C lets the request that is under way finish, and nothing but one word is printed."""
    answers = []

    def ask():
        answers.append(httpx.post(f"{address}/explain", json={"texts": ["lovely care " * 400] * 60}, timeout=60))

    asking = threading.Thread(target=ask)
    asking.start()
    deadline = time.monotonic() + 30
    while not httpx.get(f"{address}/health").json()["waiting"] and time.monotonic() < deadline and not answers:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(30) == 130
    asking.join()
    assert answers[0].status_code == 200
    assert len(answers[0].json()["explanations"]) == 60
    assert process.stderr.read() == "Stopped.\n"


def test_sigterm_an_access_log_and_a_token_in_a_file(serving, tmp_path):
    (tmp_path / "token").write_text("s3cret\n")
    variables = {"RATIONALIZER_TOKEN_FILE": str(tmp_path / "token")}
    process, address = serving("--access-log", "--allow-host", "models.example", **variables)
    token = {"Authorization": "Bearer s3cret"}
    assert httpx.get(f"{address}/models").status_code == 401
    assert httpx.get(f"{address}/models", headers=token).status_code == 200
    assert httpx.get(f"{address}/health", headers={"Host": "models.example"}).status_code == 200
    assert httpx.get(f"{address}/health", headers={"Host": "evil.example"}).status_code == 421
    process.terminate()
    assert process.wait(30) == -signal.SIGTERM
    lines = process.stderr.read().splitlines()
    assert [line.split()[2:6] for line in lines] == [
        ["127.0.0.1", "GET", path, status]
        for path, status in (("/models", "401"), ("/models", "200"), ("/health", "200"), ("/health", "421"))
    ]


def children(process):
    """The workers: what the process started that uses a model's memory."""
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
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
def test_two_workers(serving):
    """Both answer, any tells the sum, one that dies is replaced, and none outlives the first process."""
    process, address = serving("--workers", "2")
    workers = children(process)
    assert len(workers) == 2
    bodies = [{"text": f"lovely care {k}"} for k in range(60)]
    assert {answer.status_code for answer in asyncio.run(_ask_all(address, bodies))} == {200}

    def told():
        return httpx.get(f"{address}/metrics").text  # a new connection each time, to either

    assert "rationalizer_texts_total 60.0" in told()
    for left in workers:  # whichever is stopped, the other goes on
        os.kill(left, signal.SIGSTOP)
        for _ in range(3):
            assert httpx.post(f"{address}/explain", json={"text": "a"}, timeout=20).status_code == 200
        os.kill(left, signal.SIGCONT)
    os.kill(workers[0], signal.SIGKILL)
    eventually(lambda: len(children(process)) == 2 and workers[0] not in children(process))
    assert process.stderr.readline() == "worker 1 ended with code -9; another takes its place\n"
    assert "rationalizer_texts_total 66.0" in told()

    workers = children(process)
    process.kill()
    process.wait(30)
    eventually(lambda: not any(map(alive, workers)))
    assert process.stderr.read() == ""


@pytest.mark.parametrize(("sent", "code", "said"), [(signal.SIGINT, 130, "Stopped.\n"), (signal.SIGTERM, 143, "")])
def test_workers_stop_together_and_finish_what_they_began(serving, sent, code, said):
    process, address = serving("--workers", "2")
    workers = children(process)
    answers = []

    def ask():
        answers.append(httpx.post(f"{address}/explain", json={"texts": ["lovely care " * 400] * 60}, timeout=60))

    asking = threading.Thread(target=ask)
    asking.start()
    eventually(lambda: answers or "rationalizer_waiting_texts 60.0" in httpx.get(f"{address}/metrics").text)
    os.killpg(process.pid, sent)  # as a terminal sends Ctrl-C: to all of them
    assert process.wait(30) == code
    asking.join()
    assert answers[0].status_code == 200
    assert not any(map(alive, workers))
    assert process.stderr.read() == said


def test_what_cannot_be_served(spectra_run, tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = refused("serve", spectra_run, "--port", port)
    assert f"cannot listen on 127.0.0.1, port {port}: Address already in use; give another --port" in message
    assert "holds no trained model" in refused("serve", tmp_path)
    assert "holds no trained model" in refused("serve", tmp_path, "--workers", 2, "--port", 0)
    assert "openssl rand -hex 32" in refused("serve", spectra_run, "--token", "", "--port", 0)
    assert "must be more than 0, got 0.0" in refused("serve", spectra_run, "--max-seconds", 0)
    assert "the page compares two models, got 3" in refused("serve", spectra_run, spectra_run, spectra_run)
    table = tmp_path / "examples.csv"
    table.write_text("review\nlovely care\n")
    assert "there is no column 'text'" in refused("serve", spectra_run, "--examples", table)
    monkeypatch.setenv("RATIONALIZER_TOKEN", "s3cret")
    assert "a token is given twice" in refused("serve", spectra_run, "--token-file", tmp_path / "token")


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    for name in [name for name in sys.modules if name.startswith("rationalizer.app")]:
        monkeypatch.delitem(sys.modules, name)
    assert 'pip install ".[web]"' in refused("serve", "nowhere")
