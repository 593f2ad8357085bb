"""Constraints in models: learned under, kept to, saved, changed in use."""

import pickle
import warnings

import numpy as np
import pandas
import pytest
import torch

from rationalizer import Rationalizer, ops
from rationalizer.constraints import ConstraintConflict, LayerConstraints, Must, Never, Spans, WholeSentences
from rationalizer.inference import evaluate
from rationalizer.nn import EXTRACTORS
from rationalizer.nn.extractors import base
from rationalizer.nn.extractors import structured_selection as structured
from rationalizer.text import Budget
from tests.nn.tiny_models import highlight_model, texts

SMALL = {"hidden": 8, "vector_size": 8, "epochs": 3, "batch_size": 16, "embeddings": None, "learning_rate": 0.02}
TEXTS = ["The film was warm. I was moved.", "It was dull. The end was far too long!", "A warm, short film. I laughed."]
TEXTS = [*TEXTS, "A dull, long evening. The film bored me."] * 8
NAMES = ["good", "bad", "good", "bad"] * 8
WORDS = "The film was warm, the end was far too long. I laughed."


@pytest.fixture(scope="module")
def model():
    made = Rationalizer(budget="40%", constraints=[Spans(1), Never(stopwords=True)], **SMALL).fit(TEXTS, NAMES)
    made.trained.model.method.scorer.bias.data += 100  # budgets bind
    return made


def selected(explanation):
    return [t for t, chosen in zip(explanation.tokens, explanation.selected, strict=True) if chosen]


def test_trained_model_satisfies_its_constraints(model):
    for text in {*TEXTS, WORDS}:
        found = model.explain(text)
        assert len(found.spans) == 1
        assert not {"The", "the", "was", "It", "I", "A"} & set(selected(found))


def test_constraints_can_be_changed_after_training(model, tmp_path):
    model.save(tmp_path)
    again = Rationalizer.load(tmp_path)
    assert again.constraints == model.constraints == (Spans(1), Never(stopwords=True))
    assert again.explain(WORDS).spans == model.explain(WORDS).spans
    assert len(again.explain(WORDS, constraints=[]).spans) > 1
    assert selected(again.explain(WORDS, constraints=[WholeSentences()])) == ["I", "laughed", "."]
    assert again.constraints == (Spans(1), Never(stopwords=True)), "explain changed the model"
    again.constraints = ["whole-sentences"]
    assert selected(again.explain(WORDS)) == ["I", "laughed", "."]
    again.save(tmp_path)
    assert Rationalizer.load(tmp_path).constraints == (WholeSentences(),)
    assert "whole-sentences" in repr(again)


def test_masks_passed_with_the_texts(model):
    first, second = model.explain([WORDS, TEXTS[0]], constraints=[Must(characters=[[(4, 8)], None]), Spans(1)])
    assert "film" in selected(first)
    assert len(first.spans) == len(second.spans) == 1
    assert "warm" in selected(model.explain(WORDS, constraints=[Must(mask=[0, 0, 0, 1] + [0] * 11)]))
    with pytest.raises(ValueError, match="cannot be used in training"):
        model.constraints = [Must(characters=[(4, 8)])]


def test_prediction_depends_on_the_constrained_selection(model):
    given = [[Must(words=["warm"]), Spans(1)], [Must(words=["long"]), Spans(1)]]
    outputs = [model.predict_proba([WORDS], constraints=asked) for asked in given]
    assert not np.allclose(*outputs)
    explained = model.explain(WORDS, constraints=given[0])
    assert list(explained.probabilities.values()) == pytest.approx(outputs[0][0].tolist(), abs=1e-6)
    assert model.predict([WORDS], constraints=given[0])[0] == explained.label


def test_conflict_at_inference_names_the_text(model):
    with pytest.raises(ConstraintConflict, match=r"text 2 \('It was dull.*must=words:dull, never=words:dull"):
        model.predict([WORDS, TEXTS[1]], constraints=[Must(words=["dull"]), Never(words=["dull"])])
    many = ["dull", *map(str, range(500))]
    with pytest.raises(ConstraintConflict, match=r"must=words:dull,0,.*\.\.\.,") as raised:
        model.predict([WORDS, TEXTS[1]], constraints=[Must(words=many), Never(words=many)])
    assert len(str(raised.value)) < 500


def test_conflict_names_the_row_for_every_input_type(model):
    asked = {"constraints": [Must(words=["dull"]), Never(words=["dull"])]}
    with pytest.raises(ConstraintConflict, match=r"^text 4 \('It was dull"):
        list(model.explain(iter([WORDS] * 3 + [TEXTS[1]]), batch_size=2, **asked))
    table = pandas.DataFrame({"text": [WORDS, "", TEXTS[1]]})
    with pytest.raises(ConstraintConflict, match=r"^row 3 \('It was dull"):
        model.explain(table, **asked)
    error = pickle.loads(pickle.dumps(ConstraintConflict("(...) under spans=1: no", "do this", unit="text", index=3)))
    assert str(error.shifted(2)) == "text 6 (...) under spans=1: no; do this"
    assert (error.problem, error.remedy, error.place) == ("(...) under spans=1: no", "do this", "text 4")


def test_conflict_raises_before_training(tmp_path):
    asked = Rationalizer(budget=1, constraints=[Must(words=["warm", "film"])], **SMALL)
    with pytest.raises(
        ConstraintConflict, match=r"train: text \d+ .*2 words must be selected, but the budget allows 1"
    ):
        asked.fit(TEXTS, NAMES, run_dir=tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()
    nothing = Rationalizer(budget=1, constraints=[WholeSentences()], **SMALL)
    with pytest.raises(ConstraintConflict, match="any text under whole-sentences"):
        nothing.fit(TEXTS, NAMES)


def test_empty_rationales_are_counted(model):
    with pytest.warns(UserWarning, match=r"1 of 2 texts \(first: text 2, 'The film was warm"):
        model.predict([WORDS, "The film was warm and far too long"], constraints=["whole-sentences"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict([WORDS], constraints=["whole-sentences"])


def test_evaluation_under_other_constraints(model):
    examples = model.examples(TEXTS[:4])
    examples = [type(e)(e.text, e.tokens, e.offsets, label) for e, label in zip(examples, (1, 0, 1, 0), strict=True)]
    free, bound = (evaluate(model.trained, examples, constraints=asked).as_dict() for asked in ([], ["spans=1"]))
    assert bound["spans"] <= 1 < free["spans"]


METHODS = [name for name in EXTRACTORS if EXTRACTORS[name].supports_constraints({"decoding": "top-k"})]


@pytest.mark.parametrize("method", METHODS)
def test_all_supporting_methods_satisfy_constraints(method):
    options = {"decoding": "top-k"} if method == "hardkuma" else {}
    model = highlight_model(method, punctuation="count", method_options=options)
    words = model.encoder.collate(texts())
    unit = torch.arange(words.mask.shape[1]).expand_as(words.mask) // 2
    limits = LayerConstraints(spans=2, unit=unit.contiguous())
    z = model.eval()(words, budget=Budget.parse(0.5), constraints=limits).z.bool()
    changes = torch.nn.functional.pad(z, (1, 1)).int().diff(dim=-1)
    assert ((changes == 1).sum(-1) <= 2).all()
    even = z[:, : z.shape[1] // 2 * 2].reshape(len(z), -1, 2)
    pairs = words.mask[:, : z.shape[1] // 2 * 2].reshape(len(z), -1, 2).all(-1)
    assert (even[..., 0] == even[..., 1])[pairs].all()
    assert z.any()


@pytest.mark.parametrize(("decoding", "select"), [("top-k", ops.top_k), ("contiguous", ops.contiguous)])
def test_inactive_constraints_do_not_change_decoding(decoding, select):
    model = highlight_model("sfe", method_options={"decoding": decoding}, punctuation="count").eval()
    words = model.encoder.collate(texts((14, 6, 9)))
    output = model(words, budget=Budget.parse(0.4), constraints=LayerConstraints(spans=99))
    allowed = Budget.parse(0.4).word_limit(words.mask)
    assert torch.equal(output.z, select(output.scores, allowed, mask=words.mask).to(output.z.dtype))


def test_spectra_learns_under_constraints():
    model = highlight_model("spectra", punctuation="count", dropout=0.0).train()
    words = model.encoder.collate(texts((14, 6, 9)))
    never = torch.zeros(words.mask.shape, dtype=torch.int8)
    never[:, ::2] = -1
    output = model(words, budget=Budget.parse(0.5), constraints=LayerConstraints(longest=1, fixed=never))
    assert (output.z[:, ::2] == 0).all()
    assert ((output.z > 0) & (output.z < 1)).any()
    model.method_loss(output, model.head.loss(output.outputs, torch.tensor([0, 1, 0]))).loss.backward()
    assert model.method.scorer.weight.grad.abs().sum() > 0


def test_gradient_raises_empty_selections_if_feasible():
    model = highlight_model("spectra", punctuation="count", dropout=0.0).train()
    model.method.scorer.bias.data -= 100
    words = model.encoder.collate(texts((8, 8)))
    never = torch.zeros(words.mask.shape, dtype=torch.int8)
    never[1] = -1
    output = model(words, budget=Budget.parse(0.5), constraints=LayerConstraints(fixed=never))
    assert (output.z == 0).all()
    scores = output.scores
    loss = model.method_loss(output, torch.zeros(2, requires_grad=True)).loss
    (pull,) = torch.autograd.grad(loss, scores)
    assert (pull[0] < 0).any()
    assert (pull[0] <= 0).all()
    assert (pull[1] == 0).all()


def test_nearest_selection_is_solved_only_for_empty_rows(monkeypatch):
    extractor = EXTRACTORS["spectra"](4)
    mask, budget, limits = torch.ones(2, 6, dtype=torch.bool), torch.tensor([2, 2]), LayerConstraints(spans=1)
    solved = []
    monkeypatch.setattr(
        structured, "largest_selection", lambda *given: solved.append(1) or base.largest_selection(*given)
    )
    for bias, calls in ((5.0, 0), (-5.0, 1)):
        extractor.scorer.bias.data.fill_(bias)
        found = extractor(torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0)), mask, budget, limits)
        loss = extractor.loss(found, torch.tensor([1.0, 3.0]), mask, budget).loss
        assert len(solved) == calls
        assert (loss == 2.0) == (calls == 0)  # the mean of the losses, and what pulls empty selections up
