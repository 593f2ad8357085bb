"""Which part of a model each objective trains, on what, and how fast; in float64."""

import pytest
import torch

from rationalizer.models import configure
from rationalizer.models.batches import collate
from rationalizer.nn import EXTRACTORS, OBJECTIVES, HighlightModel, TrainingStep, make_objective
from rationalizer.nn.encoders.vector_bilstm import VectorOptions
from rationalizer.nn.shared_parts import with_parts
from tests.nn.tiny_models import make_encoder, texts

GENERATOR, PREDICTOR = ("encoder.generator", "method"), ("encoder.predictor", "head")
LENGTHS = (14, 6, 9, 11)


def objective_for(model, name, method="spectra", **settings):
    config = configure(method, {"objective": name, "budget": "30%", **settings})
    objective = make_objective(config.objective, config).double()
    torch.manual_seed(5)
    objective.prepare(model, lambda: step_for(model).texts)
    return objective


def model_for(method="spectra", *, shared=False, seed=1, **settings):
    encoder = make_encoder(dropout=0.0)
    if shared:
        encoder.settings = VectorOptions(vector_size=10, hidden=7, shared=True)
        encoder.predictor = None
    torch.manual_seed(seed)
    model = HighlightModel(encoder, method=method, dropout=0.0, method_options=settings).double().train()
    with torch.no_grad():
        model.encoder.learned.weight.mul_(5)  # so that words differ
    return model


def step_for(model, **others):
    batch = collate(list(enumerate(texts(LENGTHS))), model.encoder)
    return TrainingStep(batch.texts, torch.tensor([0, 1, 1, 0]), **others)


def gradients(loss, model):
    """The gradient of every parameter, by name; None where there is none."""
    model.zero_grad()
    loss.backward()
    return {name: p.grad for name, p in model.named_parameters()}


def assert_same(found, expected, prefixes):
    names = [name for name in expected if name.startswith(prefixes)]
    assert names
    assert any(expected[name].abs().max() > 1e-6 for name in names if expected[name] is not None)
    for name in names:
        torch.testing.assert_close(found[name], expected[name], atol=1e-12, rtol=1e-9, msg=name)


def losses(model, step, objective):
    """The loss on selections, the same with constant selections, and the loss on whole texts."""
    output = model(*step.texts, budget=objective.budget)
    constant = model.predict_from(output.z.detach(), *step.texts)
    whole = model.full_text_outputs(*step.texts)
    means = [model.head.loss(outputs, step.labels).mean() for outputs in (output.outputs, constant, whole)]
    return output, whole, *means


@pytest.mark.parametrize(
    "method", [name for name, kind in EXTRACTORS.items() if kind.passes_gradient and kind.uses_generator]
)
@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_every_objective_trains_every_part(name, method):
    model = model_for(method)
    objective = objective_for(model, name, method)
    found = gradients(objective.loss(model, step_for(model, epoch=objective.warmup_epochs)).loss, model)
    for prefix in (*GENERATOR, *PREDICTOR):
        assert any(g is not None and g.abs().sum() > 0 for n, g in found.items() if n.startswith(prefix)), prefix


def test_full_text_adds_the_loss_on_whole_texts():
    model = model_for()
    objective = objective_for(model, "full-text", full_text_weight=0.5)
    step = step_for(model)
    found = gradients(objective.loss(model, step).loss, model)
    _, _, selection, _, whole = losses(model, step, objective)
    assert_same(found, gradients(selection + 0.5 * whole, model), ("encoder", "method", "head"))


def test_joint_is_full_text_without_weight():
    model = model_for()
    step = step_for(model)
    joint = gradients(objective_for(model, "joint").loss(model, step).loss, model)
    plain = gradients(objective_for(model, "full-text", full_text_weight=0).loss(model, step).loss, model)
    assert_same(joint, plain, ("encoder", "method", "head"))


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_mcd(scale):
    """The labels' loss gives the generator no gradient; KL(whole ‖ selection) gives the predictor none."""
    model = model_for()
    objective = objective_for(model, "mcd", full_text_weight=0.5)
    step = step_for(model, gradient_scale=scale)
    found = gradients(scale * objective.loss(model, step).loss, model)
    output, whole, *_ = losses(model, step, objective)
    p, q = whole.detach().softmax(-1), output.outputs.softmax(-1)
    divergence = (p * (p / q).log()).sum(-1).mean()
    assert_same(found, gradients(scale * divergence, model), GENERATOR)
    _, _, _, constant, whole = losses(model, step, objective)
    assert_same(found, gradients(scale * (constant + 0.5 * whole), model), PREDICTOR)


def test_mrd():
    """The generator maximises KL(whole ‖ complement) alone; the predictor learns from labels."""
    model = model_for()
    objective = objective_for(model, "mrd", full_text_weight=0.5, complement_weight=2.0)
    step = step_for(model)
    found = gradients(objective.loss(model, step).loss, model)
    (words,) = step.texts

    def remaining(z):
        return model.predict_from(words.mask.double() - z, words)

    output, whole, *_ = losses(model, step, objective)
    p, q = whole.detach().softmax(-1), remaining(output.z).softmax(-1)
    assert_same(found, gradients(-(p * (p / q).log()).sum(-1).mean(), model), GENERATOR)
    output, _, _, constant, whole = losses(model, step, objective)
    complement = model.head.loss(remaining(output.z.detach()), step.labels).mean()
    assert_same(found, gradients(constant + 0.5 * whole + 2 * complement, model), PREDICTOR)


def test_mrd_hides_the_selection_from_the_complement():
    """Words that are selected completely do not change a bit of the prediction from the others."""
    model = model_for().eval()
    batch = [collate(list(enumerate(texts(LENGTHS, seed=seed))), model.encoder).texts[0] for seed in (0, 1)]
    z = torch.zeros(batch[0].mask.shape, dtype=torch.float64)
    z[:, :3] = 1
    pairs = zip(*map(_fields, batch), strict=True)
    changed = type(batch[0])(*(torch.where(z.bool().view(*z.shape, *[1] * (b.dim() - 2)), b, a) for a, b in pairs))
    rest = [model.predict_from(words.mask.double() - z, words) for words in (batch[0], changed)]
    assert torch.equal(*rest)


def _fields(words):
    return [words.mask, words.counted, words.punctuation, words.parts, words.seen]


def test_fr_shares_the_encoder():
    config = configure(overrides={"objective": "fr"})
    assert config.encoder_options["shared"] is True
    options = VectorOptions(vector_size=10, hidden=7, shared=True)
    encoder = type(make_encoder())(make_encoder().vocabulary, None, options, dropout=0.0)
    assert encoder.predictor is None
    model = HighlightModel(encoder, dropout=0.0).double().train()
    step = step_for(model)
    objective = objective_for(model, "fr")
    shared = [name for name, _ in model.named_parameters() if name.startswith("encoder.generator")]
    # The one network gets the gradients of both sides.
    output, *_ = losses(model, step, objective)
    found = gradients(objective.loss(model, step).loss, model)
    detached = model.head.loss(model.predict_from(output.z.detach(), *step.texts), step.labels).mean()
    predictor = gradients(detached, model)
    assert all((found[name] - predictor[name]).abs().max() > 1e-9 for name in shared)
    assert all(predictor[name].abs().max() > 0 for name in shared)


def test_dr_has_the_joint_loss():
    model = model_for()
    step = step_for(model)
    joint = gradients(objective_for(model, "joint").loss(model, step).loss, model)
    slow = objective_for(model, "dr")
    assert_same(gradients(slow.loss(model, step).loss, model), joint, ("encoder", "method", "head"))
    for selected, factor in ((0.2, 0.2), (0.01, 0.05)):
        assert slow.rate_factor("predictor", 1, selected) == factor
        assert slow.rate_factor("generator", 1, selected) == slow.rate_factor("both", 1, selected) == 1


def test_dar():
    """The frozen classifier is the predictor after the epochs on whole texts; only the generator learns from it."""
    model = model_for()
    objective = objective_for(model, "dar", full_text_epochs=1, classifier_weight=2.0)
    assert not any(p.requires_grad for p in objective.parameters())
    step = step_for(model, epoch=1)
    optimizer = torch.optim.SGD(model.parameters(), 0.02)
    warmup = objective.loss(model, step_for(model, epoch=0))
    assert warmup.output is None
    warmup.loss.backward()
    optimizer.step()
    objective.start_epoch(model, 1)
    frozen = {name: value.clone() for name, value in objective.state_dict().items()}
    for name, value in frozen.items():
        assert torch.equal(value, model.state_dict()[name.removeprefix("classifier.")])
    for epoch in (1, 2):  # the predictor goes on
        optimizer.zero_grad()
        objective.loss(model, step).loss.backward()
        optimizer.step()
        objective.start_epoch(model, epoch + 1)
    assert all(torch.equal(value, objective.state_dict()[name]) for name, value in frozen.items())
    assert not torch.equal(model.head.linear.weight, frozen["classifier.head.linear.weight"])
    found = gradients(objective.loss(model, step).loss, model)
    output, _, selection, *_ = losses(model, step, objective)
    classifier = with_parts(model, objective.classifier)
    second = classifier.head.loss(classifier.predict_from(output.z, *step.texts), step.labels).mean()
    assert_same(found, gradients(selection + 2 * second, model), GENERATOR)
    _, _, _, constant, _ = losses(model, step, objective)
    assert_same(found, gradients(constant, model), PREDICTOR)


@pytest.mark.parametrize("settings", [{}, {"start_spread": 1.0}])
def test_mgr(settings):
    """Each generator has the gradient of its own loss, the predictor the sum of them."""
    model = model_for(**settings)
    objective = objective_for(model, "mgr", **settings)
    step = step_for(model)
    assert len(objective.generators) == 2
    found = gradients(objective.loss(model, step).loss, model)
    further = [{name: p.grad.clone() for name, p in each.named_parameters()} for each in objective.generators]
    models = [model, *(with_parts(model, each) for each in objective.generators)]
    predictor = []
    for number, each in enumerate(models):
        own = gradients(losses(each, step, objective)[2], each)
        assert_same(further[number - 1] if number else found, own, GENERATOR)
        assert each(*step.texts, budget=objective.budget).z.sum() > 0
        predictor.append({name: g.clone() for name, g in own.items() if name.startswith(PREDICTOR)})
    total = {name: sum(each[name] for each in predictor) for name in predictor[0]}
    assert_same(found, total, PREDICTOR)
    assert not torch.equal(further[0]["method.scorer.weight"], further[1]["method.scorer.weight"])


def test_parts_are_shared_or_not():
    model = model_for()
    objective = objective_for(model, "mgr")
    other = with_parts(model, objective.generators[0])
    assert other.head is model.head
    assert other.encoder.predictor is model.encoder.predictor
    assert other.encoder.learned is model.encoder.learned
    assert other.encoder.generator is not model.encoder.generator
    assert model.encoder.generator is not objective.generators[0].encoder.generator
    drawn = [each.encoder.generator.state_dict() for each in (model, other)]
    assert any(not torch.equal(drawn[0][name], drawn[1][name]) for name in drawn[0])
    for name in drawn[0]:  # the same values in another order
        assert torch.equal(*(each[name].flatten().sort().values for each in drawn))
