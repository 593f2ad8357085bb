"""`rationalizer serve` under many concurrent requests, mixed with slow, large and broken ones."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from rationalizer import Rationalizer
from soak import small_models
from soak.cases import Case, Hung, Soak, Unclear, Wrong, require
from soak.random_requests import random_request

REQUESTS, CONCURRENT = 1000, 50
FUZZED, FUZZED_CONCURRENT = 10_000, 8  # requests with random fields
FIRST_FUZZED, STOP = 10**8, 10**9  # numbers of cases
BUDGETS = (None, 1, 5, 0.1, "20%", "100%")
REQUEST_SECONDS = 3  # time limit for the arrival of a request
ERRORS = (400, 413, 422)


def run(soak: Soak) -> None:
    model = small_models.train_small(soak.folder / "model")
    reference = ReferenceModel(model)
    server = Server(model)
    local = threading.local()

    def check_case(case: Case) -> None:
        if case.number == STOP:
            return _stop(case, server)
        if not hasattr(local, "client"):
            local.client = httpx.Client(base_url=server.address, timeout=60)
        if case.number >= FIRST_FUZZED:
            kind = "good" if case.number % 40 == 39 else "fuzzed"
        else:
            kind = "slow" if case.number % 40 == 39 else "bad" if case.chance(0.1) else "good"
        case.note(kind)
        try:
            {"slow": _slow, "bad": _bad, "good": _good, "fuzzed": _fuzzed}[kind](case, local.client, reference)
        except httpx.TimeoutException:
            raise Hung("no answer in 60 s") from None

    try:
        soak.check(REQUESTS, check_case, seconds=70, threads=CONCURRENT)
        if soak.only is None:
            soak.check(FUZZED, check_case, seconds=70, threads=FUZZED_CONCURRENT, first=FIRST_FUZZED)
            soak.check_one(STOP, check_case, seconds=60)
    finally:
        server.process.kill()
        server.process.wait()


class Server:
    def __init__(self, model: Path) -> None:
        command = [sys.executable, "-m", "rationalizer", "serve", str(model), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, "--max-seconds", str(REQUEST_SECONDS)], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"(http://127\.0\.0\.1:(\d+)) ", line)
        if not found:
            raise Wrong(f"the server did not start: {line}")
        self.address, self.port = found[1], int(found[2])


class ReferenceModel:
    """The model's own explanations, computed once per text and budget."""

    def __init__(self, model: Path) -> None:
        self.model, self.lock = Rationalizer.load(model), threading.Lock()
        self.trained_budget = self.model.budget
        self.texts, self.known = small_models.texts(60), {}

    def explain(self, text: str, budget: Any) -> Any:
        with self.lock:
            if (text, budget) not in self.known:
                self.model.budget = self.trained_budget if budget is None else budget
                self.known[text, budget] = self.model.explain([text])[0]
            return self.known[text, budget]


def _good(case: Case, client: httpx.Client, reference: ReferenceModel) -> None:
    texts = [case.pick(reference.texts) for _ in range(int(case.pick([1, 1, 1, 3, 20])))]
    budget = case.pick(BUDGETS)
    case.note(f"{len(texts)} texts, budget {budget!r}")
    body = {"text": texts[0]} if len(texts) == 1 else {"texts": texts}
    answer = client.post("/explain", json={**body, "budget": budget})
    if answer.status_code == 503:
        raise Unclear(f"too busy: {answer.text[:300]}")
    require(answer.status_code == 200, "status", answer.status_code, answer.text[:500])
    found = answer.json()["explanations"]
    require(len(found) == len(texts), len(found), "answers")
    for text, one in zip(texts, found, strict=True):
        expected = reference.explain(text, budget)
        require(one["text"] == expected.text, "the answer belongs to another text")
        require(one["selected"] == list(expected.selected), "another rationale than the model's own:", text, budget)
        require(one["probabilities"].keys() == expected.probabilities.keys(), "other labels:", one["probabilities"])
        difference = max(abs(one["probabilities"][label] - p) for label, p in expected.probabilities.items())
        require(difference <= 1e-5, f"probabilities differ by {difference:.1e}")


def _bad(case: Case, client: httpx.Client, reference: ReferenceModel) -> None:
    """Send an invalid request; the answer must be a JSON error."""
    content = case.pick(
        [
            b"",
            b"{",
            b"null",
            b"[" * 50_000,
            b'{"text": "\xff"}',
            b'{"text": 3}',
            b'{"text": ""}',
            b'{"texts": []}',
            b'{"text": "a", "texts": ["b"]}',
            b'{"text": "a", "budget": -1}',
            b'{"text": "a", "budget": NaN}',
            b'{"text": "a", "budget": {}}',
            b'{"text": "a", "model": "nobody"}',
            b'{"text": "' + b"a" * 20_000 + b'"}',
            b'{"texts": [' + b'"a",' * 999 + b'"a"]}',
            b'{"text": "' + b"a" * 12_000_000 + b'"}',
        ]
    )
    case.note(f"{content[:60]!r}, {len(content)} bytes")
    try:
        answer = client.post("/explain", content=content, headers={"Content-Type": "application/json"})
    except (httpx.WriteError, httpx.RemoteProtocolError):
        require(len(content) > 1_000_000, "the connection was closed without an answer")
        return  # a server may hang up on a body that is too large
    require(answer.status_code in ERRORS, "status", answer.status_code, answer.text[:500])
    try:
        answer.json()
    except ValueError:
        raise Unclear(f"an error that is not JSON: {answer.text[:300]}") from None


def _fuzzed(case: Case, client: httpx.Client, reference: ReferenceModel) -> None:
    """Send random fields; the answer is an explanation or an error of the request."""
    content = random_request(case.random, pairs=False)
    case.note(f"{content[:300]!r}, {len(content)} bytes")
    answer = client.post("/explain", content=content, headers={"Content-Type": "application/json"})
    require(answer.status_code in (200, *ERRORS), "status", answer.status_code, answer.text[:500])


def _slow(case: Case, client: httpx.Client, reference: ReferenceModel) -> None:
    """Send an incomplete request; the server must close the connection."""
    url = client.base_url
    head = (
        b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    )
    sent = head[: int(case.random.integers(1, len(head)))] if case.chance(0.5) else head + b'{"text": '
    case.note(f"{len(sent)} bytes, then nothing")
    started = time.monotonic()
    with socket.create_connection((url.host, url.port), timeout=30) as connection:
        connection.sendall(sent)
        try:
            while connection.recv(4096):
                pass
        except TimeoutError:
            raise Hung("the server still waits after 30 s") from None
        except ConnectionResetError:
            pass
    took = time.monotonic() - started
    require(took < REQUEST_SECONDS + 20, f"let go after {took:.1f} s")


def _stop(case: Case, server: Server) -> None:
    """Send Ctrl-C during a request and beside an incomplete one: the first is answered, then the server ends."""
    case.note("stopping")
    outcome: Counter[Any] = Counter()

    def ask() -> None:
        try:
            answer = httpx.post(f"{server.address}/explain", json={"texts": ["lovely care " * 400] * 60}, timeout=60)
            outcome[answer.status_code] += 1
        except httpx.HTTPError as error:
            outcome[repr(error)] += 1

    thread = threading.Thread(target=ask)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as idle:
        idle.sendall(b"POST /explain HTTP/1.1\r\nHost: local")
        thread.start()
        deadline = time.monotonic() + 30
        while not outcome and not httpx.get(f"{server.address}/health").json()["waiting"]:
            require(time.monotonic() < deadline, "the request never arrived")
            time.sleep(0.002)
        os.kill(server.process.pid, signal.SIGINT)
        try:
            code = server.process.wait(40)
        except subprocess.TimeoutExpired:
            raise Hung("the server did not stop in 40 s") from None
    thread.join()
    assert server.process.stderr is not None
    errors = server.process.stderr.read()
    require(code == 130 and errors == "Stopped.\n", "ended with code", code, "and", repr(errors[-1500:]))
    require(outcome == {200: 1}, "the accepted request got", dict(outcome))
