"""A failure in any stage of a request: that request is answered 500, all others as before."""

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from rationalizer import Rationalizer
from rationalizer.drawing import Explanation
from rationalizer.server import application, create_app, json_routes
from rationalizer.server.fair_queue import FairQueue
from rationalizer.server.monitoring import Metrics
from rationalizer.server.request_schema import ExplainTask
from rationalizer.server.served_models import ServedModel
from tests.server.conftest import local_client

TEXT = "We found truly helpful lovely care. Expect barely musty regrettable comfort."
STAGES = {
    "access": (application.AccessControl, "check"),
    "JSON": (json_routes, "parse_body"),
    "validation": (application, "validate"),
    "time limit": (ExplainTask, "time_limit"),
    "queue": (FairQueue, "push"),
    "grouping": (ServedModel, "_example"),
    "words": (Rationalizer, "examples"),
    "model": (Rationalizer, "explain_examples"),
    "answer": (Explanation, "to_dict"),
    "HTML": (application.render, "to_html"),
    "serialization": (application, "to_json"),
    "SVG": (application.render, "to_svg"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_failure_in_one_stage(models, monkeypatch, caplog, stage):
    def fail(*_, **__):
        raise ZeroDivisionError("a secret reason")

    path = "/render/svg" if stage == "SVG" else "/explain"
    body = {"text": TEXT, "html": True, "constraints": ["spans=2"]}
    with local_client(create_app(models)) as client:
        before = client.post(path, json=body)
        with monkeypatch.context() as patch:
            patch.setattr(*STAGES[stage], fail)
            response = client.post(path, json=body)
        assert client.get("/ready").status_code == 200
        assert client.get("/health").json()["waiting"] == 0
        after = client.post(path, json=body)
    assert (before.status_code, response.status_code) == (200, 500)
    assert after.content == before.content
    assert "secret" not in response.text
    number = re.search("error ([0-9a-f]{8})", response.json()["error"]["problem"])[1]
    (logged,) = [record for record in caplog.records if record.name == "rationalizer"]
    assert number in logged.getMessage()
    assert isinstance(logged.exc_info[1], ZeroDivisionError)


def test_failure_of_the_metrics_of_a_batch(models, monkeypatch):
    with local_client(create_app(models)) as client:
        with monkeypatch.context() as patch:
            patch.setattr(type(Metrics().waiting), "set", lambda *_: 1 / 0)
            assert client.post("/explain", json={"text": TEXT}).status_code == 500
        assert client.post("/explain", json={"text": TEXT}).status_code == 200


@pytest.mark.parametrize(("fault", "status"), [("queue", 500), ("hang", 503)])
def test_process_ends_if_batches_end_or_hang(spectra_run, fault, status):
    """At once if the task that runs the batches has ended; on SIGTERM if the model never returns."""
    command = [sys.executable, "-m", "tests.server.failing_server", str(spectra_run), fault]
    folder = Path(__file__).parents[2]
    answers = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            address = process.stdout.readline().strip()
            assert httpx.post(f"{address}/explain", json={"text": TEXT}, timeout=60).status_code == 200

            def ask():
                answers.append(httpx.post(f"{address}/explain", json={"text": "fail"}, timeout=60))

            thread = threading.Thread(target=ask)
            thread.start()
            if fault == "hang":
                while not httpx.get(f"{address}/health").json()["waiting"]:
                    pass
                process.send_signal(signal.SIGTERM)
            code = process.wait(30)
            thread.join()
        finally:
            process.kill()
        errors = process.stderr.read()
    assert code == (-signal.SIGTERM if fault == "queue" else 1)
    assert [answer.status_code for answer in answers] == [status]
    assert {"queue": "has ended", "hang": "still running"}[fault] in errors
