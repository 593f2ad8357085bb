"""Over real connections: those that dawdle are closed, and a stop leaves nobody without an answer."""

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
def hasty(models):
    with listening(create_app(models), seconds=SECONDS) as address:
        yield address


def connect(address):
    found = httpx.URL(address)
    connection = socket.create_connection((found.host, found.port))
    connection.settimeout(20)
    return connection


def trickle(connection, part):
    """Sends it again and again; the seconds until that failed."""
    begun = time.monotonic()
    try:
        for _ in range(400):
            connection.sendall(part)
            time.sleep(0.05)
    except OSError:  # closed
        return time.monotonic() - begun
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
def test_a_request_that_stops_arriving_is_told_so_and_closed(hasty, sent, caplog):
    with connect(hasty) as connection:
        connection.sendall(sent)
        answer = until_closed(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"connection: close" in head.lower()
    assert json.loads(body)["error"]["problem"] == "the request took more than 0.4 seconds to arrive"
    assert caplog.records == []


@pytest.mark.parametrize("start", [b"", HEAD + b"Content-Length: 1000\r\n\r\n"])
def test_a_byte_now_and_then_does_not_help(hasty, start):
    with connect(hasty) as connection:
        connection.sendall(start)
        assert trickle(connection, b"G") < 20 * SECONDS


def test_the_second_request_of_a_connection_has_its_own_time(hasty):
    found = httpx.URL(hasty)
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


def test_one_who_was_answered_and_still_sends_is_cut_off(hasty):
    with connect(hasty) as connection:
        connection.sendall(HEAD + b"Content-Length: 99999999\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
        assert trickle(connection, b" " * 100) < 20 * SECONDS


def test_an_answer_takes_as_long_as_it_takes(models, monkeypatch):
    """The time is for the request to arrive, not for the model."""
    real = type(models[0]).explain
    with listening(create_app(models), seconds=0.2) as address:
        monkeypatch.setattr(type(models[0]), "explain", lambda *args: time.sleep(0.6) or real(*args))
        assert httpx.post(f"{address}/explain", json={"text": "lovely care"}, timeout=20).status_code == 200


def test_what_nobody_waits_for_is_not_read(models, monkeypatch):
    """One text is being read, another waits, and whoever sent it hangs up."""
    read, go_on = [], threading.Event()
    real = type(models[0]).explain

    def explain(served, budget, constraints, texts):
        read.extend(texts)
        assert go_on.wait(20)
        return real(served, budget, constraints, texts)

    with listening(create_app(models)) as address, connect(address) as first, connect(address) as second:
        monkeypatch.setattr(type(models[0]), "explain", explain)
        for waiting, (connection, text) in enumerate(((first, "the first"), (second, "the second")), 1):
            body = json.dumps({"text": text}).encode()
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            while httpx.get(f"{address}/health").json()["waiting"] < waiting:
                time.sleep(0.01)
        second.close()
        for _ in range(2):  # it has seen by then that the connection is closed
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
def test_a_head_that_does_not_end_is_refused(server, sent):
    with connect(server) as connection:
        connection.sendall(sent)
        answer = until_closed(connection)
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"the head of the request has more than 65536 bytes" in answer


def test_blank_lines_hold_no_connection(hasty):
    with connect(hasty) as connection:
        body = b'{"text": "lovely care"}'
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert trickle(connection, b"\r\n") < 20 * SECONDS


def test_what_is_not_done_when_the_server_must_stop_is_told_to_come_again(models, monkeypatch, caplog):
    """No failure, no traceback: those that were done are answered, the others hear that the server stops."""
    answers = []
    real = type(models[0]).explain

    def ask():  # so long that each text is a batch of its own
        answers.append(httpx.post(f"{address}/explain", json={"texts": ["lovely care " * 800] * 4}, timeout=60))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    with listening(create_app(models), grace=1) as address:
        monkeypatch.setattr(type(models[0]), "explain", lambda *args: time.sleep(0.2) or real(*args))
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
        assert answer.json()["error"]["problem"] == "the server is stopping"
        assert answer.headers["Retry-After"] == "1"
    assert until_closed(slow).startswith(b"HTTP/1.1 503")
    slow.close()
    assert all(record.exc_info is None for record in caplog.records)
    assert "Traceback" not in caplog.text
