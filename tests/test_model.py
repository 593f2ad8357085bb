"""The user's object, from texts to explanations and back from disk."""

import json
import pickle
import sys
import warnings

import numpy as np
import pandas
import pytest

from rationalizer import Explanation, Rationalizer
from rationalizer.data import generated_reviews as reviews
from rationalizer.inference import evaluate, predict, standalone_agreement
from rationalizer.models.atomic_files import read_record, write_record
from rationalizer.text import Budget, DataError

pytestmark = pytest.mark.long

SMALL = {"hidden": 8, "vector_size": 8, "epochs": 2, "batch_size": 16}
TEXTS = ["A warm, funny film.", "Dull and far too long!", "Funny, warm and short.", "A dull, long evening."]
TEXTS *= 10
NAMES = ["good", "bad", "good", "bad"] * 10


@pytest.fixture(scope="module")
def model():
    made = Rationalizer(**{**SMALL, "epochs": 10}, learning_rate=0.02).fit(TEXTS, NAMES)
    made.trained.model.method.scorer.bias.data += 100  # words that speak against a label are taken too: budgets bind
    return made


def test_predictions(model):
    predicted = model.predict(TEXTS[:4])
    assert predicted.tolist() == NAMES[:4]
    probabilities = model.predict_proba(TEXTS[:4])
    assert probabilities.shape == (4, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
    assert model.classes_.tolist() == ["bad", "good"]
    assert [model.classes_[i] for i in probabilities.argmax(1)] == NAMES[:4]


def test_explain(model):
    text = "A warm, funny film."
    explanation = model.explain(text)
    assert isinstance(explanation, Explanation)
    assert explanation.text == text
    assert explanation.label == "good"
    assert explanation.probabilities["good"] == pytest.approx(model.predict_proba([text])[0, 1])
    assert [text[slice(*offset)] for offset in explanation.offsets] == list(explanation.tokens)
    assert sum(explanation.selected) == 1  # round(0.2 * 4): the marks do not count
    assert explanation.counted == (True, True, False, True, True, False)
    assert explanation.unknown == (False,) * 6
    assert explanation.readable
    assert [factor != 0 for factor in explanation.mask] == list(explanation.selected)
    (span,) = explanation.spans
    assert text[slice(*span)] == explanation.tokens[explanation.selected.index(True)]
    assert explanation.annotation is None
    json.dumps(explanation.to_dict())


def test_spans_join_neighbours(model):
    wide = Rationalizer.from_trained(model.trained)
    wide.budget = 1.0
    text = "A warm,   funny film."
    assert wide.explain(text).spans == ((0, len(text) - 1),)  # a mark between words is read along, one at the end not


def test_explain_list(model):
    listed = model.explain(TEXTS[:3], annotations=[[(2, 6)], None, None])
    for one, text in zip(listed, TEXTS, strict=False):
        alone = model.explain(text)
        assert (one.label, one.selected, one.spans) == (alone.label, alone.selected, alone.spans)
    assert listed[0].annotation == (False, True, False, False, False, False)
    assert listed[1].annotation is None


def test_explain_iterator_is_lazy(model):
    taken = []
    found = model.explain((taken.append(text) or text for text in TEXTS[:3]), batch_size=1)
    assert not taken
    first = next(found)
    assert taken == TEXTS[:1]
    assert [one.text for one in (first, *found)] == TEXTS[:3]


def test_set_budget(model):
    changed = Rationalizer.from_trained(model.trained)
    for budget, words in ((3, 3), (0.5, 2), ("75%", 3), (0.01, 1), ("1", 1), ("100%", 4)):
        changed.budget = budget
        assert changed.explain(TEXTS[0]).selected_word_count == words
        assert changed.budget == Budget.parse(budget)
    with pytest.raises(ValueError, match="at least 1"):
        changed.budget = 0
    assert model.budget == Budget.share(0.2)


def test_method_without_budget():
    attention = Rationalizer("sparsemax", **SMALL).fit(TEXTS, NAMES)
    with pytest.raises(ValueError, match="sparsemax"):
        attention.budget = 0.5


def test_save_and_load(model, tmp_path):
    model.save(tmp_path / "run")
    loaded = Rationalizer.load(tmp_path / "run")
    assert loaded.explain(TEXTS[:4]) == model.explain(TEXTS[:4])
    assert loaded.config == model.config
    assert repr(loaded) == "Rationalizer(method='spectra', budget='20%'), trained"


def test_load_run(tmp_path):
    trained = Rationalizer(**SMALL).fit(TEXTS, NAMES, run_dir=tmp_path / "run")
    assert Rationalizer.load(tmp_path / "run").explain(TEXTS[:4]) == trained.explain(TEXTS[:4])
    again = Rationalizer(**SMALL).fit(TEXTS, NAMES, run_dir=tmp_path / "run", resume=True)
    assert again.explain(TEXTS[:4]) == trained.explain(TEXTS[:4])


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([1, 0, 1, 0] * 10, (0, 1)),
        (np.array([3, -1, 3, -1] * 10), (-1, 3)),
        (pandas.Series([1.0, 0.0, 1.0, 0.0] * 10), (0.0, 1.0)),
        ([1, 0.0, 1.0, 0] * 10, (0.0, 1.0)),
        (pandas.Series([True, False, True, False] * 10), (False, True)),
        (pandas.Series(NAMES, dtype="category"), ("bad", "good")),
        (["3", "10", "3", "10"] * 10, ("3", "10")),
    ],
)
def test_labels_keep_their_type(labels, classes, tmp_path):
    frame = pandas.DataFrame({"text": TEXTS, "label": labels})
    fitted = Rationalizer(**SMALL).fit(frame["text"], labels)
    fitted.save(tmp_path)
    for model in (fitted, Rationalizer.load(tmp_path)):
        found = model.classes_.tolist()
        assert found == list(classes)
        assert all(type(given) is type(expected) for given, expected in zip(found, classes, strict=True))
        assert set(model.predict(frame["text"]).tolist()) <= set(classes)


def test_regression():
    values = [4.5, 1.0, 4.5, 1.0] * 10
    fitted = Rationalizer(**{**SMALL, "epochs": 10}, learning_rate=0.02).fit(np.array(TEXTS), values)
    predicted = fitted.predict(TEXTS[:2])
    assert predicted[0] > 3.5
    assert predicted[1] < 2
    explanation = fitted.explain(TEXTS[0])
    assert explanation.label == pytest.approx(predicted[0])
    assert explanation.probabilities is None
    with pytest.raises(ValueError, match="no probabilities"):
        fitted.predict_proba(TEXTS)


@pytest.mark.parametrize("punctuation", ["free", "count"])
def test_blank_tokens_keep_their_position_and_are_never_selected(punctuation):
    words = [["", *text.split(), "\xa0", "It", "ended", ".", ""] for text in TEXTS]
    masks = [[0, 1, *[0] * (len(text) - 2)] for text in words]
    with pytest.warns(UserWarning, match="120 tokens"):
        fitted = Rationalizer(**SMALL, punctuation=punctuation, budget="100%").fit(words, NAMES, annotations=masks)
    for constraints in ([], ["per-sentence=1"], ["whole-sentences"]):
        for text, explanation in zip(words[:4], fitted.explain(words[:4], constraints=constraints), strict=True):
            assert explanation.tokens == tuple(text)
            blank = [not token.strip() for token in text]
            assert not any(flag for flag, is_blank in zip(explanation.selected, blank, strict=True) if is_blank)
            assert not any(flag for flag, is_blank in zip(explanation.counted, blank, strict=True) if is_blank)
            assert any(explanation.selected)
            assert not explanation.unknown[0]
            assert explanation.to_svg()
    with pytest.warns(UserWarning, match="guess"):
        (guess,) = fitted.explain([["", "zzyzx", "\xa0"]])
    assert guess.counted == (False, True, False)


def test_dev_texts():
    fitted = Rationalizer(**SMALL).fit(TEXTS, NAMES, dev=(TEXTS[:4], NAMES[:4]))
    assert len(fitted.trained.history["epochs"]) == 2
    with pytest.raises(ValueError, match="ugly"):
        Rationalizer(**SMALL).fit(TEXTS, NAMES, dev=(TEXTS[:1], ["ugly"]))


def test_empty_text_in_a_list_names_its_row(model):
    with pytest.raises(ValueError, match="row 2") as caught:
        model.predict([TEXTS[0], " ", TEXTS[1]])
    assert "leave the row out" in caught.value.remedy


@pytest.mark.parametrize("imported", [True, False])
def test_untrained_model_raises(imported, monkeypatch):
    theirs = pytest.importorskip("sklearn.exceptions")
    if not imported:
        monkeypatch.delitem(sys.modules, "sklearn.exceptions")
    for use in ("predict", "predict_proba", "explain"):
        with pytest.raises(ValueError, match="not trained") as caught:
            getattr(Rationalizer(), use)(TEXTS)
        assert isinstance(caught.value, AttributeError)
        assert (type(caught.value) is theirs.NotFittedError) is imported
    with pytest.raises(ValueError, match="not trained"):
        Rationalizer().save("nowhere")


def test_invalid_arguments():
    with pytest.raises(ValueError, match=r"did you mean 'temperature'\?"):
        Rationalizer(temperatur=1.0)
    with pytest.raises(ValueError, match="at least 1"):
        Rationalizer(budget=0)
    with pytest.raises(ValueError, match="39 labels"):
        Rationalizer().fit(TEXTS, NAMES[:-1])
    with pytest.raises(ValueError, match="texts must be a list"):
        Rationalizer().fit("one text", NAMES)


def test_rationales_are_sufficient():
    """On reviews with known rationales; fewer texts and epochs than by default, so that it takes seconds."""
    corpus = reviews(train=2000, dev=200, test=200)
    texts, labels = [e.text for e in corpus.train], [corpus.classes[e.label] for e in corpus.train]
    dev = [e.text for e in corpus.dev], [corpus.classes[e.label] for e in corpus.dev]
    model = Rationalizer("spectra", 0.2, epochs=6).fit(texts, labels, dev=dev)
    scores = evaluate(model.trained, corpus.test)
    assert scores.macro_f1 > 0.9
    assert scores.token_f1 > 0.8
    assert scores.size == pytest.approx(0.2, abs=0.02)
    assert standalone_agreement(model.trained, corpus.test) > 0.9


def test_words_with_vectors_are_known(model):
    """Pretrained vectors tell them apart; what even they do not know is marked, not one of many in silence."""
    films = ["A dreadful film.", "A marvellous film.", "A qwzxqq film."]
    assert not any(word in model.trained.encoder.vocabulary for word in ("dreadful", "marvellous", "qwzxqq"))
    bad, good, strange = model.explain(films)
    assert bad.unknown == good.unknown == (False,) * 4
    assert strange.unknown == (False, True, False, False)
    assert strange.readable
    one, other = predict(model.trained, model.examples(films[:2]), budget=1.0).outputs  # whichever word it selects
    assert not np.allclose(one, other)


def test_unknown_words_warn(model):
    with pytest.warns(UserWarning, match="none of the words"):
        guess = model.explain("Qwzxqq vrblgh!")
    assert "none of the words" in guess.warnings[0]
    assert guess.to_dict()["warnings"] == guess.warnings
    assert guess.unknown == (True, True, False)
    assert not guess.readable
    assert "Note: The model knows none of the words of the text; the prediction is a guess." in str(guess)
    assert "{Qwzxqq}" in str(guess).replace("[", "").replace("]", "")
    with pytest.warns(UserWarning, match="1 of 2 texts"):
        model.predict(["Qwzxqq vrblgh!", "A warm film."])
    with pytest.warns(UserWarning, match=r"1 of 3 texts \(first: text 3"):
        list(model.explain(iter(["A warm film.", "A dull film.", "Qwzxqq!"]), batch_size=2))
    with pytest.warns(UserWarning, match="1 of 2 texts"):
        table = model.explain(pandas.DataFrame({"text": ["A warm film.", "Qwzxqq!"]}))
    assert [isinstance(cell, str) for cell in table["warnings"]] == [False, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(["A warm film."])
        assert model.explain(["A warm film."])[0].warnings == ()


def test_bad_texts_can_be_skipped(model):
    texts = ["A warm film.", "", "A dull film.", None]
    with pytest.raises(DataError, match="row 2"):
        model.predict(texts)
    with pytest.warns(UserWarning, match="2 rows skipped: rows 2, 4"):
        labels = model.predict(texts, skip_bad=True)
    good = model.predict(texts[::2])
    assert labels.tolist() == [good[0], None, good[1], None]
    with pytest.warns(UserWarning, match="rows 2, 4"):
        rows = model.predict_proba(texts, skip_bad=True)
    np.testing.assert_array_equal(rows[::2], model.predict_proba(texts[::2]))
    assert np.isnan(rows[1::2]).all()
    with pytest.warns(UserWarning, match="skipped"):
        column = model.predict(pandas.DataFrame({"text": texts}, index=[3, 3, 5, 7]), skip_bad=True)
    assert (column.name, column.index.tolist()) == ("predicted", [3, 3, 5, 7])
    assert (column.isna().tolist(), column[::2].tolist()) == ([False, True, False, True], good.tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.predict(texts[::2], skip_bad=True).dtype == good.dtype
    with pytest.raises(DataError):
        model.predict("one text", skip_bad=True)


def test_uncertain_labels_are_left_out(model):
    highest = model.predict_proba(TEXTS).max(-1)
    least = float(np.median(highest))
    given, cautious = model.predict(TEXTS), model.predict(TEXTS, abstain=least)
    assert cautious.tolist() == [a if p >= least else None for a, p in zip(given, highest, strict=True)]
    assert None in cautious.tolist()


def test_word_splitting_is_kept(tmp_path):
    tokenized = Rationalizer(**SMALL).fit([text.split() for text in TEXTS], NAMES, run_dir=tmp_path)
    assert tokenized.explain("It isn't good .").tokens == ("It", "isn't", "good", ".")
    assert tokenized.explain("a film.").tokens == ("a", "film.")
    assert Rationalizer.load(tmp_path).explain("a film.").tokens == ("a", "film.")
    spaced = Rationalizer(**SMALL, word_splitting="spaces").fit(TEXTS, NAMES)
    assert spaced.explain("a film.").tokens == ("a", "film.")


def test_run_dir(tmp_path):
    Rationalizer(**SMALL).fit(TEXTS, NAMES, run_dir=tmp_path / "run")
    assert {"config.json", "encoder.json", "model.safetensors", "history.json", "data.json", "scores.json"} <= {
        path.name for path in (tmp_path / "run").iterdir()
    }
    with pytest.raises(FileExistsError, match="resume"):
        Rationalizer(**SMALL).fit(TEXTS, NAMES, run_dir=tmp_path / "run")


def test_old_format(tmp_path):
    (tmp_path / "config.json").write_text('{"format": 1, "config": {}}')
    with pytest.raises(ValueError, match="format"):
        Rationalizer.load(tmp_path)


def test_tokens_and_split_rule(tmp_path):
    lists = [text.split() for text in TEXTS]
    assert Rationalizer(**SMALL).fit(lists, NAMES).trained.encoder.rule == "spaces"
    assert Rationalizer(**SMALL, word_splitting="words").fit(lists, NAMES).trained.encoder.rule == "words"
    pairs = [(text, text) for text in lists]
    assert Rationalizer("at-most-one", **SMALL).fit(pairs, NAMES).trained.encoder.rule == "spaces"


def test_unknown_words_do_not_count(model):
    found = model.explain("A warm qwzxqq vrblgh film.")
    assert not any(chosen and strange for chosen, strange in zip(found.selected, found.unknown, strict=True))


def test_pickle(model):
    again = pickle.loads(pickle.dumps(model))
    assert again.explain(TEXTS[:4]) == model.explain(TEXTS[:4])


def test_lone_surrogates(tmp_path):
    texts = [f"{text} \ud800x" for text in TEXTS]
    Rationalizer(**SMALL, embeddings=None).fit(texts, NAMES, run_dir=tmp_path / "run")
    assert not any(Rationalizer.load(tmp_path / "run").explain("warm \ud800x").unknown)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "letters"}, "letters"),
        ({"punctuation": "never"}, "punctuation"),
        ({"pretrained_words": 3}, "75000"),
        ({"vocabulary": {}}, "vocabulary"),
    ],
)
def test_damaged_encoder(model, tmp_path, change, message):
    model.save(tmp_path)
    path = tmp_path / "encoder.json"
    write_record(path, read_record(path) | change)
    with pytest.raises(ValueError, match=message):
        Rationalizer.load(tmp_path)
