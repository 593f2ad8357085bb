"""Replays: the same bits whatever the batch size and the number of threads, and every change is found."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas
import pytest
import torch

from rationalizer import DecisionRecord, Rationalizer, verify
from rationalizer.constraints import Constraint, Must, Never
from rationalizer.models.devices import set_threads
from rationalizer.records import TOLERANCE, Recorder, Verifier
from rationalizer.records.recorder import write_constraint
from rationalizer.text.errors import InputError
from tests.constraints.few_sentences import FewSentences


def numbers(records):
    """What must not depend on how a record was made: all but the time."""
    return [replace(record, time="") for record in records]


@pytest.mark.parametrize("name", ["sentiment", "nli"])
def test_batch_size_and_threads_change_no_bit(name, texts, pairs):
    model, given = Rationalizer.load(name), texts if name == "sentiment" else pairs
    made = []
    for threads, batch in ((1, 40), (2, 1), (3, 7)):
        with set_threads(threads):
            explained = list(model.explain(iter(given), batch_size=batch, record="with-text"))
            assert torch.get_num_threads() == threads
        made.append(numbers(explanation.record for explanation in explained))
    alone = numbers(model.explain([one], record="with-text")[0].record for one in given)
    assert made[0] == made[1] == made[2] == alone
    verifier = Verifier(name)
    with set_threads(2):
        assert {verifier.verify(explanation.record).verdict for explanation in explained} == {"identical"}


def test_global_settings_change_no_bit(model, texts):
    expected = numbers(explanation.record for explanation in model.explain(texts, record=True))
    torch.set_float32_matmul_precision("medium")
    flushed = torch.set_flush_denormal(True)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = numbers(explanation.record for explanation in model.explain(texts, record=True))
        assert torch.get_float32_matmul_precision() == "medium"
        assert not flushed or not bool((torch.full((1,), 1e-40) * 0.5).any())
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.set_flush_denormal(False)
    assert found == expected


def test_explanation_is_the_recorded_one(model, texts):
    for explanation in model.explain(texts, record=True):
        assert explanation.record.probabilities == explanation.probabilities
        assert verify(explanation.record, model, explanation.text).verdict == "identical"


def test_text_is_needed_and_checked(model, texts, record):
    with pytest.raises(InputError) as caught:
        verify(record, model)
    assert "text" in caught.value.problem
    with pytest.raises(InputError) as caught:
        verify(record, model, texts[0] + " ")
    assert record.texts[0].sha256 in caught.value.problem
    with pytest.raises(InputError):
        verify(record, model, (texts[0], texts[1]))
    assert verify(record, model, texts[0])


def test_where_records_and_models_may_be(spectra_run, texts, record, tmp_path):
    record.save(tmp_path / "record.json")
    assert verify(tmp_path / "record.json", spectra_run, texts[0]).verdict == "identical"


def test_another_model_fails(sparsemax_run, texts, record):
    result = verify(record, sparsemax_run, texts[0])
    assert not result
    assert record.model in result.problems[0]


def test_budgets_and_constraints_are_replayed(spectra_run, texts):
    model = Rationalizer.load(spectra_run)
    for budget in ("10%", 0.5, 3):
        model.budget = budget
        for constraints in ([], ["spans=1"], ["never=stopwords", "span-length=1-4"], [Never(pattern="a ")]):
            explanation = model.explain(texts[0], constraints=constraints, record=True)
            assert explanation.record.budget == str(model.budget)
            assert len(explanation.record.constraints) == len(constraints)
            assert verify(explanation.record, spectra_run, texts[0]).verdict == "identical"


def test_user_factors_are_replayed(spectra_run, texts):
    explanation = Rationalizer.load(spectra_run).explain(texts[0], constraints=[FewSentences(1)], record=True)
    assert explanation.record.constraints == ("few-sentences=1",)
    assert verify(explanation.record, spectra_run, texts[0]).verdict == "identical"


def test_constraints_that_cannot_be_written(model, texts):
    @dataclass(frozen=True, repr=False)
    class Unregistered(FewSentences):
        pass

    for constraint in (Must(mask=[[1] * 3]), Unregistered(2)):
        with pytest.raises(InputError) as caught:
            model.explain(texts[0], constraints=[constraint], record=True)
        assert caught.value.remedy
    ambiguous = Never(pattern="warm ")  # the text form loses the space
    assert Constraint.parse(write_constraint(ambiguous)) == ambiguous
    assert isinstance(write_constraint(ambiguous), dict)
    assert write_constraint(Never(stopwords=True)) == "never=stopwords"


def test_tokens_and_sentences_of_the_user_are_replayed(model):
    tokens = ["We", "found truly", "lovely", "care", ".", "It", "was", "rude", "."]
    (explanation,) = model.explain([tokens], record=True)
    assert len(explanation.record.texts[0].offsets) == len(tokens)
    assert verify(explanation.record, model, " ".join(tokens)).verdict == "identical"
    (example,) = model.examples([tokens])
    example = replace(example, sentence_lengths=(2, 7))
    recorder = Recorder(model.trained)
    (explanation,) = model.explain_examples([example], constraints=["whole-sentences"], budget="80%", recorder=recorder)
    assert explanation.record.texts[0].sentence_lengths == (2, 7)
    assert verify(explanation.record, model, " ".join(tokens)).verdict == "identical"


def test_methods_without_a_budget(sparsemax_run, texts):
    explanation = Rationalizer.load(sparsemax_run).explain(texts[0], record=True)
    assert explanation.record.budget is explanation.record.budget_words is None
    assert verify(explanation.record, sparsemax_run, texts[0]).verdict == "identical"


def test_regression(texts, tmp_path):
    values = [len(text) / 100 + 0.5 for text in texts]
    settings = {"hidden": 4, "vector_size": 4, "embeddings": None, "epochs": 1, "min_epochs": 1}
    model = Rationalizer(**settings).fit(texts, values, task="regression", progress=False)
    record = model.explain(texts[0], record=True).record
    assert record.probabilities is None
    assert record.label == model.explain(texts[0], record=True).label
    assert verify(record, model, texts[0]).verdict == "identical"
    changed = replace(record, label=float(np.nextafter(np.float32(record.label), np.float32(9))))
    assert not verify(changed, model, texts[0])


def changes(record):
    """Records that differ from this one in one place, and what a failure should name."""
    word, (name, value) = record.rationale[0], next(iter(record.probabilities.items()))
    one_bit = float(np.nextafter(np.float32(value), np.float32(1)))
    yield replace(record, probabilities={**record.probabilities, name: one_bit}), "differ"
    yield replace(record, rationale=(replace(word, index=word.index + 1), *record.rationale[1:])), "words"
    yield replace(record, rationale=(replace(word, word="other"), *record.rationale[1:])), "words"
    yield replace(record, rationale=(replace(word, weight=0.5), *record.rationale[1:])), "differ"
    yield replace(record, rationale=record.rationale[1:]), "words"
    yield replace(record, label="other"), "label"
    yield replace(record, budget_words=record.budget_words + 1), "budget"
    yield replace(record, word_splitting="spaces"), "splitting"
    yield replace(record, faithful=False), "faithful"
    yield replace(record, texts=(replace(record.texts[0], words=1),)), "words"
    yield replace(record, probabilities={**record.probabilities, "third": 0.0}), "classes"
    yield replace(record, constraints=("never=pattern:.*",)), ""
    yield replace(record, model="0" * 64), "model"


def test_every_change_is_found(model, texts, record):
    for changed, keyword in changes(record):
        result = verify(changed, model, texts[0])
        assert result.verdict == "failed", keyword
        assert keyword in "; ".join(result.problems)


def test_another_machine_may_change_last_bits(model, texts, record):
    elsewhere = replace(record, machine={**record.machine, "processor": "another one"})
    result = verify(elsewhere, model, texts[0])
    assert result.verdict == "identical"
    assert "another one" in result.other_facts[0]

    def with_difference(of):
        first, second = record.probabilities
        values = {first: record.probabilities[first] + of, second: record.probabilities[second] - of}
        return verify(replace(elsewhere, probabilities=values), model, texts[0])

    close = with_difference(TOLERANCE / 2)
    assert (close.verdict, bool(close)) == ("within-tolerance", True)
    assert close.difference == pytest.approx(TOLERANCE / 2, rel=0.01)
    assert "another one" in str(close)
    assert with_difference(TOLERANCE * 2).verdict == "failed"


def test_tables_get_a_column(model, texts):
    table = pandas.DataFrame({"text": [texts[0], None, texts[1]], "record": [1, 2, 3]})
    explained = model.explain(table, record=True)
    assert explained["record"].tolist() == [1, 2, 3]
    assert pandas.isna(explained["record_2"][1])
    assert verify(DecisionRecord.from_json(explained["record_2"][2]), model, texts[1])
    assert "record_2" not in model.explain(table)


def test_odd_texts(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these are guesses
        for text in ("lovely \ud800 care", "!!!", "qwzxqq", "可愛い", "care\x00care\u2028x", "lovely " * 3000):
            record = model.explain(text, record="with-text").record
            again = type(record).from_json(record.to_json())
            assert verify(again, model).verdict == "identical"
    with pytest.raises(InputError):
        model.explain("", record=True)


def test_other_values_of_record_are_refused(model, texts):
    with pytest.raises(InputError):
        model.explain(texts[0], record="with_text")
