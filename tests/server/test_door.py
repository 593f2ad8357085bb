"""Who may come in: by which name, and with which token."""

import pytest

from rationalizer.server import create_app
from rationalizer.server.access import Door
from rationalizer.server.http_errors import Refused
from tests.server.conftest import asking


def lets_in(door, host, path="/models", **headers):
    given = [(name.encode(), value.encode("latin-1")) for name, value in {"host": host, **headers}.items()]
    try:
        door.check({"headers": given, "path": path})
    except Refused as refused:
        return refused.status
    return True


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "localhost.", "127.0.0.1:8000", "[::1]:8000", "[::1]"])
def test_the_machine_s_own_names_are_known(host):
    assert lets_in(Door(), host) is True


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "localhost.evil.example", "evil.example:8000", "192.168.0.7", "[::2]", "127.0.0.1.evil", "*"],
)
def test_others_are_not(host):
    assert lets_in(Door(), host) == 421
    assert lets_in(Door(["127.0.0.1"]), host) == 421


def test_more_names():
    assert lets_in(Door(["Models.Example"]), "models.example:443") is True
    assert lets_in(Door(["models.example"]), "evil.example") == 421
    assert lets_in(Door(["*"]), "evil.example") is True
    everywhere = Door(["0.0.0.0"])
    assert lets_in(everywhere, "192.168.0.7:8000") is True
    assert lets_in(everywhere, "[fe80::1]:8000") is True
    assert lets_in(everywhere, "evil.example") == 421


def test_the_token():
    door = Door(token="s3cret")
    assert lets_in(door, "localhost") == 401
    for wrong in ("Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crett", "Basic s3cret", "s3cret", "Bearer sécret"):
        assert lets_in(door, "localhost", authorization=wrong) == 401
    assert lets_in(door, "localhost", authorization="Bearer s3cret") is True
    assert lets_in(door, "localhost", authorization="bearer  s3cret") is True
    assert lets_in(door, "evil.example", authorization="Bearer s3cret") == 421


@pytest.mark.parametrize("token", ["", "two words", "sécret", "a\nb"])
def test_what_is_no_token(token):
    with pytest.raises(ValueError, match="openssl rand"):
        Door(token=token)


def test_with_a_token_only_the_pages_and_health_are_open(models):
    with asking(create_app(models, token="s3cret")) as client:
        for path in ("/", "/docs", "/static/page.js", "/static/ask.js", "/health", "/ready"):
            assert client.get(path).status_code == 200
        for path in ("/models", "/examples", "/metrics", "/openapi.json", "/nothing", "/health/"):
            response = client.get(path)
            assert response.status_code == 401, path
            assert response.headers["WWW-Authenticate"] == "Bearer"
            assert "s3cret" not in response.text
        assert client.post("/explain", json={"text": "a"}).status_code == 401
        client.headers["Authorization"] = "Bearer s3cret"
        assert client.post("/explain", json={"text": "a"}).status_code == 200
        assert client.get("/metrics").status_code == 200


def test_a_name_of_somebody_else_is_told_apart(models):
    with asking(create_app(models)) as client:
        response = client.post("/explain", json={"text": "a"}, headers={"Host": "evil.example"})
    assert response.status_code == 421
    assert response.json()["error"] == {
        "field": "Host",
        "problem": "this server does not answer for the host 'evil.example'",
        "remedy": "if the name is its own, start it with --allow-host and the name",
    }
