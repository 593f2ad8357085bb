"""The endpoint with a trained model: answers and errors."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import torch

from rationalizer import Rationalizer
from rationalizer import drawing as render
from rationalizer.nn import ALIGNERS
from rationalizer.server import Quotas, create_app, load_models
from rationalizer.server.batching import Batcher
from rationalizer.server.static_files import STATIC
from tests.server.conftest import local_client

TEXT = "We found truly helpful lovely care. Expect barely musty regrettable comfort."
JSON = {"Content-Type": "application/json"}
HOSTILE = "<script>alert(1)</script> \"quoted\" & <img src=x onerror=alert(2)> 'so' ]]> lovely care"


def explain(client, **body):
    response = client.post("/explain", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def plain(explanation):
    """The explanation after a round trip through JSON."""
    return json.loads(json.dumps(explanation.to_dict()))


def same(found, expected):
    """Compare; the last digits depend on the other texts of the batch."""
    numbers = ("probabilities", "mask", "words")
    assert {k: v for k, v in found.items() if k not in numbers} == {
        k: v for k, v in expected.items() if k not in numbers
    }
    for name in numbers[:2]:
        assert found[name] == pytest.approx(expected[name], abs=1e-5)
    weights, others = ({word["index"]: word["weight"] for word in one["words"]} for one in (found, expected))
    assert weights == pytest.approx(others, abs=1e-3)


def test_one_text(client, models):
    answer = explain(client, text=TEXT)
    assert (answer["model"], answer["budget"]) == ("spectra", 0.2)
    (found,) = answer["explanations"]
    same(found, plain(models[0].model.explain(TEXT)))
    assert words_read(found) == round(0.2 * sum(found["counted"]))


def words_read(explanation):
    return sum(chosen and word for chosen, word in zip(explanation["selected"], explanation["counted"], strict=True))


def test_several_texts_in_order(client, models):
    texts = ["Dull slop.", TEXT, "a", "We had so stunning views!"]
    found = explain(client, texts=texts)["explanations"]
    for one, text in zip(found, texts, strict=True):
        same(one, plain(models[0].model.explain(text, reasons=False)))


@pytest.mark.parametrize(
    ("unit", "budget", "selected"),
    [
        *(("count", *case) for case in [(1, 1), (3, 3), ("3", 3), (99, 11), (10**30, 11)]),
        *(("share", *case) for case in [(0.5, 6), ("50%", 6), (1.0, 11), ("100%", 11)]),
    ],
)
def test_budget(client, models, unit, budget, selected):
    answer = explain(client, text=TEXT, budget=budget)
    assert answer["budget_unit"] == unit
    found = answer["explanations"][0]
    assert len(found["tokens"]) == 13
    assert words_read(found) == selected
    assert str(models[0].model.budget) == "20%"
    assert words_read(explain(client, text=TEXT)["explanations"][0]) == 2  # the next request has its own


def test_another_model(client, models):
    answer = explain(client, text=TEXT, model="sparsemax")
    assert answer["model"] == "sparsemax"
    same(answer["explanations"][0], plain(models[1].model.explain(TEXT)))
    assert explain(client, text=TEXT, model="sparsemax", budget=0.2)["budget"] == 0.2  # its own: nothing to follow


def test_pairs(pair_client, pair_run):
    premise, hypothesis = "Two old nurses often help young dogs.", "Nurses help animals."
    answer = explain(pair_client, premise=premise, hypothesis=hypothesis, budget=2, html=True)
    model = Rationalizer.load(pair_run)
    model.budget = 2
    expected = plain(model.explain(premise, hypothesis))
    found = answer["explanations"][0]
    assert found["pairs"] == expected["pairs"]
    assert len(found["pairs"]) <= 2
    assert found["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-5)
    assert "<svg" in found["html"]
    several = explain(pair_client, pairs=[[premise, hypothesis], ["a b", "b"]])["explanations"]
    assert [one["hypothesis"] for one in several] == [hypothesis, "b"]
    check_error(pair_client, 422, "text", "reads pairs of texts", text="a")
    check_error(pair_client, 400, "hypothesis", "hypothesis is missing", premise="a")
    check_error(pair_client, 422, "pairs[1][1]", "", pairs=[["a", "b"], ["a"]])
    check_error(pair_client, 422, "pairs[0]", "the text is empty", pairs=[["a", " "]])


def check_error(client, status, field, problem, **body):
    response = client.post("/explain", content=json.dumps(body), headers=JSON)
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["field"] == field
    assert problem in error["problem"]
    assert error["remedy"]
    return error


@pytest.mark.parametrize(
    ("status", "field", "problem", "body"),
    [
        (400, "body", "there is no text", {}),
        (400, "texts", "text and texts exclude each other", {"text": "a", "texts": ["b"]}),
        (413, "text", "1001 characters", {"text": "a" * 1001}),
        (413, "texts[1]", "1001 characters", {"texts": ["a", "b" * 1001]}),
        (413, "texts", "9 items, but at most 8", {"texts": ["a"] * 9}),
        (422, "txt", "there is no field 'txt'", {"txt": "a"}),
        (422, "text", "should be a valid string", {"text": 3}),
        (422, "texts[1]", "should be a valid string", {"texts": ["a", 3]}),
        (422, "texts", "the list is empty", {"texts": []}),
        (422, "text", "the text is empty", {"text": " \n\t"}),
        (422, "text", "half of a surrogate pair", {"text": "a \ud800"}),
        (422, "premise", "reads single texts", {"premise": "a", "hypothesis": "b"}),
        (422, "budget", "got 0", {"text": "a", "budget": 0}),
        (422, "budget", "average", {"text": "a", "budget": "18% on average"}),
        (422, "budget", "got -0.5", {"text": "a", "budget": -0.5}),
        (422, "budget", "got '300%'", {"text": "a", "budget": "300%"}),
        (422, "budget", "should be", {"text": "a", "budget": True}),
        (422, "budget", "does not follow a budget", {"text": "a", "budget": 0.3, "model": "sparsemax"}),
        (422, "model", "there is no model 'x'", {"text": "a", "model": "x"}),
    ],
)
def test_invalid_requests(client, status, field, problem, body):
    check_error(client, status, field, problem, **body)


def test_not_a_json_object(client):
    for content, kind in (("{", "application/json"), ("[1]", "application/json"), ('{"text": "a"}', "text/plain")):
        response = client.post("/explain", content=content, headers={"Content-Type": kind})
        assert response.status_code in (400, 422)
        error = response.json()["error"]
        assert error["field"] == "body"
        assert "send one JSON object" in error["remedy"]


NESTED = [opening * depth for opening in (b"[", b'{"a":') for depth in (100_000, 900_000)]


@pytest.mark.parametrize("content", [b'{"text": "\xff"}', b'{"budget": ' + b"9" * 5000 + b"}", *NESTED])
def test_json_that_cannot_be_parsed(models, content):
    with local_client(create_app(models)) as client:
        response = client.post("/explain", content=content, headers=JSON)
    assert response.status_code == 400
    assert response.json()["error"]["field"] == "body"


@pytest.mark.parametrize("depth", [10, 200, 490, 900, 960, 990, 1000, 5000])
@pytest.mark.parametrize("field", ["text", "texts", "budget", "model"])
def test_nested_values_are_rejected_at_any_depth(client, field, depth):
    content = f'{{"{field}": {"[" * depth}1{"]" * depth}}}'
    response = client.post("/explain", content=content, headers=JSON)
    assert response.status_code in (400, 422), response.text
    assert response.json()["error"]["field"].startswith(("body", field))


@pytest.mark.parametrize("name", ["text", "model", "budget", "x"])
@pytest.mark.parametrize("value", ["\ud800", "a\udfff%", "x" * 3500, "9" * 3000])
def test_errors_are_short_and_valid_unicode(client, name, value):
    body = {"text": "a", name: value} if name != "x" else {value: 1}
    response = client.post("/explain", content=json.dumps(body), headers=JSON)
    assert response.status_code in ((413, 422) if value[0] != "9" else (200, 413, 422)), response.text
    assert len(response.text) < 1000 or response.status_code == 200


def test_only_the_first_of_many_errors_is_reported(models):
    with local_client(create_app(models)) as client:
        for content in (
            '{"texts": [' + "[]," * 300_000 + "1]}",
            "{" + ",".join(f'"{k}":0' for k in range(100_000)) + "}",
        ):
            response = client.post("/explain", content=content, headers=JSON)
            assert response.status_code == 422
            assert len(response.text) < 1000


def test_text_without_words(client, pair_client):
    check_error(client, 422, "texts[1]", "<br />", texts=["a", "<br />", "b"])
    check_error(client, 422, "text", "<br />", text="<br />")
    check_error(pair_client, 422, "pairs[0]", "<br />", pairs=[["a", "<br />"]])


def test_pairs_with_too_many_words(pair_client):
    long = "a " * 501
    check_error(pair_client, 422, "pairs[1]", "501 and 501 words", pairs=[["a", "b"], [long, long]])
    assert explain(pair_client, premise="a " * 2500, hypothesis="b")


def test_unknown_paths_and_methods(client):
    for method, path, status in (("GET", "/explain", 405), ("GET", "/nothing", 404), ("POST", "/health", 405)):
        response = client.request(method, path)
        assert response.status_code == status
        error = response.json()["error"]
        assert error["field"] == "path"
        assert "/docs" in error["remedy"]
    assert response.headers["Allow"] == "GET"


def test_too_large_body_is_not_read(models):
    with local_client(create_app(models, quotas=Quotas(items=1, characters=10))) as client:
        long = json.dumps({"text": "a" * 10_000})
        announced = client.post("/explain", content=long, headers=JSON)
        read = []

        def pieces():
            for _ in range(1000):
                read.append(1)
                yield b" " * 1000

        streamed = client.post("/explain", content=pieces(), headers=JSON)
        for response in (announced, streamed):
            assert response.status_code == 413
            assert response.json()["error"]["field"] == "body"
            assert "more than 4216 bytes" in response.json()["error"]["problem"]
        assert explain(client, text="short")


def test_full_queue(models):
    """With a queue of one text, requests beyond those in progress are answered 503."""
    with (
        local_client(create_app(models, quotas=Quotas(waiting=1))) as client,
        ThreadPoolExecutor(16) as threads,
    ):
        answers = list(threads.map(lambda _: client.post("/explain", json={"texts": [TEXT] * 8}), range(32)))
    codes = [answer.status_code for answer in answers]
    assert set(codes) == {200, 503}
    busy = answers[codes.index(503)]
    assert busy.headers["Retry-After"] == "1"
    assert "waiting" in busy.json()["error"]["problem"]


@pytest.mark.parametrize("error", [ZeroDivisionError("by zero"), ValueError("an index"), KeyError("a name")])
def test_internal_errors(models, monkeypatch, caplog, error):
    """Also a ValueError of the model is an error of the server, not of the request."""

    def fail(*_, **__):
        raise error

    with local_client(create_app(models)) as client:
        with monkeypatch.context() as patch:
            patch.setattr(Rationalizer, "explain_examples", fail)
            response = client.post("/explain", json={"text": "a secret text"})
        assert client.get("/ready").status_code == 200
        assert explain(client, text=TEXT)
    assert response.status_code == 500
    (number,) = re.findall("error ([0-9a-f]{8})", response.json()["error"]["problem"])
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert str(error) not in response.text
    (logged,) = [record for record in caplog.records if record.name == "rationalizer"]
    assert logged.getMessage() == f"POST /explain failed (error {number})"
    assert logged.exc_info[1] is error
    assert "a secret text" not in caplog.text


def test_not_ready_after_the_batching_task_has_ended(models, monkeypatch):
    with local_client(create_app(models)) as client:
        monkeypatch.setattr(Batcher, "is_running", False)
        response = client.get("/ready")
        assert response.status_code == 503
        assert "ended" in response.json()["error"]["problem"]
        assert client.post("/explain", json={"text": "a"}).status_code == 500
        assert client.get("/health").status_code == 200


def test_warnings_are_in_the_answer(client):
    known, unknown = explain(client, texts=[TEXT, "xyzzy"])["explanations"]
    assert known["warnings"] == []
    assert "knows none" in unknown["warnings"][0]


def test_empty_rationales_are_flagged(spectra_run):
    models = load_models([spectra_run])
    with torch.no_grad():
        models[0].model.trained.model.method.scorer.bias.fill_(-1000)
    with local_client(create_app(models)) as client:
        (found,) = explain(client, text=TEXT)["explanations"]
    assert not any(found["selected"])
    assert "No word is selected" in found["warnings"][0]


def test_hostile_text_is_escaped(client):
    html = explain(client, text=HOSTILE, html=True)["explanations"][0]["html"]
    page = client.post("/render/html", json={"text": HOSTILE})
    svg = client.post("/render/svg", json={"text": HOSTILE})
    for content in (html, page.text, svg.text):
        assert "<script" not in content
        assert "<img" not in content
    assert "&lt;" in page.text
    assert "default-src 'none'" in client.get("/").headers["Content-Security-Policy"]
    assert client.get("/").headers["X-Content-Type-Options"] == "nosniff"


def test_drawings_as_files(client, models):
    page = client.post("/render/html", json={"texts": [TEXT, "a"], "budget": 2})
    assert page.headers["Content-Type"].startswith("text/html")
    assert page.headers["Content-Disposition"] == 'attachment; filename="explanation.html"'
    assert page.text.startswith("<!DOCTYPE html>")
    svg = client.post("/render/svg", json={"text": TEXT})
    assert svg.headers["Content-Type"].startswith("image/svg+xml")
    assert svg.text == render.to_svg(models[0].model.explain(TEXT))
    assert client.post("/render/svg", json={"texts": ["a", "b"]}).status_code == 422
    assert client.post("/render/pdf", json={"text": "a"}).status_code == 422


def test_models_examples_and_health(client, models):
    described = client.get("/models").json()
    assert described["limits"] == {"items": 8, "characters": 1000}
    assert [one["name"] for one in described["models"]] == ["spectra", "sparsemax"]
    assert [one["follows_budget"] for one in described["models"]] == [True, False]
    assert described["models"][0]["classes"] == ["negative", "positive"]
    assert client.get("/examples").json() == {"examples": ["A first one.", "A second one."]}
    health = client.get("/health").json()
    assert (health["status"], health["models"]) == ("ok", ["spectra", "sparsemax"])
    assert client.get("/ready").json() == {"status": "ready"}


def test_pages_load_nothing_from_other_servers(client):
    described = client.get("/openapi.json").json()
    assert set(described["paths"]) == {
        *("/explain", "/render/{kind}", "/models", "/views/{name}", "/examples", "/health", "/ready", "/metrics")
    }
    assert "413" in described["paths"]["/explain"]["post"]["responses"]
    names = sorted(path.name for path in STATIC.iterdir() if not path.name.startswith("annotate"))
    scripts = ["api.js", "dataset.js", "docs.js", "downloads.js", "examples.js", "label_search.js", "page.js"]
    assert names == sorted([*scripts, "docs.html", "index.html", "style.css"])
    for path in ("/", "/docs", *(f"/static/{name}" for name in names if not name.endswith("html"))):
        response = client.get(path)
        assert response.status_code == 200
        addresses = re.findall(r"https?://[^\s\"'<>)]+", response.text)
        assert all(address.startswith("http://www.w3.org/2000/svg") for address in addresses)


def test_default_model_depends_on_the_kind_of_text(spectra_run, pair_run):
    """A request that names no model is answered by the first model for its kind of text."""
    with local_client(create_app(load_models([spectra_run, pair_run]))) as client:
        pair = {"premise": "Two nurses help boys.", "hypothesis": "Two medics help boys."}
        assert client.post("/explain", json={"text": "A warm film."}).json()["model"] == "spectra"
        assert client.post("/explain", json=pair).json()["model"] == "matching"
        refused = client.post("/explain", json={**pair, "model": "spectra"})
        assert refused.status_code == 422
        assert "reads single texts" in refused.text


def test_model_names_are_unique(spectra_run):
    assert [served.name for served in load_models([spectra_run, spectra_run])] == ["spectra", "spectra-2"]


def test_constraints(client, models):
    asked = ["spans=1", {"name": "never", "words": ["lovely"]}]
    answer = explain(client, text=TEXT, budget="50%", constraints=asked)
    assert answer["constraints"] == ["spans=1", "never=words:lovely"]
    (found,) = answer["explanations"]
    same(
        found,
        plain(
            models[0].model.explain_examples(
                models[0].model.examples([TEXT]),
                budget="50%",
                constraints=["spans=1", "never=words:lovely"],
                reasons=True,
            )[0]
        ),
    )
    assert len(found["spans"]) == 1
    assert explain(client, text=TEXT)["constraints"] == []


@pytest.mark.parametrize(
    ("constraints", "problem"),
    [
        (["span=1"], "there is no constraint 'span'"),
        (["spans=0"], "most must be at least 1"),
        ([{"name": "must", "mask": [1]}], "mask"),
        ([{"name": "must", "words": [{}]}], "words"),
        ([{"name": "must", "words": {"a": 1}}], "words"),
        ([{"name": "must-align", "words": [1]}], "words"),
        (["must=words:lovely", "never=words:lovely"], "'lovely' must be selected, but it never may"),
        (["spans=1"] * 17, "at most 16 items"),
    ],
)
def test_invalid_constraints(client, constraints, problem):
    response = client.post("/explain", json={"text": TEXT, "constraints": constraints})
    assert response.status_code == 422
    assert problem in response.json()["error"]["problem"]
    assert response.json()["error"]["field"] == "constraints"


def test_models_without_constraints_offer_none(client, models):
    facts = {model["name"]: model for model in client.get("/models").json()["models"]}
    assert {"constraint": "whole-sentences", "words": "whole sentences"} in facts["spectra"]["offered"]
    assert facts["sparsemax"]["offered"] == []
    refused = client.post("/explain", json={"text": TEXT, "model": "sparsemax", "constraints": ["spans=1"]})
    assert "does not follow constraints" in refused.json()["error"]["problem"]


def test_offered_constraints_fit_the_method(pair_client, pair_run):
    offered = [each["constraint"] for each in pair_client.get("/models").json()["models"][0]["offered"]]
    assert offered == ["must-align=equal", "never-align=stopwords", "monotone", "exactly-k=1", "exactly-k=2"]
    (served,) = load_models([pair_run])
    served.model.trained.model.method = ALIGNERS["xor-at-most-one"]()
    assert [each["constraint"] for each in served.facts()["offered"]] == offered[:3]


def test_head_equals_get(server):
    with httpx.Client(base_url=server) as client:  # one connection: what is sent too much would be the next answer
        for path in ("/", "/static/page.js", "/models", "/examples", "/views/none"):
            head, got = client.head(path), client.get(path)
            assert (head.status_code, head.content) == (got.status_code, b""), path
            for name in ("content-type", "content-length", "content-security-policy"):
                assert head.headers[name] == got.headers[name]
        assert client.head("/explain").status_code == 405


def test_dataset_views(models):
    with local_client(create_app(models, views={"spectra": "<p>seen</p>"}, dataset="mine.csv")) as client:
        found = client.get("/models").json()
        assert ([model["view"] for model in found["models"]], found["dataset"]) == ([True, False], "mine.csv")
        assert client.get("/views/spectra").text == "<p>seen</p>"
        assert client.get("/views/spectra").headers["content-type"] == "text/html; charset=utf-8"
        assert client.get("/views/sparsemax").json()["error"]["problem"] == "there is no view of 'sparsemax'"
