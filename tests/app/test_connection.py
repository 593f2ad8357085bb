"""Over real connections: those that dawdle are closed, and a stop leaves nobody without an answer."""

import http.client
import json
import socket
import threading
import time

import httpx
import pytest

from rationalizer.app import create_app
from tests.app.conftest import listening

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


def test_what_is_not_done_when_the_server_must_stop_is_told_to_come_again(models, caplog):
    """No failure, no traceback: those that were done are answered, the others hear that the server stops."""
    answers = []

    def ask():
        answers.append(httpx.post(f"{address}/explain", json={"texts": ["lovely care " * 800] * 64}, timeout=60))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    with listening(create_app(models), grace=1) as address:
        slow = connect(address)
        slow.sendall(HEAD + b"Content-Length: 100\r\n\r\n")
        for thread in threads:
            thread.start()
        while httpx.get(f"{address}/health").json()["waiting"] < 12 * 64:
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
