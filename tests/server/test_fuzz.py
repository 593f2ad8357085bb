"""Random requests, and those that once blocked or ended the server: each request is answered, and so are others."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from soak.random_requests import random_request

import rationalizer
from rationalizer.constraints.patterns import find_pattern
from rationalizer.server import create_app, request_schema
from tests.server.conftest import local_client

JSON = {"Content-Type": "application/json"}
REQUESTS = 300
PLAIN = {False: {"text": "We found lovely care."}, True: {"premise": "Two nurses help.", "hypothesis": "Nurses help."}}
SLOW = "(?:a|a)+$"


@pytest.mark.parametrize("pairs", [False, True])
def test_random_requests(client, pair_client, monkeypatch, pairs):
    monkeypatch.setattr(request_schema, "SEARCH_SECONDS", 0.05, raising=False)
    client = pair_client if pairs else client
    before = client.post("/explain", json=PLAIN[pairs])
    assert before.status_code == 200
    statuses = set()
    for number in range(REQUESTS // 2):
        content = random_request(np.random.default_rng([0, pairs, number]), pairs=pairs)
        started = time.monotonic()
        response = client.post("/explain", content=content, headers=JSON)
        statuses.add(response.status_code)
        assert response.status_code == 200 or 400 <= response.status_code < 500, (number, content[:500], response.text)
        assert time.monotonic() - started < 30, (number, content[:500])
        if response.status_code != 200:
            assert response.json()["error"]["field"]
            assert str(Path(rationalizer.__file__).parent) not in response.text
    assert {200, 422} <= statuses
    after = client.post("/explain", json=PLAIN[pairs])
    assert (after.status_code, after.json()) == (200, before.json())


@pytest.mark.parametrize(
    ("constraint", "keyword"),
    [
        ({"name": "never", "words": {"a": 1}}, "words"),
        ({"name": "never", "words": None}, "words"),
        ({"name": "never", "words": 3}, "words"),
        ({"name": "must", "words": ["\ud800"]}, "surrogate"),
        ({"name": "must", "pattern": "\ud800"}, "surrogate"),
        ("must=words:\ud800", "surrogate"),
        ("\ud800=1", "constraint"),
        ({"name": "must", "words": ["a"] * 1001}, "1001"),
        ("must=pattern:" + "(" * 490 + ")" * 490, "nested"),
        ("must=pattern:(?:(?:(?:a){300}){300}){300}", "written out"),
        ({"name": "must", "mask": json.loads("[" * 300 + "]" * 300)}, "mask"),
        ({"name": "never-align", "words": [{"a": 1, "b": 2}]}, "words"),
        ({"name": "never-align", "words": None}, "words"),
        ({"name": "must-align", "words": [["a", "a"]] * 2000}, "2000"),
        ({"name": "never-align", "words": [["a", "a"]] * 5000}, "5000"),
    ],
)
def test_refused_constraints(client, pair_client, constraint, keyword):
    pairs = "align" in str(constraint)
    body = {**PLAIN[pairs], "constraints": [constraint]}
    started = time.monotonic()
    response = (pair_client if pairs else client).post("/explain", content=json.dumps(body), headers=JSON)
    assert time.monotonic() - started < 5
    assert response.status_code == 422
    error = response.json()["error"]
    assert error["field"] == "constraints"
    assert keyword in error["problem"]
    assert error["remedy"]


def slow_text():
    """A text in which the search takes between 0.1 s and the limit for one text, 0.5 s."""
    for length in range(10, 60):
        text = "a" * length + "b"
        started = time.perf_counter()
        find_pattern(SLOW, text)
        if time.perf_counter() - started > 0.1:
            return text
    raise AssertionError("no search is slow")


def test_searches_of_a_request_share_a_time_limit(models):
    """While a request with a slow pattern runs into it, those of others are answered."""
    slow = {"texts": [slow_text()] * 64, "constraints": [f"never=pattern:{SLOW}", f"never=pattern:{SLOW}|c"]}
    with local_client(create_app(models)) as client, ThreadPoolExecutor(1) as thread:
        started = time.monotonic()
        refused = thread.submit(client.post, "/explain", json=slow)
        answers = [client.post("/explain", json=PLAIN[False]) for _ in range(3)]
        refused = refused.result()
        took = time.monotonic() - started
        fast = client.post("/explain", json={**PLAIN[False], "constraints": [r"never=pattern:\w+ly"]})
    assert [answer.status_code for answer in (*answers, fast)] == [200] * 4
    assert refused.status_code == 422
    assert "too long" in refused.json()["error"]["problem"]
    assert took < 5


LONG = "good bad " * 400


@pytest.mark.parametrize(
    ("change", "keyword"),
    [
        ({"text": LONG, "budget": "100%", "constraints": ["spans=300"]}, "GiB"),
        ({"text": LONG, "budget": "90%", "constraints": ["spans=300", "span-length=2-", "must=words:good"]}, "GiB"),
        ({"text": LONG[:900], "budget": "enough, at most 100%, 100% certain", "constraints": ["spans=2"]}, "too long"),
        ({"texts": [LONG] * 3, "budget": "enough, at most 100%, 100% certain"}, "too long"),
    ],
)
def test_work_is_limited(models, monkeypatch, change, keyword):
    """Whatever takes too much memory or time is refused, and a plain request is answered as before."""
    monkeypatch.setattr(request_schema, "BATCH_SECONDS", 0.05)
    with local_client(create_app(models)) as client:
        before = client.post("/explain", json=PLAIN[False])
        response = client.post("/explain", json=change)
        after = client.post("/explain", json=PLAIN[False])
    assert response.status_code == 422, response.text
    assert keyword in response.json()["error"]["problem"]
    assert response.json()["error"]["remedy"]
    assert before.json() == after.json()


def test_total_time_is_limited(models, monkeypatch):
    monkeypatch.setattr(request_schema, "TOTAL_SECONDS", 0.05)
    request = {"texts": [LONG[:450]] * 60, "budget": "enough, at most 100%, 100% certain"}
    with local_client(create_app(models)) as client:
        response = client.post("/explain", json=request)
        assert response.status_code == 422, response.text
        monkeypatch.setattr(request_schema, "TOTAL_SECONDS", 600)
        monkeypatch.setattr(request_schema, "BATCH_SECONDS", 600)
        assert client.post("/explain", json=request).status_code == 200
