"""The field `record` of requests."""

from rationalizer import DecisionRecord, verify
from rationalizer.data import generated_reviews

TEXTS = [example.text for example in generated_reviews(train=1, dev=1, test=6).test]


def explain(client, **body):
    answer = client.post("/explain", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["explanations"]


def test_records_can_be_verified(client, models):
    body = {"texts": TEXTS, "budget": 3, "constraints": ["spans=2"], "record": True}
    for text, explanation in zip(TEXTS, explain(client, **body), strict=True):
        record = DecisionRecord.from_dict(explanation["record"])
        assert (record.budget, record.constraints) == ("3", ("spans=2",))
        assert record.probabilities == explanation["probabilities"]
        assert verify(record, models[0].model, text).verdict == "identical"


def test_company_changes_no_bit(client):
    together = explain(client, texts=TEXTS, record=True)
    for text, explanation in zip(TEXTS, together, strict=True):
        (alone,) = explain(client, text=text, record=True)
        assert {**alone["record"], "time": ""} == {**explanation["record"], "time": ""}


def test_pairs(pair_client, pair_run):
    pair = ("A man plays a guitar.", "A man makes music.")
    (explanation,) = explain(pair_client, pairs=[pair], record=True)
    assert verify(DecisionRecord.from_dict(explanation["record"]), pair_run, pair).verdict == "identical"


def test_no_record_by_default(client):
    (explanation,) = explain(client, text=TEXTS[0])
    assert "record" not in explanation


def test_other_values_are_refused(client):
    answer = client.post("/explain", json={"text": TEXTS[0], "record": "with-text"})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "record"
