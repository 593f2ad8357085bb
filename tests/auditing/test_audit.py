"""Audits find planted leaks, do not find what is not there, and say so everywhere."""

import json

import numpy as np
import pytest

import rationalizer
from rationalizer import Rationalizer
from rationalizer.auditing import CHECKS, Adapter, Audit, audit, audit_examples
from rationalizer.auditing.rationalizer_adapter import RationalizerAdapter
from rationalizer.discovery import UnknownNameError
from rationalizer.text.errors import DataError, InputError
from tests.auditing.planted_models import LEAKS, PunctuationCode, WordLists, clean_model, make_texts
from tests.export.untrained_models import save_model

PAIRS = [(f"A man number {k} plays a guitar.", "A man makes music.") for k in range(20)]


def audited(model, texts, labels=None, **options) -> Audit:
    return audit(model.adapter(), texts, labels, progress=False, **options)


@pytest.mark.parametrize(("kind", "check"), LEAKS.items(), ids=lambda value: getattr(value, "__name__", value))
def test_planted_leak_is_found(kind, check):
    rng = np.random.default_rng(5)
    found = audited(kind(rng), *make_texts(rng, 300))
    assert check in found.leaks
    assert not found.passed
    # The same kind of model without the leak is not accused of it.
    assert check not in audited(WordLists(rng), *make_texts(rng, 300), checks=[check]).leaks


@pytest.mark.parametrize("seed", range(4))
def test_clean_model_passes(seed):
    rng = np.random.default_rng(100 + seed)
    model = clean_model(rng)
    found = audited(model, *make_texts(rng, 300, model.classes))
    assert found.leaks == []
    assert found.results["budget"].verdict == "pass"
    assert found.results["removed-words"].verdict == "not applicable"


def test_codes_are_found_without_labels():
    rng = np.random.default_rng(6)
    texts, _ = make_texts(rng, 300)
    assert "punctuation" in audited(PunctuationCode(rng), texts, checks=["punctuation"]).leaks


def test_rationale_that_does_not_support_the_label():
    """Words are selected at random, the label comes from the whole text by a code: the selected words say nothing."""
    rng = np.random.default_rng(7)
    texts, labels = make_texts(rng, 300)
    honest = WordLists(rng)
    label_of = {" ".join(text): honest.label(text) for text in texts}
    select = lambda texts: [np.arange(len(text)) % 5 == len(text) % 5 for text in texts]  # noqa: E731
    predict = lambda texts, masks: np.eye(2)[[label_of.get(" ".join(text), 0) for text in texts]]  # noqa: E731
    found = audit(
        Adapter(select, predict, classes=[0, 1]), texts, labels, checks=["independent-reader"], progress=False
    )
    assert found.leaks == ["independent-reader"]
    assert audited(honest, texts, labels, checks=["independent-reader"]).passed


def test_random_selection_is_not_repeatable():
    rng = np.random.default_rng(8)
    texts, _ = make_texts(rng, 60)
    model = WordLists(rng)
    select = lambda texts: [rng.random(len(text)) < 0.3 for text in texts]  # noqa: E731
    found = audit(Adapter(select, model.predict_from), texts, checks=["repetition", "batches"], progress=False)
    assert found.leaks == ["repetition", "batches"]


def test_budget_is_measured():
    rng = np.random.default_rng(9)
    texts, _ = make_texts(rng, 40)
    model = WordLists(rng, share=0.4)
    greedy = Adapter(model.select, model.predict_from, budget="20%")
    found = audit(greedy, texts, checks=["budget"], progress=False)
    assert (found.leaks, found.results["budget"].value) == (["budget"], 40)


def test_few_texts_are_no_reason_for_an_alarm():
    """A reader that learned from few texts, or one label of few, is no evidence against a model."""
    rng = np.random.default_rng(18)
    texts, labels = make_texts(rng, 20)
    model = WordLists(rng)
    weak = Adapter(lambda texts: [np.arange(len(text)) % 5 == 0 for text in texts], model.predict_from, classes=[0, 1])
    found = audit(weak, texts, labels, checks=["independent-reader"], progress=False)
    assert found.results["independent-reader"].verdict == "not applicable"

    class DependsOnGaps(WordLists):
        flipped = 0

        def predict_from(self, texts, masks):
            outputs = super().predict_from(texts, masks)
            moved = [k for k, text in enumerate(texts) if list(text) != given[k]][: self.flipped]
            outputs[moved] = outputs[moved, ::-1]
            return outputs

    given, unstable = texts, DependsOnGaps(rng)
    for unstable.flipped, verdict in ((1, "pass"), (2, "leak")):
        assert audited(unstable, texts, checks=["moved-words"]).results["moved-words"].verdict == verdict


def test_length_of_the_hypothesis_is_no_code(tmp_path):
    """The number of links follows the length of the hypothesis, which every model reads."""
    rng = np.random.default_rng(19)

    class LinkPerWord(RationalizerAdapter):
        def select(self, texts):
            return [np.eye(*text.shape, dtype=np.float32) for text in texts]

        def predict_from(self, texts, weights):
            long = np.array([len(text.hypothesis.tokens) > 5 for text in texts], dtype=np.float32)
            return np.stack([1 - long, long, 0 * long], axis=1)

    model = LinkPerWord(Rationalizer.load("nli"))
    pairs = [(" ".join(["word"] * 10), " ".join(["word"] * int(rng.integers(2, 10)))) for _ in range(60)]
    examples = Rationalizer.load("nli").examples(pairs)
    assert audit_examples(model, examples, checks=["size"]).results["size"].verdict == "pass"


def test_neutral_words_need_a_reader():
    """In texts of one other word, inserting this word says nothing."""
    model = WordLists(np.random.default_rng(20))
    found = audited(model, [["rude"]] * 40, checks=["triggers"])
    assert found.results["triggers"].verdict == "not applicable"


def test_promise_about_gaps_is_tested():
    rng = np.random.default_rng(10)
    texts, _ = make_texts(rng, 60)
    honest = WordLists(rng).adapter(ignores_gaps=True)
    assert audit(honest, texts, checks=["removed-words"], progress=False).results["removed-words"].verdict == "pass"

    class Longer(WordLists):
        def scores(self, text, mask):
            return super().scores(text, mask) + np.array([len(text) / 10, 0])

    found = audit(Longer(rng).adapter(ignores_gaps=True), texts, checks=["removed-words"], progress=False)
    assert found.leaks == ["removed-words"]


def test_overlap_with_the_training_texts():
    rng = np.random.default_rng(11)
    texts, labels = make_texts(rng, 50)
    edited = [*texts[0][:-1], "entirely"]
    train = [[word.upper() for word in texts[3]], edited, *make_texts(rng, 50)[0]]
    found = audited(WordLists(rng), texts, labels, train=train, checks=["overlap"])
    assert found.leaks == ["overlap"]
    assert found.results["overlap"].details == {"exact": 1, "near": 1, "first_rows": [4, 1]}
    assert audited(WordLists(rng), texts, labels, train=train[2:], checks=["overlap"]).passed


def test_ceiling_of_the_budget():
    """Two of ten words are marked; a budget of 40% allows all of them, but using it completely halves precision."""
    texts = [[f"word{i}" for i in range(10)]] * 20
    marks = [[1, 1, *[0] * 8]] * 20
    model = WordLists(np.random.default_rng(0), share=0.4)
    facts = audited(model, texts, annotations=marks, checks=["budget"]).facts
    assert "1.000" in facts["ceiling"]
    assert "0.667" in facts["ceiling"]
    assert "20%" in facts["annotations"]


def test_results_are_reproducible_and_complete():
    rng = np.random.default_rng(12)
    model, (texts, labels) = WordLists(rng), make_texts(rng, 60)
    first, again = (audited(model, texts, labels, seed=3) for _ in range(2))
    assert first == again
    assert list(first.results) == list(dict.fromkeys(first.results))
    assert set(first.results) == set(CHECKS)
    stored = json.loads(json.dumps(first.to_json()))
    assert stored["checks"]["replaced-words"]["verdict"] == "pass"
    page = first.to_html()
    assert all(CHECKS[name].question.split("?")[0] in page for name in CHECKS)
    assert "No leak found" in str(first)
    assert "replaced-words" in first._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ({"checks": ["positons"]}, UnknownNameError, "positions"),
        ({"checks": "positions"}, TypeError, "list"),
        ({"checks": []}, ValueError, "checks"),
        ({"seed": -1}, ValueError, "seed"),
        ({"labels": ["x"] * 40}, DataError, "classes are 0, 1"),
        ({"labels": [0, 1]}, DataError, "40 texts"),
        ({"texts": [["one", "word"]] * 3, "labels": None}, DataError, "20 texts"),
    ],
)
def test_bad_arguments(arguments, error, word):
    rng = np.random.default_rng(13)
    texts, labels = make_texts(rng, 40)
    with pytest.raises(error, match=word):
        audit(WordLists(rng).adapter(), **{"texts": texts, "labels": labels, "progress": False, **arguments})


@pytest.mark.parametrize(
    ("select", "predict", "word"),
    [
        (lambda texts: [], None, "one per text"),
        (lambda texts: [[1]] * len(texts), None, "one number per word"),
        (None, lambda texts, masks: np.zeros(3), "shape"),
        (None, lambda texts, masks: np.full((len(texts), 2), np.nan), "finite"),
    ],
)
def test_functions_of_the_wrong_shape(select, predict, word):
    rng = np.random.default_rng(14)
    model, (texts, _) = WordLists(rng), make_texts(rng, 30)
    with pytest.raises(InputError, match=word):
        audit(Adapter(select or model.select, predict or model.predict_from), texts, progress=False)


def test_starters():
    """The prediction from the selected words is the one that users get; the models keep what they promise."""
    assert rationalizer.audit is audit
    model = Rationalizer.load("sentiment")
    rng = np.random.default_rng(15)
    texts = [" ".join(text) for text in make_texts(rng, 40)[0]]
    exact = ["replaced-words", "same-path", "budget", "batches", "repetition"]
    found = audit(model, texts, checks=exact, progress=False)
    assert [found.results[name].verdict for name in exact] == ["pass"] * len(exact)
    pairs = [(premise, " ".join(hypothesis)) for premise, hypothesis in zip(texts, make_texts(rng, 40)[0], strict=True)]
    exact = ["replaced-words", "removed-words", "moved-words", "same-path", "batches", "repetition"]
    found = audit(Rationalizer.load("nli"), pairs, checks=exact, progress=False)
    assert [found.results[name].verdict for name in exact] == ["pass"] * len(exact)


def test_context_of_aligned_words_is_a_leak(tmp_path):
    """With `premise_context=whole`, the state of an aligned word contains information about its neighbours."""
    model = Rationalizer.load(save_model(tmp_path, "at-most-one", premise_context="whole"), device="cpu")
    found = audit(model, PAIRS, checks=["replaced-words", "same-path"], progress=False)
    assert found.leaks == ["replaced-words"]


def test_constraints_are_checked():
    model = Rationalizer.load("sentiment")
    model.set_params(constraints=["spans=1", "never=stopwords"])
    rng = np.random.default_rng(16)
    texts = [" ".join(text) for text in make_texts(rng, 25)[0]]
    found = audit(model, texts, checks=["constraints"], progress=False)
    assert found.results["constraints"].verdict == "pass"
    adapter = RationalizerAdapter(model)
    examples = model.examples(texts)
    weights = adapter.select(examples)
    assert adapter.violations(examples, weights) == [False] * 25
    scattered = [np.where(np.arange(len(row)) % 3 == 0, 1, 0).astype(np.float32) for row in weights]
    assert all(adapter.violations(examples, scattered))


def test_constraints_of_pairs_are_checked():
    model = Rationalizer.load("nli")
    model.set_params(constraints=["monotone", "exactly-k=2", "never-align=stopwords"])
    assert audit(model, PAIRS, checks=["constraints"], progress=False).results["constraints"].verdict == "pass"

    def violates(constraint, links):
        model.set_params(constraints=[constraint])
        examples = model.examples(PAIRS[:1])
        weights = np.zeros(examples[0].shape, dtype=np.float32)
        weights[tuple(zip(*links, strict=True))] = 1
        return RationalizerAdapter(model).violations(examples, [weights]) == [True]

    for constraint, kept, broken in (
        ("monotone", [(0, 0), (1, 1)], [(0, 1), (1, 0)]),
        ("exactly-k=2", [(0, 1), (1, 0)], [(1, 1)]),
        ("must-align=words:guitar/music", [(6, 3)], [(6, 1)]),
        ("never-align=words:man/man", [(6, 3)], [(1, 1)]),
    ):
        assert not violates(constraint, kept), constraint
        assert violates(constraint, broken), constraint


def test_bounds_of_an_average_budget_are_checked(tmp_path):
    calibration = {"shares": [0.1, 0.6], "multipliers": [1.5, -1.5], "least": 0.1, "most": 0.6}
    folder = save_model(tmp_path, budget="30% on average, 10% to 60%", calibration=calibration)
    model = Rationalizer.load(folder, device="cpu")
    rng = np.random.default_rng(17)
    texts = [" ".join(text) for text in make_texts(rng, 25)[0]]
    assert audit(model, texts, checks=["budget"], progress=False).passed

    class Empty(RationalizerAdapter):
        def select(self, texts):
            return [np.zeros(text.shape, dtype=np.float32) for text in texts]

    found = audit(Empty(model), texts, checks=["budget"], progress=False)
    assert (found.leaks, found.results["budget"].value) == (["budget"], 25)
    assert "fewer words" in found.results["budget"].sentence


def test_the_budget_is_the_one_that_exactly_k_sets(tmp_path):
    model = Rationalizer.load(save_model(tmp_path, "budget", budget=1, constraints=["exactly-k=3"]), device="cpu")
    assert audit(model, PAIRS, checks=["budget", "constraints"], progress=False).count("pass") == 2


@pytest.mark.parametrize("rationales", ["per-label", "disjoint"])
def test_several_rationales_are_refused(tmp_path, rationales):
    model = Rationalizer.load(save_model(tmp_path, rationales=rationales), device="cpu")
    with pytest.raises(ValueError, match="one rationale"):
        audit(model, ["a text"] * 20, progress=False)
