"""One rationale for each label: its prediction reads only its own words; exact, batched, disjoint if asked for."""

import itertools
from types import SimpleNamespace

import pytest
import torch

from rationalizer import ops
from rationalizer.constraints import parse_constraints
from rationalizer.models.batch_constraints import BatchConstraints
from rationalizer.models.config import Config, configure
from rationalizer.nn import OBJECTIVES, HighlightModel, TrainingStep, make_objective
from rationalizer.nn.extractors.disjoint import select_disjoint
from rationalizer.text import Budget
from tests.nn.test_highlight_model import replaced
from tests.nn.tiny_models import highlight_model, make_encoder, texts
from tests.nn.tiny_transformers import make_encoder as make_transformer

BUDGET = Budget.share(0.3)
LABELS = 3
KINDS = {
    "labels": {"labels": LABELS},
    "classes": {"classes": LABELS},
    "targets": {"targets": [(2, None), (0, {"sigmoid": True}), (3, None)]},
}


def of_label(model, outputs, k):
    """The outputs of one label or target."""
    widths = getattr(model.head, "widths", [1] * LABELS)
    return outputs.split(widths, dim=-1)[k]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("encoder", ["closed", "kept", "bert"])
def test_a_label_reads_only_its_own_rationale(encoder, kind, bert):
    made = make_transformer(bert) if encoder == "bert" else make_encoder(gaps=encoder)
    model = HighlightModel(made, rationales="per-label", **KINDS[kind]).eval()
    examples = texts()
    output = model(made.collate(examples), budget=BUDGET)
    assert output.z.shape == (4, LABELS, 14)
    for k in range(LABELS):
        own = (output.z[:, k] != 0).tolist()
        assert not torch.equal(output.z[:, k], output.z[:, k - 1])
        for seed in (1, 2):  # of "bert", other words also have other numbers of subwords
            others = made.collate(replaced(examples, own, texts(seed=seed, with_punctuation=False)))
            after = model.predict_from(output.z, others)
            assert torch.equal(of_label(model, after, k), of_label(model, output.outputs, k))
        others = made.collate(replaced(examples, (output.z[:, k] == 0).tolist(), texts(seed=3, with_punctuation=False)))
        after = model.predict_from(output.z, others)
        assert not torch.equal(of_label(model, after, k), of_label(model, output.outputs, k))


@pytest.mark.parametrize("gaps", ["closed", "kept"])
def test_training_and_evaluation_compute_the_same(gaps):
    """In training all selections of a batch are encoded together, and those with closed gaps by their words alone."""
    model = highlight_model(gaps=gaps, labels=LABELS, rationales="per-label").double()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    words = model.encoder.collate(texts())
    z = torch.rand(4, LABELS, 14, dtype=torch.float64) * words.mask[:, None] * (torch.rand(4, LABELS, 14) < 0.4)
    torch.testing.assert_close(model.train().predict_from(z, words), model.eval().predict_from(z, words))


def test_each_label_has_its_exact_selection():
    model = highlight_model(labels=LABELS, rationales="per-label").double().eval()
    examples = texts()
    words = model.encoder.collate(examples)
    config = Config(constraints=parse_constraints(["spans=1"]), budget=BUDGET)
    constraints = BatchConstraints(config, model.encoder, 4)(list(enumerate(examples)), [words.counted])
    scores = model.method.scorer(model.encoder.states(words))
    for built in (None, constraints):
        z = model(words, budget=BUDGET, constraints=built).selection.z.view(4, LABELS, -1)
        for k in range(LABELS):
            own = {} if built is None else built.arguments()
            allowed = BUDGET.word_limit(words.counted)
            exact = ops.spans_map(
                scores[..., k], allowed, transition=model.method.transition, mask=words.counted, **own
            )
            assert torch.equal(z[:, k], exact)


def test_scores_differ_from_the_first_step():
    """With hardly different scores nearly all words would be selected a little, and for every label read."""
    torch.manual_seed(0)
    model = highlight_model(labels=LABELS, rationales="per-label", gaps="closed")
    words = model.encoder.collate(texts((40, 30, 50, 45), with_punctuation=False))
    assert model.method.initializes_from_texts
    before = model(words, budget=BUDGET).z.detach()
    model.initialize(words)
    after = model(words, budget=BUDGET).z.detach()
    assert (after != 0).sum() < 0.7 * (before != 0).sum()
    torch.testing.assert_close(after.sum((1, 2)), before.sum((1, 2)))  # the same budget
    assert not highlight_model(labels=LABELS).method.initializes_from_texts  # one rationale


def test_batch_equals_rows_and_every_parameter_learns():
    model = highlight_model(labels=LABELS, rationales="per-label", gaps="closed").eval()
    examples = texts()
    together = model(model.encoder.collate(examples), budget=BUDGET)
    for row, example in enumerate(examples):
        alone = model(model.encoder.collate([example]), budget=BUDGET)
        torch.testing.assert_close(alone.outputs[0], together.outputs[row], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(alone.z[0], together.z[row, :, : len(example.tokens)])
    output = model.train()(model.encoder.collate(examples), budget=BUDGET)
    truth = torch.tensor([[1.0, 0, torch.nan], [0, 1, 1], [0, 0, 0], [1, 1, 0]])
    loss = model.method_loss(output, model.head.loss(output.outputs, truth)).loss
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters() if p.requires_grad)
    assert model.size(output).shape == (4,)


def test_missing_labels_have_no_effect():
    model = highlight_model(**KINDS["targets"]).eval()
    outputs = model(model.encoder.collate(texts()), budget=BUDGET).outputs.detach().requires_grad_()
    nan = torch.nan
    truth = torch.tensor([[1.0, 0.3, nan], [nan, 0.5, 2.0], [nan, nan, 1.0], [0.0, nan, nan]])
    model.head.loss(outputs, truth).sum().backward()
    given = ~truth.isnan()
    for k, part in enumerate(outputs.grad.split(model.head.widths, dim=-1)):
        assert torch.equal((part != 0).any(-1), given[:, k])


@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_every_objective_learns_labels(objective):
    config = configure(overrides={"objective": objective, "rationales": "per-label", "annotation_weight": 1.0})
    torch.manual_seed(0)
    shared = config.encoder_options["shared"]
    model = highlight_model(labels=LABELS, rationales="per-label", gaps="closed")
    if shared:
        model.encoder.predictor = None
    words = model.encoder.collate(texts((14, 6, 9, 12)))
    made = make_objective(objective, config)
    made.prepare(model, lambda: (words,))
    truth = torch.tensor([[1.0, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 0]])
    annotation = torch.rand(4, LABELS, 14) < 0.3
    step = TrainingStep((words,), truth, annotation=annotation, epoch=made.warmup_epochs)
    made.loss(model, step).loss.backward()
    assert model.method.scorer.weight.grad.abs().sum(1).gt(0).all()


def brute_force(scores, mask, budget, transition):
    """The best total of disjoint selections, by trying all."""
    labels, n = scores.shape
    best = 0.0
    for owners in itertools.product(range(-1, labels), repeat=n):
        value, counts = 0.0, [0] * labels
        for i, k in enumerate(owners):
            if k >= 0:
                value += scores[k, i].item() if mask[i] else -1e9
                counts[k] += 1
                value += transition if i and owners[i - 1] == k else 0.0
        if all(count <= int(limit) for count, limit in zip(counts, budget, strict=True)):
            best = max(best, value)
    return best


@pytest.mark.parametrize("transition", [0.0, 0.3])
def test_disjoint_selections(transition):
    torch.manual_seed(1)
    batch, labels, n = 12, 2, 7
    scores = torch.randn(batch, 1, n) + 0.7 * torch.randn(batch, labels, n) + 1  # labels want the same words
    mask = torch.arange(n) < torch.randint(3, n + 1, (batch, 1))
    budget = torch.minimum(torch.randint(1, 4, (batch, labels)), mask.sum(1, keepdim=True))
    z = select_disjoint(scores, mask, budget, SimpleNamespace(transition=transition))
    assert (z.sum(1) <= 1).all()
    assert (z.sum(2) <= budget).all()
    assert not (z * ~mask[:, None]).any()
    value = (scores * z).sum((1, 2)) + transition * (z[..., 1:] * z[..., :-1]).sum((1, 2))
    best = torch.tensor([brute_force(*row, transition) for row in zip(scores, mask, budget, strict=True)])
    if transition == 0:
        torch.testing.assert_close(value, best, atol=1e-4, rtol=1e-5)
    else:  # not exact, but no label can improve alone, and the loss is small
        assert (value <= best + 1e-4).all()
        assert value.sum() > 0.97 * best.sum()
        for k in range(labels):
            free = torch.where((z.sum(1) - z[:, k]) > 0, -1e6, scores[:, k].double())
            alone = ops.sequence_budget_map(free, budget[:, k], transition=transition, mask=mask)
            gain = (free * alone).sum(1) + transition * (alone[:, 1:] * alone[:, :-1]).sum(1)
            own = (free * z[:, k]).sum(1) + transition * (z[:, k, 1:] * z[:, k, :-1]).sum(1)
            assert (gain <= own + 1e-4).all()


def test_disjoint_rationales_share_no_word():
    model = highlight_model(labels=LABELS, rationales="disjoint", gaps="closed").eval()
    words = model.encoder.collate(texts(with_punctuation=False))
    output = model(words, budget=Budget.share(0.5))
    assert ((output.z != 0).sum(1) <= 1).all()
    assert (output.z.sum(2) <= output.budget.view(4, LABELS)).all()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"budget": "18% on average"}, "fixed budget"),
        ({"method": "gumbel"}, "spectra"),
        ({"method": "budget"}, "pairs"),
        ({"rationales": "disjoint", "constraints": ["spans=1"]}, "constraints"),
    ],
)
def test_combinations_that_are_refused(settings, named):
    method = settings.pop("method", None)
    with pytest.raises(ValueError, match=named):
        configure(method, {"rationales": "per-label", **settings})
