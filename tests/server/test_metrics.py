"""The metrics of one process and of several, and the access log."""

import logging
import os
import re
import subprocess
import sys

from prometheus_client.multiprocess import mark_process_dead

from rationalizer.server import create_app
from rationalizer.server.monitoring import SHARED_FOLDER
from tests.server.conftest import local_client

LINE = re.compile(r'(# (HELP|TYPE) \w+ .+)|(\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [0-9.e+-]+)')


def parse(exposition):
    assert exposition.endswith("\n")
    lines = exposition.splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_requests_texts_batches_and_times(models):
    with local_client(create_app(models)) as client:
        for body in ({"text": "lovely care"}, {"texts": ["a", "b", "c"]}, {"texts": []}):
            client.post("/explain", json=body)
        client.get("/nothing")
        client.get("/health", headers={"Host": "evil.example"})
        response = client.get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    found = parse(response.text)
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
    assert found['rationalizer_batch_texts_bucket{le="1.0"}'] == 1 + warm_up
    assert found['rationalizer_batch_texts_bucket{le="4.0"}'] == 2 + warm_up


COUNT_AND_PRINT = """
import sys
from rationalizer.server.monitoring import Metrics

metrics = Metrics()
metrics.texts.inc(int(sys.argv[1]))
metrics.waiting.set(7)
metrics.batches.observe(100)
metrics.count_request("/explain", 418)
print(metrics.exposition().decode(), end="")
"""


def test_processes_are_summed_and_counts_outlive_them(tmp_path):
    def count(texts):
        environment = {**os.environ, SHARED_FOLDER: str(tmp_path)}
        command = [sys.executable, "-c", COUNT_AND_PRINT, str(texts)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    count(2)
    (file,) = tmp_path.glob("gauge_livesum_*.db")
    mark_process_dead(int(file.stem.rpartition("_")[2]), str(tmp_path))
    found = parse(count(3))
    assert (found["rationalizer_texts_total"], found["rationalizer_waiting_texts"]) == (5, 7)
    assert found['rationalizer_batch_texts_bucket{le="64.0"}'] == 0
    assert found['rationalizer_batch_texts_bucket{le="+Inf"}'] == 2
    assert found['rationalizer_requests_total{path="/explain",status="other"}'] == 2


def test_access_log_has_a_line_per_request_and_no_text(models, caplog):
    with local_client(create_app(models)) as client, caplog.at_level(logging.INFO, "rationalizer.access"):
        client.post("/explain?a=1", json={"text": "a secret text"})
        client.get("/some%0Athing")
    lines = [record.getMessage() for record in caplog.records if record.name == "rationalizer.access"]
    assert re.fullmatch(r"testclient POST /explain 200 [\d.]+ ms", lines[0])
    assert re.fullmatch(r"testclient GET /some%0Athing 404 [\d.]+ ms", lines[1])
