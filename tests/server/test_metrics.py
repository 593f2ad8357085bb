"""What is counted, and how it is told."""

import logging
import multiprocessing
import re

from rationalizer.server import Metrics, create_app
from rationalizer.server.monitoring import BATCH, ROW, TEXTS, WAITING
from tests.server.conftest import asking

LINE = re.compile(r'(# (HELP|TYPE) \w+ .+)|(\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [0-9.e+-]+)')


def read(exposition):
    assert exposition.endswith("\n")
    lines = exposition.splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_requests_texts_batches_and_times(models):
    with asking(create_app(models)) as client:
        for body in ({"text": "lovely care"}, {"texts": ["a", "b", "c"]}, {"texts": []}):
            client.post("/explain", json=body)
        client.get("/nothing")
        client.get("/health", headers={"Host": "evil.example"})
        response = client.get("/metrics")
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = read(response.text)
    assert found['rationalizer_requests_total{path="/explain",status="200"}'] == 2
    assert found['rationalizer_requests_total{path="/explain",status="422"}'] == 1
    assert found['rationalizer_requests_total{path="/health",status="421"}'] == 1
    assert found['rationalizer_requests_total{path="other",status="404"}'] == 1
    assert found["rationalizer_texts_total"] == 4
    assert found["rationalizer_waiting_texts"] == 0
    assert found["rationalizer_answer_seconds_count"] == 2
    assert found['rationalizer_answer_seconds_bucket{le="+Inf"}'] == 2
    assert found["rationalizer_answer_seconds_sum"] > 0
    warm_up = len(models)
    assert found["rationalizer_batch_texts_sum"] == 4 + warm_up
    assert found['rationalizer_batch_texts_bucket{le="1"}'] == 1 + warm_up
    assert found['rationalizer_batch_texts_bucket{le="4"}'] == 2 + warm_up


def test_processes_are_summed_and_one_that_is_replaced_goes_on():
    table = multiprocessing.get_context("spawn").RawArray("d", 2 * ROW)
    first, second = Metrics(table, 0), Metrics(table, 1)
    first.add(TEXTS, 2)
    first.set(WAITING, 7)
    second.add(TEXTS, 3)
    second.set(WAITING, 1)
    second.observe(BATCH, 100)
    second.request("/explain", 418)
    found = read(first.exposition())
    assert found == read(second.exposition())
    assert (found["rationalizer_texts_total"], found["rationalizer_waiting_texts"]) == (5, 8)
    assert found['rationalizer_batch_texts_bucket{le="64"}'] == 0
    assert found['rationalizer_batch_texts_bucket{le="+Inf"}'] == 1
    assert found['rationalizer_requests_total{path="/explain",status="other"}'] == 1
    found = read(Metrics(table, 0).exposition())
    assert (found["rationalizer_texts_total"], found["rationalizer_waiting_texts"]) == (5, 1)


def test_the_access_log_has_a_line_a_request_and_no_text(models, caplog):
    with asking(create_app(models)) as client, caplog.at_level(logging.INFO, "rationalizer.access"):
        client.post("/explain?a=1", json={"text": "a secret text"})
        client.get("/some%0Athing")
    lines = [record.getMessage() for record in caplog.records if record.name == "rationalizer.access"]
    assert re.fullmatch(r"testclient POST /explain 200 [\d.]+ ms", lines[0])
    assert re.fullmatch(r"testclient GET /some%0Athing 404 [\d.]+ ms", lines[1])
