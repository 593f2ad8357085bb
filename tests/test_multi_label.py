"""Models of several labels, targets or classes with a rationale each, as users train and use them."""

import random

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from rationalizer import Rationalizer
from rationalizer.data import make_examples
from rationalizer.hub.model_card import card
from rationalizer.inference import evaluate, predict_from
from rationalizer.metrics.multi_label import MultiLabelEvaluation, average_precisions, calibrate_thresholds, label_f1
from rationalizer.text import DataError

SIGNS = {"food": ["tasty", "stale", "soup"], "room": ["bed", "noisy", "clean"], "service": ["waiter", "rude"]}
FILLER = ["the", "and", "we", "it", "was", "very", "with", "there", "in", "on", "a", "day", "visit", "place"]
SMALL = {"embeddings": None, "vector_size": 16, "hidden": 16, "dropout": 0.1, "learning_rate": 1e-2, "averaging": 0.9}
SMALL |= {"budget": 3, "epochs": 6}


def make_texts(count, seed):
    generator = random.Random(seed)
    texts, labels, marks = [], [], []
    for _ in range(count):
        own = [name for name in SIGNS if generator.random() < 0.4]
        words = [generator.choice(FILLER) for _ in range(10)]
        for name in own:
            for _ in range(2):
                words.insert(generator.randrange(len(words)), generator.choice(SIGNS[name]))
        texts.append(" ".join(words))
        labels.append(own)
        marks.append({name: [word in SIGNS[name] for word in words] for name in SIGNS})
    return texts, labels, marks


TEXTS, LABELS, MARKS = make_texts(250, 0)
OTHER, OTHER_LABELS, OTHER_MARKS = make_texts(60, 1)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    trained = Rationalizer(**SMALL, keep_examples=0).fit(TEXTS, LABELS)
    trained.save(tmp_path_factory.mktemp("models") / "labels")
    return Rationalizer.load(tmp_path_factory.getbasetemp() / "models0" / "labels")


def test_shapes_are_those_of_scikit_learn(model):
    binarizer = MultiLabelBinarizer()
    truth = binarizer.fit_transform(OTHER_LABELS)
    predicted, probabilities = model.predict(OTHER), model.predict_proba(OTHER)
    assert model.classes_.tolist() == binarizer.classes_.tolist() == ["food", "room", "service"]
    assert predicted.shape == probabilities.shape == (60, 3)
    assert np.array_equal(predicted, probabilities >= list(model.thresholds.values()))
    assert model.score(OTHER, OTHER_LABELS) == model.score(OTHER, truth) == (predicted == truth).all(1).mean()
    table = model.predict(pd.DataFrame({"text": OTHER[:2]}, index=[7, 9]))
    assert (list(table.columns), table.index.tolist()) == (["food", "room", "service"], [7, 9])


def test_labels_are_learned_with_their_own_words(model):
    assert model.config.rationales == "per-label"
    assert f1_score(MultiLabelBinarizer().fit_transform(OTHER_LABELS), model.predict(OTHER), average="micro") > 0.8
    explanation = model.explain(OTHER[0])
    assert explanation.label == tuple(one.name for one in explanation.labels if one.value)
    assert all(sum(one.selected) <= 3 for one in explanation.labels)
    assert explanation.selected == tuple(map(any, zip(*(one.selected for one in explanation.labels), strict=True)))
    with pytest.raises(KeyError, match="food, room, service"):
        explanation.rationale_of("view")


def test_other_words_do_not_change_a_bit_of_a_label(model):
    """What `explain` shows for a label is all that its probability depends on, whatever else the text says."""
    for text in OTHER[:10]:
        words = text.split()
        before = model.explain(text)
        for one in before.labels:
            kept = [word if chosen else "the" for word, chosen in zip(words, one.selected, strict=True)]
            (example,) = model.examples([" ".join(kept)])
            masks = np.array([own.mask for own in before.labels], dtype=np.float32)
            after = predict_from(model.trained, [example], [masks])[0]
            assert after[before.labels.index(one)] == np.float32(one.probability)


def test_scores_are_those_of_scikit_learn(model):
    examples = make_examples(OTHER, OTHER_LABELS, OTHER_MARKS, scheme=model.trained.description.labels)
    scores = evaluate(model.trained, examples)
    truth, p = MultiLabelBinarizer().fit_transform(OTHER_LABELS), model.predict_proba(OTHER)
    assert scores.micro_f1 == pytest.approx(f1_score(truth, model.predict(OTHER), average="micro"))
    assert scores.macro_f1 == pytest.approx(f1_score(truth, model.predict(OTHER), average="macro"))
    assert scores.average_precision == pytest.approx(average_precision_score(truth, p, average="macro"))
    assert list(scores.by_label) == ["food", "room", "service"]
    own = scores.by_label["food"]
    assert own.micro_f1 == pytest.approx(f1_score(truth[:, 0], model.predict(OTHER)[:, 0]))
    assert own.token_f1 > 0.3  # against the annotation of this label


def test_card_says_what_each_label_reads(model):
    text = card(model.trained, name="mine")
    assert "predicts food, room, service, each from words of its own" in text
    assert all(f"| {name} | {p:.3f} |" in text for name, p in model.thresholds.items())
    assert "counted equally" not in text  # class weights have no effect on labels


def test_thresholds_can_be_set(model):
    before = model.thresholds
    try:
        model.thresholds = {"food": 1.0}
        assert model.predict(OTHER)[:, 0].sum() == 0
        model.thresholds = 0.0
        assert model.predict(OTHER).all()
        with pytest.raises(ValueError, match="'view' is unknown"):
            model.thresholds = {"view": 0.5}
        for wrong in ([0.5], 1.5, "high", {"food": "high"}):
            with pytest.raises(ValueError, match="each of 3 labels"):
                model.thresholds = wrong
        with pytest.raises(ValueError, match="thresholds"):
            model.predict(OTHER, abstain=0.5)
    finally:
        model.thresholds = before


def test_thresholds_are_the_best_on_dev():
    truth = np.array([[1.0, 0], [0, 0], [1, np.nan], [0, 0]])
    p = np.array([[0.2, 0.1], [0.1, 0.2], [0.4, 0.9], [0.3, 0.3]])
    limits = calibrate_thresholds(truth, p, prior=0)
    assert limits == pytest.approx([0.15, 0.5])
    assert label_f1(MultiLabelEvaluation(truth=truth, probabilities=p, thresholds=limits)).tolist() == [0.8, 0]
    assert average_precisions(truth, p)[0] == pytest.approx(average_precision_score(truth[:, 0], p[:, 0]))


def test_thresholds_of_rare_labels_lean_on_the_others():
    """The label of one text in a thousand gets a threshold near that of the others, a frequent one its own."""
    generator = np.random.default_rng(0)
    p = generator.random((1000, 3))
    truth = (p > 0.6).astype(float)
    truth[:, 2] = 0
    truth[p[:, 2].argmin(), 2] = 1  # mislabelled
    own, (first, second, rare) = calibrate_thresholds(truth, p, prior=0), calibrate_thresholds(truth, p)
    assert own[2] < 0.01
    assert rare > 0.5
    assert [first, second] == pytest.approx([0.6, 0.6], abs=0.01)
    assert calibrate_thresholds(np.zeros((3, 2)), p[:3, :2]) == [0.5, 0.5]


def test_several_targets():
    values = {
        "stars": [4.5 if "food" in own else 1.5 for own in LABELS],
        "room": [None if k % 5 == 0 else "a" if "room" in own else "b" for k, own in enumerate(LABELS)],
    }
    model = Rationalizer(**SMALL | {"epochs": 2}, rationales="disjoint").fit(TEXTS, values)
    predicted = model.predict(OTHER[:3])
    assert predicted.shape == (3, 2)
    assert isinstance(predicted[0, 0], float)
    assert set(predicted[:, 1]) <= {"a", "b"}
    explanation = model.explain(OTHER[0])
    assert explanation.label == {"stars": predicted[0, 0], "room": predicted[0, 1]}
    stars, room = explanation.labels
    assert not any(a and b for a, b in zip(stars.selected, room.selected, strict=True))
    assert sum(room.probabilities.values()) == pytest.approx(1)


def test_a_rationale_for_each_class():
    classes = [["one", "two", "three"][len(own) % 3] for own in LABELS]
    model = Rationalizer(**SMALL | {"epochs": 2}, rationales="per-label").fit(TEXTS, classes)
    explanation = model.explain(OTHER[0])
    assert [one.name for one in explanation.labels] == model.classes_.tolist()
    assert [one.value for one in explanation.labels].count(True) == 1
    examples = make_examples(OTHER, ["one"] * 60, scheme=model.trained.description.labels)
    assert evaluate(model.trained, examples).accuracy is not None


@pytest.mark.parametrize(
    ("labels", "settings", "named"),
    [
        (LABELS, {"sampling": "balanced"}, "sampling"),
        (LABELS, {"class_weight": {"food": 2}}, "class_weight"),
        (LABELS, {"rationales": "per-label", "annotation_weight": 1.0}, "annotation"),
        ([float(len(own)) / 7 for own in LABELS], {"rationales": "per-label"}, "targets"),
    ],
)
def test_settings_that_do_not_fit(labels, settings, named):
    with pytest.raises((ValueError, DataError), match=named):
        Rationalizer(**SMALL | settings).fit(TEXTS, labels)
