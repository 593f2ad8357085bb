"""`Explainer` adds columns to batches of rows."""

import pickle

import pyarrow as pa
import pytest

from rationalizer import Rationalizer
from rationalizer.bulk import Explainer
from rationalizer.bulk.batch_explainer import make_array
from rationalizer.data import Columns, DataError, generated_pairs
from rationalizer.drawing.result_columns import result_columns, result_values

REVIEW = Columns(text="review")


@pytest.mark.parametrize("kind", ["table", "batch"])
def test_columns_are_added_and_others_kept(small, table, kind):
    given = table if kind == "table" else table.to_batches()[0]
    found = Explainer(small, columns=REVIEW)(given)
    assert type(found) is type(given)
    assert found.schema.names == [*table.schema.names, *result_columns(table.schema.names, **small.result_form)]
    assert {"predicted_2", "probability_positive", "words"} < set(found.schema.names)
    assert pa.table(found.to_pydict(), schema=found.schema).select(table.schema.names).equals(table)
    rows = found.to_pylist()
    texts = {k: row["review"] for k, row in enumerate(rows) if row["review"] and row["review"].strip()}
    assert sorted(set(range(len(rows))) - set(texts)) == [3, 4]
    for k in (3, 4):
        assert {rows[k][name] for name in found.schema.names[len(table.schema) :]} == {None}
    for k, explanation in zip(texts, small.explain(list(texts.values()), reasons=False), strict=True):
        label, probability, *_, rationale, spans, words, _ = result_values(explanation, **small.result_form)
        assert (rows[k]["predicted_2"], rows[k]["rationale"], rows[k]["spans"]) == (label, rationale, spans)
        assert rows[k]["words"] == words
        assert rows[k]["probability"] == pytest.approx(probability, abs=1e-5)


def test_empty_batch_has_the_same_schema(small, table):
    explainer = Explainer(small, columns=REVIEW)
    assert explainer(table.slice(0, 0)).schema == explainer(table.slice(0, 2)).schema


def test_pairs(pair_run):
    pairs = generated_pairs(train=1, dev=1, test=5).test
    given = pa.table({"premise": [p.premise.text for p in pairs], "hypothesis": [p.hypothesis.text for p in pairs]})
    model = Rationalizer.load(pair_run)
    found = Explainer(model, reasons=True)(given).to_pylist()
    for row in found:
        explanation = model.explain(row["premise"], row["hypothesis"])
        assert row["pairs"] == [list(pair) for pair in explanation.pairs]
        own = [word for word in explanation.to_dict()["words"] if word.pop("by_class")]
        assert [word.pop("weight") for word in row["words"]] == pytest.approx([w.pop("weight") for w in own], abs=1e-4)
    with pytest.raises(DataError, match="holds single texts, but the model reads pairs"):
        Explainer(model)(pa.table({"text": ["a"]}))


def test_labels_keep_their_type(small):
    texts = ["good room", "bad room", "good bed", "bad bed"] * 8
    settings = {"hidden": 4, "vector_size": 4, "embeddings": None, "epochs": 1, "min_epochs": 1}
    for labels, kind in (([1, 0] * 16, pa.int64()), ([0.5, 1.5] * 16, pa.float64())):
        model = Rationalizer(**settings).fit(texts, labels, progress=False)
        assert Explainer(model)(pa.table({"text": texts[:2]})).schema.field("predicted").type == kind


def test_pickled_model_keeps_its_budget(small, table):
    other = pickle.loads(pickle.dumps(small))
    other.budget = 1
    found = Explainer(pickle.loads(pickle.dumps(other)), columns=REVIEW)(table.slice(0, 3)).to_pylist()
    assert [len(row["rationale"].split()) for row in found] == [1, 1, 1]
    assert small.budget != other.budget


def test_bad_rows(small):
    given = pa.table({"text": pa.array([1, 2])})
    with pytest.raises(DataError, match="batch: 2 rows cannot be used"):
        Explainer(small)(given)
    assert Explainer(small, skip_bad=True)(given).column("predicted").null_count == 2
    unknown = pa.table({"text": ["good"], "label": ["unheard of"], "rationale_mask": ["no mask"]})
    assert Explainer(small)(unknown).column("predicted").null_count == 0, "only the text is read"


def test_lone_surrogate_is_replaced():
    assert make_array(["good \ud83d", None], pa.string()).to_pylist() == ["good ?", None]
