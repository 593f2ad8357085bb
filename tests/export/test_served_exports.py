"""The server with an exported model."""

import pytest

from rationalizer.export import export_model
from rationalizer.server import create_app, load_models, request_schema
from tests.server.conftest import local_client


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = export_model("sentiment", tmp_path_factory.mktemp("exports") / "small", words=5000)
    with local_client(create_app(load_models([folder]))) as client:
        yield client


def test_explanations(client):
    (facts,) = client.get("/models").json()["models"]
    assert facts["name"] == "small"
    assert facts["method"] == "spectra"
    assert facts["offered"]
    body = {"texts": ["A good film.", "A bad film, but a good cast."], "budget": "50%", "constraints": ["spans=1"]}
    answer = client.post("/explain", json=body).json()
    assert [len(each["spans"]) for each in answer["explanations"]] == [1, 1]
    assert answer["constraints"] == ["spans=1"]
    assert "svg" in client.post("/render/svg", json={"text": "A good film."}).text


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"record": True}, "record"),
        ({"budget": "20% on average"}, "budget"),
        ({"constraints": ["monotone"]}, "constraints"),
        ({"constraints": ["must=words:film"], "budget": 1}, None),
        ({"constraints": ["must=words:a,film"], "budget": 1}, "constraints"),
    ],
)
def test_refused_requests(client, change, field):
    answer = client.post("/explain", json={"text": "A good film.", **change})
    assert answer.status_code == (200 if field is None else 422), answer.text
    if field is not None:
        assert answer.json()["detail"][0]["loc"][-1] == field if "detail" in answer.json() else field in answer.text


def test_work_is_limited(client, monkeypatch):
    text = "good bad " * 400
    answer = client.post("/explain", json={"text": text, "budget": "100%", "constraints": ["spans=300"]})
    assert answer.status_code == 422
    assert "GiB" in answer.json()["error"]["problem"]
    monkeypatch.setattr(request_schema, "BATCH_SECONDS", 0.01)
    answer = client.post("/explain", json={"text": text, "constraints": ["spans=9"]})
    assert answer.status_code == 422
    assert "too long" in answer.json()["error"]["problem"]
