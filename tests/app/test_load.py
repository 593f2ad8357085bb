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

import httpx
import pytest

from rationalizer import Rationalizer
from rationalizer.data import generated_reviews as reviews
from tests.cli.calls import refused

REQUESTS, AT_ONCE = 200, 20


@pytest.fixture
def serving(spectra_run):
    """The process and its address, at a port that was free."""
    command = [sys.executable, "-m", "rationalizer", "serve", str(spectra_run), "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    line = process.stderr.readline()
    found = re.match(r"(http://127\.0\.0\.1:\d+) ", line)
    assert found, line + process.stderr.read()
    yield process, found[1]
    if process.poll() is None:
        process.terminate()
        process.wait(30)
    process.stderr.close()


def test_many_requests_then_ctrl_c(serving, spectra_run):
    process, address = serving
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


def test_what_cannot_be_served(spectra_run, pair_run, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = refused("serve", spectra_run, "--port", port)
    assert f"cannot listen on 127.0.0.1, port {port}: Address already in use; give another --port" in message
    assert "holds no trained model" in refused("serve", tmp_path)
    assert "serve models of one kind" in refused("serve", spectra_run, pair_run)
    assert "the page compares two models, got 3" in refused("serve", spectra_run, spectra_run, spectra_run)
    table = tmp_path / "examples.csv"
    table.write_text("review\nlovely care\n")
    assert "there is no column 'text'" in refused("serve", spectra_run, "--examples", table)


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    for name in [name for name in sys.modules if name.startswith("rationalizer.app")]:
        monkeypatch.delitem(sys.modules, name)
    assert 'pip install ".[web]"' in refused("serve", "nowhere")
