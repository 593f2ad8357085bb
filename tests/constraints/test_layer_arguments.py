"""What constraints ask of a text's words: against all selections there are, each looked at as a person would."""

from itertools import groupby, pairwise, product

import numpy as np
import pytest
import torch

from rationalizer import ops
from rationalizer.constraints import (
    BatchItem,
    ConstraintConflict,
    Ends,
    LayerConstraints,
    Must,
    Never,
    PerSentence,
    SpanLength,
    Spans,
    WholeSentences,
    build_layer_constraints,
)
from rationalizer.text import Budget, Example, is_punctuation, split_words

TEXT = "The view, not bad! Rude staff. It was awful"
EXAMPLE = Example(TEXT, *split_words(TEXT))
WORDS = [k for k, token in enumerate(EXAMPLE.tokens) if not is_punctuation(token)]
SENTENCE = [0, 0, 0, 0, 1, 1, 2, 2, 2]  # of the words
NAMES = [EXAMPLE.tokens[k] for k in WORDS]


def limits_of(*constraints, example=EXAMPLE, budget=4, position=0, of=1):
    counted = torch.tensor([[not is_punctuation(token) for token in example.tokens]])
    text = BatchItem(example, position, of)
    return build_layer_constraints(constraints, [text], counted, Budget.parse(budget), "punctuation"), counted


def runs(chosen):
    return [len(list(group)) for flag, group in groupby(chosen) if flag]


# Of a selection (a flag a word): whether a person would say that it keeps to the constraint.
KEPT = {
    Spans(1): lambda y: len(runs(y)) <= 1,
    Spans(2): lambda y: len(runs(y)) <= 2,
    SpanLength(2): lambda y: all(length >= 2 for length in runs(y)),
    SpanLength(2, 3): lambda y: all(2 <= length <= 3 for length in runs(y)),
    SpanLength(at_most=1): lambda y: all(length == 1 for length in runs(y)),
    WholeSentences(): lambda y: all(len({y[k] for k in range(9) if SENTENCE[k] == s}) == 1 for s in range(3)),
    PerSentence(1): lambda y: all(sum(y[k] for k in range(9) if SENTENCE[k] == s) <= 1 for s in range(3)),
    PerSentence(2): lambda y: all(sum(y[k] for k in range(9) if SENTENCE[k] == s) <= 2 for s in range(3)),
    Must(words=["RUDE"]): lambda y: y[NAMES.index("Rude")],
    Must(characters=[(4, 8)]): lambda y: y[NAMES.index("view")],
    Must(mask=[int(token == "bad") for token in EXAMPLE.tokens]): lambda y: y[NAMES.index("bad")],
    Never(stopwords=True): lambda y: not any(y[NAMES.index(w)] for w in ("The", "It", "was")),
    Never(pattern="staff|aw"): lambda y: not (y[NAMES.index("staff")] or y[NAMES.index("awful")]),
    Ends(pattern="not bad"): lambda y: y[2] == y[3],
    Ends(characters=[(10, 23)]): lambda y: y[2] == y[3] == y[4],
}


def best(scores, budget, transition, *kept):
    """By looking at all."""
    found = max(
        (y for y in product((0, 1), repeat=9) if sum(y) <= budget and all(keeps(y) for keeps in kept)),
        key=lambda y: np.dot(scores, y) + transition * sum(a * b for a, b in pairwise(y)),
    )
    return [bool(flag) for flag in found]


@pytest.mark.parametrize("second", [None, Spans(1), WholeSentences(), Never(stopwords=True), PerSentence(2)], ids=str)
@pytest.mark.parametrize("first", KEPT, ids=str)
def test_decoding_matches_brute_force(first, second):
    asked = [first] if second is None else [first, second]
    kept = [KEPT[constraint] for constraint in asked]
    generator = np.random.default_rng(0)
    limits, counted = limits_of(*asked)
    for transition in (0.0, 0.4):
        scores = generator.normal(size=(1, len(EXAMPLE.tokens)))
        chosen = ops.spans_map(torch.from_numpy(scores), 4, transition=transition, mask=counted, **limits.arguments())
        assert chosen[0, WORDS].bool().tolist() == best(scores[0, WORDS], 4, transition, *kept)


def test_tightest_of_several_bounds_applies():
    limits, _ = limits_of(Spans(3), Spans(2), SpanLength(2), SpanLength(1, 5), PerSentence(3), PerSentence(2))
    assert (limits.spans, limits.shortest, limits.longest, limits.per_group) == (2, 2, 5, 2)
    assert limits.unit is None
    assert limits.fixed is None


def test_arguments_differ_per_text():
    short = Example("Rude.", *split_words("Rude."))
    counted = torch.zeros(2, len(EXAMPLE.tokens), dtype=torch.bool)
    counted[0, WORDS], counted[1, 0] = True, True
    texts = [BatchItem(EXAMPLE, 0, 2), BatchItem(short, 1, 2)]
    asked = (Must(characters=[None, [(0, 4)]]), WholeSentences())
    limits = build_layer_constraints(asked, texts, counted, Budget.parse(4), "punctuation")
    assert limits.fixed[:, 0].tolist() == [0, 1]
    assert limits.unit.shape == counted.shape
    assert limits.to("meta").unit.device.type == "meta"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([Must(words=["The"]), Never(stopwords=True)], "'The' must be selected, but it never may"),
        ([Must(words=["view"]), WholeSentences(), Never(words=["bad"])], "selected together with never may"),
        ([Must(pattern=r"\w+")], "9 words must be selected, but the budget allows 4"),
        ([Must(words=["was"]), WholeSentences(), Ends(pattern="staff. It")], "5 words must be selected"),
        ([Must(words=["The", "awful"]), Spans(1)], "no selection of at most 4 words"),
        ([Must(words=["Rude", "staff"]), PerSentence(1)], "no selection"),
        ([SpanLength(3), SpanLength(1, 2)], "at least 3 words and at most 2"),
    ],
)
def test_conflict_names_the_text_and_the_constraints(asked, message):
    with pytest.raises(ConstraintConflict, match=message) as raised:
        limits_of(*asked)
    assert all(str(constraint) in str(raised.value) for constraint in asked)
    if "at most 2" not in message:
        assert "text 1 ('The view, not bad!" in str(raised.value)


def test_required_unknown_word_is_a_conflict_but_punctuation_is_not():
    counted = torch.tensor([[not is_punctuation(token) and token != "Rude" for token in EXAMPLE.tokens]])
    with pytest.raises(ConstraintConflict, match="'Rude' must be selected, but the model does not know the word"):
        build_layer_constraints(
            (Must(words=["rude"]),), [BatchItem(EXAMPLE, 0, 1)], counted, Budget.parse(4), "punctuation"
        )
    assert (limits_of(Must(punctuation=True))[0].fixed == 1).sum() == 3


@pytest.mark.parametrize(
    ("constraint", "of", "message"),
    [
        (Must(characters=[(0, 3)]), 2, "there are 2 texts"),
        (Must(characters=[[(0, 99)]]), 1, "text 1, which has 43 characters"),
        (Must(mask=[1, 0]), 1, "for the 12 tokens of text 1"),
        (Must(mask=[[2] * 12]), 1, "0 or 1 per token"),
    ],
)
def test_mask_length_must_match_the_text(constraint, of, message):
    with pytest.raises(ValueError, match=message):
        limits_of(constraint, of=of)


def test_slow_pattern_times_out():
    long = "a" * 40 + "b"
    with pytest.raises(ConstraintConflict, match="takes too long"):
        limits_of(Must(pattern="(a|a)+$"), example=Example(long, *split_words(long)))


def test_allow_any():
    counted = torch.ones(2, 4, dtype=torch.bool)
    whole = LayerConstraints(unit=torch.tensor([[0, 0, 0, 1], [0, 0, 0, 0]]))
    assert whole.allow_any(torch.tensor([2, 2]), counted).tolist() == [True, False]
    never = LayerConstraints(fixed=torch.tensor([[-1, -1, -1, 0], [-1, -1, -1, -1]]))
    assert never.allow_any(torch.tensor([2, 2]), counted).tolist() == [True, False]
    assert LayerConstraints(shortest=3).allow_any(torch.tensor([3, 2]), counted).tolist() == [True, False]
