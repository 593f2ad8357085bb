"""Transformers as encoders: word states, windows, and the predictor's view of a selection."""

import json
from dataclasses import replace
from itertools import product

import pytest
import torch
from tokenizers import processors
from torch import nn

from rationalizer.data import make_examples
from rationalizer.nn import ALIGNERS, EXTRACTORS, TransformerEncoder
from rationalizer.nn.encoders.pretrained import encode
from rationalizer.nn.encoders.transformer import TransformerOptions
from rationalizer.text import Budget, DataError, Example, split_words
from tests.nn import tiny_transformers
from tests.nn.tiny_models import text, texts
from tests.nn.tiny_transformers import KINDS, highlight_model, make_encoder, pair_model, write_encoder

BUDGET = Budget.share(0.3)


def close(one, other, tolerance=1e-5):
    torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


def other_words(words, z, seed=0):
    """Replace unselected words by words with other subwords and another number of them."""
    generator = torch.Generator().manual_seed(seed)
    hidden = words.mask & (z == 0)
    tokens, sizes = words.tokens.clone(), words.sizes.clone()
    tokens[hidden] = torch.randint(5, 40, tokens[hidden].shape, generator=generator)
    sizes[hidden] = torch.randint(1, words.tokens.shape[-1] + 1, sizes[hidden].shape, generator=generator)
    return replace(words, tokens=tokens, sizes=sizes)


def some_selection(words, share=0.3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(words.mask.shape, generator=generator)
    return torch.where(words.mask & (drawn < share), drawn / share, 0.0)


@torch.no_grad()
def test_word_state_is_the_mean_of_its_subwords(bert):
    made = make_encoder(bert)
    words = made.collate([text(4, with_punctuation=False)])
    ids = [
        *made.subwords.prefix,
        *(i for word in made.subwords.tokenize(text(4, with_punctuation=False)) for i in word),
    ]
    ids = torch.tensor([[*ids, *made.subwords.suffix]])
    plain = encode(made.generator, made.generator.get_input_embeddings()(ids), torch.ones_like(ids))
    sizes = words.sizes[0].tolist()
    parts = plain[0, 1:-1].split(sizes)
    close(made.states(words)[0], torch.stack([part.mean(0) for part in parts]))
    close(made.encode_selection(words, words.mask.float()).global_state[0], plain[0, 0])


@torch.no_grad()
@pytest.mark.parametrize("punctuation", ["free", "count"])
@pytest.mark.parametrize("kind", KINDS)
def test_blank_tokens_are_not_counted(tmp_path, kind, punctuation):
    tokens = ["", "w1", "\xa0", ",", ""]
    (example,) = make_examples([tokens], pairs=False)
    made = make_encoder(write_encoder(tmp_path, kind), punctuation=punctuation)
    words = made.collate([example])
    assert words.counted.tolist() == [[False, True, False, punctuation == "count", False]]
    assert made.states(words).isfinite().all()


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_many_kinds_of_encoders(kind, tmp_path):
    model = highlight_model(write_encoder(tmp_path, kind)).eval()
    words = model.encoder.collate(texts())
    output = model(words, budget=BUDGET)
    assert (output.selection.z.sum(1) <= BUDGET.word_limit(words.counted)).all()
    together = model.encoder.states(words)
    for row, example in enumerate(texts()):
        alone = model.encoder.states(model.encoder.collate([example]))[0]
        close(together[row, : len(alone)], alone)
        assert not together[row, len(alone) :].any()
    z = some_selection(words)
    assert torch.equal(model.predict_from(z, words), model.predict_from(z, other_words(words, z)))
    assert not torch.equal(model.predict_from(z, words), model.predict_from(words.mask.float(), words))


@torch.no_grad()
@pytest.mark.parametrize(
    ("gaps", "unselected"),
    [*product(("kept", "marked"), ("out", "mask", "zero")), ("closed", "out"), ("closed", "zero")],
)
@pytest.mark.parametrize("lengths", [(14, 6, 1, 9), (90, 3)])
def test_replacing_unselected_words_changes_no_bit(bert, gaps, unselected, lengths):
    model = highlight_model(bert, gaps=gaps, unselected=unselected).eval()
    words = model.encoder.collate(texts(lengths))
    for seed in range(3):
        z = some_selection(words, seed=seed)
        assert torch.equal(model.predict_from(z, words), model.predict_from(z, other_words(words, z, seed)))


@torch.no_grad()
def test_gaps(bert):
    """Kept gaps: positions count all words. Closed gaps: the selection is encoded as a text of its own."""
    long, short = text(9, with_punctuation=False), text(9, with_punctuation=False)
    chosen = [2, 7]
    excerpt = Example(*(lambda s: (s, *split_words(s, "spaces")))(" ".join(short.tokens[k] for k in chosen)))
    for gaps, tells in (("kept", True), ("marked", True), ("closed", False)):
        made = make_encoder(bert, gaps=gaps)
        words, alone = made.collate([long]), made.collate([excerpt])
        z = torch.zeros(words.mask.shape)
        z[0, chosen] = 1.0
        inside, outside = made.encode_selection(words, z), made.encode_selection(alone, torch.ones(alone.mask.shape))
        same = torch.allclose(inside.states[0, chosen], outside.states[0], atol=1e-6)
        assert same is not tells
    marked = make_encoder(bert, gaps="marked")
    words = marked.collate([text(9, with_punctuation=False)])
    moved = torch.zeros(words.mask.shape)
    moved[0, [4, 8]] = 1.0
    first = marked.encode_selection(words, moved).states[0, 8]
    swapped = replace(words, tokens=words.tokens.clone(), sizes=words.sizes.clone())
    swapped.tokens[0, 3], swapped.sizes[0, 3] = words.tokens[0, 4], words.sizes[0, 4]
    earlier = torch.zeros(words.mask.shape)
    earlier[0, [3, 8]] = 1.0  # gaps of three and four words, one position each
    close(marked.encode_selection(swapped, earlier).states[0, 8], first)


@torch.no_grad()
def test_unselected_mask_and_zero_stay_visible(bert):
    out, mask, zero = (highlight_model(bert, unselected=how, gaps="kept").eval() for how in ("out", "mask", "zero"))
    words = out.encoder.collate(texts())
    z = some_selection(words)
    results = [model.predict_from(z, words) for model in (out, mask, zero)]
    assert not any(torch.allclose(results[i], results[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    everything = [model.predict_from(words.mask.float(), words) for model in (out, mask, zero)]
    close(everything[0], everything[1])
    close(everything[0], everything[2])


@torch.no_grad()
def test_long_texts_are_encoded_in_windows(bert):
    made = make_encoder(bert)
    examples = [text(200, with_punctuation=False), text(5), text(64, seed=3)]
    words = made.collate(examples)
    together = made.states(words)
    for row, example in enumerate(examples):
        alone = made.states(made.collate([example]))[0]
        close(together[row, : len(alone)], alone)
    # Words near the start see only what the first window holds.
    start = Example(*(lambda s: (s, *split_words(s, "spaces")))(" ".join(examples[0].tokens[:150])))
    close(made.states(made.collate([start]))[0, :8], together[0, :8])
    assert together[0].abs().sum(-1).min() > 0
    model = highlight_model(bert).eval()
    chosen = model(words, budget=Budget.count(30)).selection.z
    assert chosen.sum(1).tolist() == [30, words.counted[1].sum(), 30]  # one selection over the whole of a text


@torch.no_grad()
@pytest.mark.parametrize("words", [20, 24, 29, 31, 32, 40])
def test_states_do_not_depend_on_other_texts(bert, words):
    """A text slightly shorter than a window has one window, however long the others are."""
    model = highlight_model(bert).eval()
    short = text(words, with_punctuation=False)
    alone = model(model.encoder.collate([short]), budget=BUDGET)
    beside = model(model.encoder.collate([short, text(150)]), budget=BUDGET)
    close(alone.outputs[0], beside.outputs[0])
    assert torch.equal(alone.z[0], beside.z[0, :words])


@torch.no_grad()
def test_encoders_without_a_first_special_token(tmp_path, monkeypatch):
    """As in T5: the global state does not depend on padding or unselected words."""
    plain = tiny_transformers.tokenizer

    def without_prefix(length=64):
        made = plain(length)
        end = [("[SEP]", made.sep_token_id)]
        made.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A [SEP]", special_tokens=end)
        return made

    monkeypatch.setattr(tiny_transformers, "tokenizer", without_prefix)
    model = highlight_model(write_encoder(tmp_path, "t5")).eval()
    assert model.encoder.subwords.prefix == ()
    examples = [text(3, with_punctuation=False), text(25)]
    together = model.encoder.collate(examples)
    alone = model.encoder.collate(examples[:1])
    close(model.predict_from(alone.mask.float(), alone)[0], model.predict_from(together.mask.float(), together)[0])
    z = some_selection(together)
    assert torch.equal(model.predict_from(z, together), model.predict_from(z, other_words(together, z)))


def test_gradients_reach_scores_and_both_encoders(bert):
    model = highlight_model(bert).train()
    words = model.encoder.collate(texts((14, 90)))
    output = model(words, budget=BUDGET)
    output.outputs.square().sum().backward()
    for network in (model.encoder.generator, model.encoder.predictor):
        assert network.get_input_embeddings().weight.grad.abs().sum() > 0
    assert model.method.scorer.weight.grad.abs().sum() > 0


def test_gradient_of_z(bert):
    model = highlight_model(bert).double().eval()
    words = model.encoder.collate(texts((6, 4)))
    z = torch.where(words.mask, 0.2 + 0.6 * torch.rand(words.mask.shape, dtype=torch.float64), 0.0).requires_grad_()
    shown = words.mask.double()
    assert torch.autograd.gradcheck(lambda z: model.predict_from(z * shown, words), (z,), atol=1e-4)


@pytest.mark.parametrize("method", EXTRACTORS)
def test_every_method_for_texts(bert, method):
    model = highlight_model(bert, method).train()
    words = model.encoder.collate(texts())
    torch.manual_seed(0)
    output = model(words, budget=BUDGET)
    loss = model.method_loss(output, model.head.loss(output.outputs, torch.tensor([0, 1, 0, 1]))).loss
    loss.backward()
    assert torch.isfinite(loss)
    with torch.no_grad():
        assert torch.isfinite(model.eval()(words, budget=BUDGET).outputs).all()


@pytest.mark.parametrize("faithful", [True, False])
@pytest.mark.parametrize("method", ALIGNERS)
def test_every_method_for_pairs(bert, method, faithful):
    model = pair_model(bert, method, settings={"faithful": faithful}).train()
    premise, hypothesis = (model.encoder.collate(texts(lengths)) for lengths in ((14, 6, 3, 70), (5, 9, 2, 7)))
    output = model(premise, hypothesis, budget=BUDGET)
    output.outputs.square().sum().backward()
    assert model.encoder.generator.get_input_embeddings().weight.grad.abs().sum() > 0
    with torch.no_grad():
        assert torch.isfinite(model.eval()(premise, hypothesis, budget=BUDGET).outputs).all()


def test_one_encoder_for_both_sides(bert):
    two, one = highlight_model(bert), highlight_model(bert, shared=True)
    count = lambda model: sum(p.numel() for p in model.encoder.parameters())  # noqa: E731
    assert count(two) == 2 * count(one)
    words = one.encoder.collate(texts())
    with torch.no_grad():  # equal before training
        close(two.eval()(words, budget=BUDGET).outputs, one.eval()(words, budget=BUDGET).outputs)


def test_frozen_networks(bert):
    def learns(**options):
        made = make_encoder(bert, **options)
        return {
            name: any(p.requires_grad for p in getattr(made, name).parameters()) for name in ("generator", "predictor")
        }

    assert learns() == {"generator": True, "predictor": True}
    assert learns(generator_rate=0.0) == {"generator": False, "predictor": True}
    partly = make_encoder(bert, frozen_layers=1).generator
    assert not any(p.requires_grad for p in partly.embeddings.parameters())
    assert not any(p.requires_grad for p in partly.encoder.layer[0].parameters())
    assert all(p.requires_grad for p in partly.encoder.layer[1].parameters())


def test_invalid_frozen_layers_raise(bert, tmp_path):
    with pytest.raises(DataError, match=r"frozen_layers=3, but .* has 2 layers"):
        make_encoder(bert, frozen_layers=3)
    with pytest.raises(DataError, match="uses the same layer several times"):
        make_encoder(write_encoder(tmp_path, "albert"), frozen_layers=1)


def test_gradient_checkpointing_gives_the_same_gradient(bert):
    gradients = []
    for checkpointing in (False, True):
        model = highlight_model(bert, checkpointing=checkpointing)
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        words = model.encoder.collate(texts())
        model.train()(words, budget=BUDGET).outputs.square().sum().backward()
        gradients.append(model.encoder.generator.get_input_embeddings().weight.grad)
    close(*gradients)
    assert gradients[0].abs().sum() > 0


@torch.no_grad()
@pytest.mark.parametrize("kind", ["bert", "t5"])
def test_restored_encoder_gives_the_same_states(kind, tmp_path):
    folder = write_encoder(tmp_path, kind)
    made = make_encoder(folder)
    described = json.loads(json.dumps(made.description()))
    again = TransformerEncoder.restore(described, made.tables(), TransformerOptions()).eval()
    again.load_state_dict(made.state_dict())
    words, others = made.collate(texts()), again.collate(texts())
    assert torch.equal(made.states(words), again.states(others))
    encoded = [one.encode_selection(batch, some_selection(batch)) for one, batch in ((made, words), (again, others))]
    assert torch.equal(encoded[0].states, encoded[1].states)
    assert made.summary() == again.summary()


def test_summary(bert):
    facts = make_encoder(bert).summary()
    assert facts == {
        "rule": "spaces",
        "punctuation": "free",
        "layers": 2,
        "size": 16,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 1000}, "window=1000, but .* at most 64"),
        ({"overlap": 30}, "window=64 with overlap=30: .* at least 16 tokens"),
        ({"overlap": 3}, "the overlap must be at least 16 tokens"),
    ],
)
def test_invalid_windows_raise(bert, options, message):
    with pytest.raises(DataError, match=message):
        make_encoder(bert, **options)


def test_unselected_mask_needs_a_mask_token(bert):
    made = make_encoder(bert)
    bare = replace(made.pretrained, subwords=replace(made.subwords, mask=None))
    with pytest.raises(DataError, match="has no mask token; use unselected=out"):
        TransformerEncoder(bare, TransformerOptions(unselected="mask"))
    TransformerEncoder(bare, TransformerOptions(unselected="out"))


def test_initialize_scales_transformer_scores(bert):
    model = highlight_model(bert, settings={"method_options": {"start_spread": 1.0}}).eval()
    words = model.encoder.collate(texts((30, 20, 25)))
    with torch.no_grad():
        narrow = model(words, budget=BUDGET).scores
        model.initialize(words)
        scores = model(words, budget=BUDGET).scores
    assert _spread(narrow, words.counted) < 0.5
    assert _spread(scores, words.counted) == pytest.approx(1.0, rel=1e-4)


def _spread(scores, mask):
    rows = [row[real] - row[real].mean() for row, real in zip(scores, mask, strict=True)]
    return torch.cat(rows).square().mean().sqrt().item()


def test_masks_in_closed_gaps_are_refused(bert):
    """They would have no effect."""
    with pytest.raises(ValueError, match="gaps"):
        make_encoder(bert, unselected="mask")
