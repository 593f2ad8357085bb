"""`rationalizer serve` as a user starts it: many concurrent requests, none lost, and a clean stop."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest

from rationalizer import Rationalizer
from rationalizer.data import generated_reviews as reviews
from tests.cli.calls import refused
from tests.server.test_workers import eventually

REQUESTS, CONCURRENT = 120, 20
TOKEN = {"Authorization": "Bearer s3cret"}


@pytest.fixture
def serving(spectra_run, tmp_path):
    """Start two processes with a token and an access log; return the parent process and the address."""
    (tmp_path / "token").write_text("s3cret\n")
    options = ("--port", "0", "--workers", "2", "--access-log", "--allow-host", "models.example")
    command = [sys.executable, "-m", "rationalizer", "serve", str(spectra_run), *options]
    variables = {"OMP_NUM_THREADS": "1", "RATIONALIZER_TOKEN_FILE": str(tmp_path / "token")}
    environment = {**os.environ, **variables}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    line = process.stderr.readline()
    found = re.search(r"(http://127\.0\.0\.1:\d+) ", line)
    assert found, line + process.stderr.read()
    yield process, found[1]
    process.kill()  # its workers end with it
    process.wait(30)
    process.stderr.close()


def test_many_requests_then_ctrl_c(serving, spectra_run):
    process, address = serving
    seen = [
        httpx.get(f"{address}{path}", headers=headers).status_code
        for path, headers in (
            ("/models", {}),
            ("/models", TOKEN),
            ("/health", {"Host": "models.example"}),
            ("/health", {"Host": "evil.example"}),
        )
    ]
    assert seen == [401, 200, 200, 421]
    texts = [example.text for example in reviews(train=1, dev=1, test=REQUESTS).test]
    budgets = [None, 1, "100%"]  # the last two must not share a batch
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
    assert f"rationalizer_texts_total {REQUESTS}.0" in _metrics(address)
    _stop_during_a_request(process, address)
    *lines, last = process.stderr.read().splitlines()
    assert last == "Stopped."
    noted = [line.split()[2:6] for line in lines]
    assert sorted(noted[:4]) == [
        ["127.0.0.1", "GET", path, status]
        for path, status in (("/health", "200"), ("/health", "421"), ("/models", "200"), ("/models", "401"))
    ]
    assert noted.count(["127.0.0.1", "POST", "/explain", "200"]) == REQUESTS + 1


async def _ask_all(address, bodies):
    gate = asyncio.Semaphore(CONCURRENT)
    async with httpx.AsyncClient(base_url=address, headers=TOKEN, timeout=60) as client:

        async def ask(body):
            async with gate:
                return await client.post("/explain", json=body)

        return await asyncio.gather(*(ask(body) for body in bodies))


def _metrics(address):
    return httpx.get(f"{address}/metrics", headers=TOKEN).text  # a new connection each time, to either process


def _stop_during_a_request(process, address):
    """Ctrl-C: the accepted request is still answered."""
    answers = []

    def ask():
        body = {"texts": ["lovely care " * 400] * 60}
        answers.append(httpx.post(f"{address}/explain", json=body, headers=TOKEN, timeout=60))

    thread = threading.Thread(target=ask)
    thread.start()
    eventually(lambda: answers or "rationalizer_waiting_texts 60.0" in _metrics(address))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to all of them
    assert process.wait(30) == 130
    thread.join()
    assert answers[0].status_code == 200
    assert len(answers[0].json()["explanations"]) == 60


def test_errors_before_the_start(spectra_run, tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        message = refused("serve", spectra_run, "--port", port)
    assert f"port {port}" in message
    assert "--port" in message
    assert str(tmp_path) in refused("serve", tmp_path)
    assert "openssl rand -hex 32" in refused("serve", spectra_run, "--token", "", "--port", 0)
    assert "got 0.0" in refused("serve", spectra_run, "--max-seconds", 0)
    assert "got 3" in refused("serve", spectra_run, spectra_run, spectra_run)
    table = tmp_path / "examples.csv"
    table.write_text("review\nlovely care\n")
    assert "'text'" in refused("serve", spectra_run, "--examples", table)
    monkeypatch.setenv("RATIONALIZER_TOKEN", "s3cret")
    assert "token" in refused("serve", spectra_run, "--token-file", tmp_path / "token")


def test_error_without_the_extra_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    for name in [name for name in sys.modules if name.startswith("rationalizer.server")]:
        monkeypatch.delitem(sys.modules, name)
    assert 'pip install ".[web]"' in refused("serve", "nowhere")
