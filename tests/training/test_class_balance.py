"""Classes of different frequency: weights, balanced sampling, and the warnings about rare classes."""

import json
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from rationalizer import Rationalizer
from rationalizer.data import generated_reviews, read_corpus, stream_corpus
from rationalizer.inference import evaluate, predict
from rationalizer.models import TrainedModel, configure
from rationalizer.models.batches import BucketSampler
from rationalizer.models.class_weights import compute_class_weights, parse_class_weight
from rationalizer.nn import Classification
from rationalizer.training import train
from rationalizer.training.class_balance import dev_weights, rare_classes_note, training_weights
from tests.cli.calls import run as call
from tests.training.interrupted import SMALL, require_resumable, same, weights


@pytest.fixture(scope="module")
def unbalanced():
    """90 reviews of the first class, 10 of the second, and the same shares in dev."""
    corpus = generated_reviews(train=400, dev=100, test=0)

    def thin(examples, rare):
        first, second = ([one for one in examples if one.label == k] for k in (0, 1))
        return [*first[: 9 * rare], *second[:rare]]

    return replace(corpus, train=thin(corpus.train, 10), dev=thin(corpus.dev, 4))


@pytest.mark.parametrize(
    ("given", "parsed"),
    [
        ("auto", "auto"),
        ("balanced", "balanced"),
        (None, None),
        ("none", None),
        ("spam=5, ham=1", {"spam": 5.0, "ham": 1.0}),
        ("a=b=2", {"a=b": 2.0}),
        ({"spam": 5, 0: 1.5, True: 2}, {"spam": 5.0, "0": 1.5, "true": 2.0}),
    ],
)
def test_parse_class_weight(given, parsed):
    config = configure(overrides={"class_weight": given})
    assert config.class_weight == parsed == parse_class_weight(given)
    assert type(config).from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    ("given", "keyword"),
    [
        ("heavy", "balanced"),
        (3, "balanced"),
        ({}, "names a class"),
        ("a=1,a=2", "twice"),
        ({"a": 0}, "above 0"),
        ({"a": -1}, "above 0"),
        ({"a": float("inf")}, "above 0"),
        ({"a": True}, "above 0"),
        ("a=x", "above 0"),
    ],
)
def test_malformed_class_weight_raises(given, keyword):
    with pytest.raises(ValueError, match=keyword):
        Rationalizer(class_weight=given)


def test_balanced_classes_change_no_bit():
    assert compute_class_weights("balanced", "abc", np.array([7, 7, 0])) is None
    corpus = generated_reviews(train=40, dev=8, test=0)
    even = [[one for one in corpus.train if one.label == k][:12] for k in (0, 1)]
    corpus = replace(corpus, train=[*even[0], *even[1]])
    balanced, plain = (
        configure(overrides={**SMALL, "epochs": 1, "class_weight": weight}) for weight in ("balanced", None)
    )
    assert same(weights(train(corpus, balanced)), weights(train(corpus, plain)))


def test_weights_have_mean_1_over_the_texts():
    counts = np.array([90, 10])
    assert compute_class_weights(None, "ab", counts) is None
    balanced = compute_class_weights("balanced", "ab", counts)
    assert balanced.tolist() == pytest.approx([100 / 180, 100 / 20])  # scikit-learn's
    by_hand = compute_class_weights({"b": 3.0}, "ab", counts)
    assert by_hand[1] / by_hand[0] == pytest.approx(3)
    assert (by_hand * counts).sum() == pytest.approx(100)
    both = compute_class_weights({"b": 3.0}, "ab", counts, sampled=True)
    assert both[1] / both[0] == pytest.approx(27)
    missing = compute_class_weights("balanced", "abc", np.array([90, 10, 0]))
    assert (missing[:2] * counts).tolist() == pytest.approx([50, 50])


def test_loss_is_weighted_by_class():
    head = Classification(3, 2)
    outputs, labels = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1])
    plain = head.loss(outputs, labels)
    head.class_weights = torch.tensor([0.5, 4.0], dtype=torch.float64)
    torch.testing.assert_close(head.loss(outputs, labels), plain * torch.tensor([0.5, 4.0]))
    assert "class_weights" not in head.state_dict()


def test_gradient_equals_that_of_repeated_texts(unbalanced):
    """With weights 1 and 9 the mean gradient is that of a set in which the rare texts occur nine times."""
    config = configure(overrides={**SMALL, "class_weight": "balanced", "sampling": "once"})
    factors = training_weights(unbalanced, config)
    assert (factors[1] / factors[0]).item() == pytest.approx(9)
    head = Classification(4, 2).double()
    features = torch.randn(100, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([example.label for example in unbalanced.train])
    head.class_weights = factors
    (weighted,) = torch.autograd.grad(head.loss(head(features), labels).mean(), head.linear.weight)
    head.class_weights = None
    often = torch.where(labels == 1, 9, 1)
    repeated = head.loss(head(features.repeat_interleave(often, 0)), labels.repeat_interleave(often))
    (expected,) = torch.autograd.grad(repeated.mean(), head.linear.weight)
    torch.testing.assert_close(weighted, expected)


@pytest.mark.parametrize("settings", [{}, {"sampling": "balanced", "class_weight": None}])
def test_dev_loss_counts_classes_equally(unbalanced, settings):
    """Early stopping then does not prefer the constant prediction of the largest class."""
    trained = train(unbalanced, configure(overrides={**SMALL, **settings, "patience": None}))
    truth = np.array([example.label for example in unbalanced.dev])
    losses = -np.log(predict(trained, unbalanced.dev).outputs[np.arange(len(truth)), truth])
    by_class = [losses[truth == k].mean() for k in (0, 1)]
    assert trained.history["epochs"][-1]["dev_loss"] == pytest.approx(np.mean(by_class), rel=1e-4)
    assert trained.model.head.class_weights is None  # only while it trains


def test_dev_weights_come_from_dev(unbalanced):
    config = configure(overrides={"class_weight": "balanced", "sampling": "once"})
    even = replace(unbalanced, dev=[*unbalanced.dev[:4], *unbalanced.dev[-4:]])
    assert dev_weights(even, config) is None
    assert dev_weights(replace(unbalanced, dev=()), config) is None
    for weight in (None, "balanced"):  # already in the sampling
        both = configure(overrides={"sampling": "balanced", "class_weight": weight})
        assert training_weights(unbalanced, both) is None
        assert (dev_weights(unbalanced, both) == dev_weights(unbalanced, config)).all()


def drawn(sampler, epoch):
    sampler.set_epoch(epoch)
    return [position for batch in sampler for position in batch]


@pytest.mark.parametrize("how", [{}, {"batch_tokens": 90}])
def test_balanced_sampling_draws_classes_equally_often(how):
    classes = np.array([0] * 85 + [1] * 10 + [2] * 6)
    lengths = np.random.default_rng(0).integers(1, 30, len(classes))
    sampler = BucketSampler(lengths, 8, classes=classes, seed=3, **how)
    first, second = drawn(sampler, 0), drawn(sampler, 1)
    for positions in (first, second):
        assert len(positions) == len(classes)
        counts = Counter(classes[positions].tolist())
        assert sorted(counts.values()) == [33, 34, 34]
        uses = Counter(positions)
        assert max(uses[k] for k in range(85)) == 1  # a frequent class: each text at most once
        for members in (range(85, 95), range(95, 101)):  # rare classes: each text equally often, up to one
            assert max(uses[k] for k in members) - min(uses[k] for k in members) <= 1
    assert set(first) != set(second)
    assert drawn(sampler, 0) == first
    sampler.set_epoch(0, start=3)
    assert [position for batch in sampler for position in batch] == first[-len([p for b in sampler for p in b]) :]
    with pytest.raises(ValueError, match="shuffle"):
        BucketSampler(lengths, 8, classes=classes, shuffle=False)


@pytest.mark.parametrize("settings", [{"sampling": "balanced"}, {"class_weight": "second=3"}])
def test_resumed_run_equals_uninterrupted_run(unbalanced, settings, tmp_path, monkeypatch):
    corpus = replace(unbalanced, classes=("first", "second"))
    config = configure("spectra", {**SMALL, **settings, "checkpoint_seconds": 0})
    trained = require_resumable(corpus, config, (3, 7), tmp_path, monkeypatch)
    assert TrainedModel.load(tmp_path / "3").config == trained.config
    assert not same(weights(trained), weights(train(corpus, configure("spectra", SMALL))))


def test_streamed_texts_are_sampled_as_in_memory(unbalanced, tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = ({"text": one.text, "label": unbalanced.classes[one.label]} for one in unbalanced.train)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = configure("spectra", {**SMALL, "epochs": 2, "sampling": "balanced", "class_weight": "balanced"})
    in_memory = train(read_corpus(path), config, threads=1)
    on_disk = train(stream_corpus(path, cache_dir=tmp_path / "cache"), config, threads=1)
    assert same(weights(in_memory), weights(on_disk))


def test_unknown_class_and_regression_raise(unbalanced):
    with pytest.raises(ValueError, match="'neutral'"):
        train(unbalanced, configure(overrides={**SMALL, "class_weight": {"neutral": 2}}))
    values = replace(
        unbalanced, task="regression", classes=(), train=[replace(one, label=0.5) for one in unbalanced.train], dev=()
    )
    with pytest.raises(ValueError, match="numbers, not classes"):
        train(values, configure(overrides={**SMALL, "class_weight": {"a": 2}}))
    train(values, configure(overrides={**SMALL, "epochs": 1, "sampling": "balanced"}))  # has no effect


def test_labels_of_other_types_are_found():
    texts = [f"text {k} is {'good' if k % 2 else 'bad'}" for k in range(40)]
    labels = [bool(k % 2) for k in range(40)]
    model = Rationalizer(**SMALL, class_weight={True: 3}).fit(texts, labels, progress=False)
    assert model.get_params()["class_weight"] == {True: 3}


def test_note_about_rare_classes(unbalanced, tmp_path):
    assert rare_classes_note(unbalanced) == ""
    names = ["a", *map(str, range(7))]
    few = replace(
        unbalanced,
        classes=tuple(names),
        train=[replace(one, label=k % 8) for k, one in enumerate(unbalanced.train[:70])],
    )
    note = rare_classes_note(few)
    assert "'5' (8 texts)" in note
    assert "2 other classes" in note or "3 other classes" in note
    texts = [f"word{k} word{k + 1}" for k in range(30)]
    with pytest.warns(UserWarning, match=r"'b' \(4 texts\)"):
        Rationalizer(**{**SMALL, "epochs": 1}).fit(texts, ["a"] * 26 + ["b"] * 4, progress=False)
    (tmp_path / "x.csv").write_text("text,label\n" + "".join(f"{t},{'ab'[k > 25]}\n" for k, t in enumerate(texts)))
    settings = ["--set", "epochs=1", "--set", "hidden=4", "--set", "embeddings=none"]
    done = call("train", tmp_path / "x.csv", "--out", tmp_path / "run", *settings)
    assert done.exit_code == 0
    assert "'b' (4 texts)" in done.stderr


def test_class_that_is_never_predicted_is_reported(unbalanced, tmp_path):
    """On dev at the end of the training, in Python and in the history; in evaluate as a finding."""
    config = {**SMALL, "learning_rate": 0.02, "class_weight": {"often": 1e6}}
    constant = replace(unbalanced, classes=("often", "rare"))
    with pytest.warns(UserWarning, match="never predicts 'rare'"):
        model = Rationalizer(**config).fit(constant, run_dir=tmp_path / "run", progress=False)
    (message,) = TrainedModel.load(tmp_path / "run").history["warnings"]
    assert "class_weight" in message
    found = {finding.kind: finding for finding in evaluate(model.trained, constant.dev).findings}
    assert found["unpredicted_classes"].message == message
    record = json.loads((tmp_path / "run/scores.json").read_text())
    assert "unpredicted_classes" in [each["kind"] for each in record["findings"]["dev"]]


def test_model_that_predicts_all_classes_is_not_reported():
    corpus = generated_reviews(train=240, dev=40, test=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Rationalizer(**{**SMALL, "learning_rate": 0.02}).fit(corpus, progress=False)
    assert model.trained.history["warnings"] == []
