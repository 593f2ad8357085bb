"""Real connections: slow clients are disconnected, and every accepted request is answered on shutdown."""

import http.client
import json
import socket
import threading
import time

import httpx
import pytest

from rationalizer.server import create_app
from tests.server.conftest import listening

SECONDS = 0.4
HEAD = b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def impatient(models):
    with listening(create_app(models), seconds=SECONDS) as address:
        yield address


def connect(address):
    found = httpx.URL(address)
    connection = socket.create_connection((found.host, found.port))
    connection.settimeout(20)
    return connection


def trickle(connection, part):
    """Send `part` repeatedly; return the seconds until the connection was closed."""
    start = time.monotonic()
    try:
        for _ in range(400):
            connection.sendall(part)
            time.sleep(0.05)
    except OSError:  # closed
        return time.monotonic() - start
    raise AssertionError("the connection stayed open")


def until_closed(connection):
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /explain HT",
        HEAD,
        HEAD + b"Content-Length: 100\r\n\r\n",
        HEAD + b'Content-Length: 100\r\n\r\n{"text": ',
        HEAD + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"tex\r\n',
    ],
)
def test_incomplete_request_is_answered_408_and_closed(impatient, sent, caplog):
    with connect(impatient) as connection:
        connection.sendall(sent)
        answer = until_closed(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"connection: close" in head.lower()
    assert "0.4 seconds" in json.loads(body)["error"]["problem"]
    assert caplog.records == []


@pytest.mark.parametrize("start", [b"", HEAD + b"Content-Length: 1000\r\n\r\n"])
def test_single_bytes_do_not_extend_the_deadline(impatient, start):
    with connect(impatient) as connection:
        connection.sendall(start)
        assert trickle(connection, b"G") < 20 * SECONDS


def test_each_request_of_a_connection_has_its_own_deadline(impatient):
    found = httpx.URL(impatient)
    connection = http.client.HTTPConnection(found.host, found.port, timeout=20)
    for _ in range(3):
        connection.request("POST", "/explain", '{"text": "lovely care"}', {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200
        answer.read()
        time.sleep(0.75 * SECONDS)
    connection.sock.sendall(HEAD)
    assert until_closed(connection.sock).startswith(b"HTTP/1.1 408")
    connection.close()


def test_client_that_sends_after_its_answer_is_disconnected(impatient):
    with connect(impatient) as connection:
        connection.sendall(HEAD + b"Content-Length: 99999999\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
        assert trickle(connection, b" " * 100) < 20 * SECONDS


def test_answers_have_no_deadline(models, monkeypatch):
    """The deadline is for the arrival of the request, not for the model."""
    real = type(models[0]).explain
    with listening(create_app(models), seconds=0.2) as address:
        monkeypatch.setattr(type(models[0]), "explain", lambda *args, **more: time.sleep(0.6) or real(*args, **more))
        assert httpx.post(f"{address}/explain", json={"text": "lovely care"}, timeout=20).status_code == 200


def test_texts_of_disconnected_clients_are_not_explained(models, monkeypatch):
    """One text is being explained, another is waiting, and its client disconnects."""
    read, go_on = [], threading.Event()
    real = type(models[0]).explain

    def explain(served, budget, constraints, texts, **options):
        read.extend(texts)
        assert go_on.wait(20)
        return real(served, budget, constraints, texts, **options)

    with listening(create_app(models)) as address, connect(address) as first, connect(address) as second:
        monkeypatch.setattr(type(models[0]), "explain", explain)
        for waiting, (connection, text) in enumerate(((first, "the first"), (second, "the second")), 1):
            body = json.dumps({"text": text}).encode()
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            while httpx.get(f"{address}/health").json()["waiting"] < waiting:
                time.sleep(0.01)
        second.close()
        for _ in range(2):  # by then the server has noticed the closed connection
            httpx.get(f"{address}/health")
        go_on.set()
        assert first.recv(65536).startswith(b"HTTP/1.1 200")
        assert httpx.post(f"{address}/explain", json={"text": "a third"}, timeout=20).status_code == 200
        counted = httpx.get(f"{address}/metrics").text
    assert read == ["the first", "a third"]
    assert 'rationalizer_requests_total{path="/explain",status="499"} 1.0' in counted


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, b"GET / HTTP/1.1\r\n" + b"X: x\r\n" * 15_000]
)
def test_too_large_head_is_answered_431(server, sent):
    with connect(server) as connection:
        connection.sendall(sent)
        answer = until_closed(connection)
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"65536 bytes" in answer


def test_blank_lines_do_not_extend_the_deadline(impatient):
    with connect(impatient) as connection:
        body = b'{"text": "lovely care"}'
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert trickle(connection, b"\r\n") < 20 * SECONDS


def test_unfinished_requests_are_answered_503_on_shutdown(models, monkeypatch, caplog):
    """Finished requests are answered, the others get 503; there is no traceback."""
    answers = []
    real = type(models[0]).explain

    def ask():  # long enough that each text is its own batch
        answers.append(httpx.post(f"{address}/explain", json={"texts": ["lovely care " * 800] * 4}, timeout=60))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    with listening(create_app(models), grace=1) as address:
        monkeypatch.setattr(type(models[0]), "explain", lambda *args, **more: time.sleep(0.2) or real(*args, **more))
        slow = connect(address)
        slow.sendall(HEAD + b"Content-Length: 100\r\n\r\n")
        for thread in threads:
            thread.start()
        while httpx.get(f"{address}/health").json()["waiting"] < 4 * 4:
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} <= {200, 503}
    stopped = [answer for answer in answers if answer.status_code == 503]
    assert stopped
    for answer in stopped:
        assert "stopping" in answer.json()["error"]["problem"]
        assert answer.headers["Retry-After"] == "1"
    assert until_closed(slow).startswith(b"HTTP/1.1 503")
    slow.close()
    assert all(record.exc_info is None for record in caplog.records)
    assert "Traceback" not in caplog.text
