"""Access control: the header Host and the token."""

import asyncio

import pytest

from rationalizer.server import create_app
from rationalizer.server.access import AccessControl
from rationalizer.server.http_errors import RequestError
from tests.server.conftest import local_client


def status_of(access, host, path="/models", **headers):
    """The status of the error, or 200."""
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in {"host": host, **headers}.items()]
    try:
        asyncio.run(access.check({"headers": encoded, "path": path}))
    except RequestError as error:
        return error.status
    return 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "localhost.", "127.0.0.1:8000", "[::1]:8000", "[::1]"])
def test_local_hosts_are_accepted(host):
    assert status_of(AccessControl(), host) == 200


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "localhost.evil.example", "evil.example:8000", "192.168.0.7", "[::2]", "127.0.0.1.evil", "*"],
)
def test_other_hosts_are_rejected(host):
    assert status_of(AccessControl(), host) == 421
    assert status_of(AccessControl(["127.0.0.1"]), host) == 421


@pytest.mark.parametrize(
    ("allowed", "host", "status"),
    [
        ("Models.Example", "models.example:443", 200),
        ("models.example", "evil.example", 421),
        ("models.example", "www.models.example", 421),
        ("*.models.example", "a.models.example", 200),
        ("*", "evil.example", 200),
        ("0.0.0.0", "192.168.0.7:8000", 200),
        ("0.0.0.0", "[fe80::1]:8000", 200),
        ("0.0.0.0", "evil.example", 421),
    ],
)
def test_additional_hosts(allowed, host, status):
    assert status_of(AccessControl([allowed]), host) == status


@pytest.mark.parametrize("host", ["exa*mple", "*example", "*.a.*"])
def test_invalid_host_pattern(host):
    with pytest.raises(ValueError, match="subdomains"):
        AccessControl([host])


def test_token():
    access = AccessControl(token="s3cret")
    assert status_of(access, "localhost") == 401
    for wrong in ("Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crett", "Basic s3cret", "s3cret", "Bearer sécret"):
        assert status_of(access, "localhost", authorization=wrong) == 401
    assert status_of(access, "localhost", authorization="Bearer s3cret") == 200
    assert status_of(access, "localhost", authorization="bearer  s3cret") == 200
    assert status_of(access, "evil.example", authorization="Bearer s3cret") == 421


@pytest.mark.parametrize("token", ["", "two words", "sécret", "a\nb"])
def test_invalid_token(token):
    with pytest.raises(ValueError, match="openssl rand"):
        AccessControl(token=token)


def test_pages_and_health_need_no_token(models):
    with local_client(create_app(models, token="s3cret")) as client:
        for path in ("/", "/docs", "/static/page.js", "/static/api.js", "/health", "/ready"):
            assert client.get(path).status_code == 200
        assert "models" not in client.get("/health").json()  # their names are data
        for path in ("/models", "/examples", "/metrics", "/openapi.json", "/nothing", "/health/"):
            response = client.get(path)
            assert response.status_code == 401, path
            assert response.headers["WWW-Authenticate"] == "Bearer"
            assert "s3cret" not in response.text
        assert client.post("/explain", json={"text": "a"}).status_code == 401
        client.headers["Authorization"] = "Bearer s3cret"
        assert client.post("/explain", json={"text": "a"}).status_code == 200
        assert client.get("/metrics").status_code == 200


def test_foreign_host_has_an_error_response(models):
    with local_client(create_app(models)) as client:
        response = client.post("/explain", json={"text": "a"}, headers={"Host": "evil.example"})
    assert response.status_code == 421
    error = response.json()["error"]
    assert error["field"] == "Host"
    assert "'evil.example'" in error["problem"]
    assert "--allow-host" in error["remedy"]
