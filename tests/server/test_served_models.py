"""Caches of served models, estimates of cost, and groups by length."""

from rationalizer.data import DataError
from rationalizer.server.served_models import estimate_cost, group_by_length
from rationalizer.text import token_cache, word_splitting


def test_caches_of_unknown_words_are_bounded(models, monkeypatch):
    """For many words, and for long ones."""
    served = models[0]
    encoder = served.model.trained.encoder
    monkeypatch.setattr(token_cache, "MAX_TOKENS", 500)
    before = word_splitting._is_punctuation.cache_info().currsize
    long = [f"{'x' * 5000}{k}" for k in range(20)]
    served.explain(None, None, long)
    assert word_splitting._is_punctuation.cache_info().currsize == before
    assert not (encoder._table_rows.keys() | encoder._kind.keys()) & set(long)
    for k in range(20):
        served.explain(None, None, [" ".join(f"strange{k}x{j}" for j in range(100))])
        assert len(encoder._table_rows) <= 500
        assert len(encoder._kind) <= 500
    for answers in (word_splitting._is_punctuation, word_splitting._span):
        assert answers.cache_info().maxsize <= 1 << 16


def test_cost_grows_with_the_text():
    assert estimate_cost("a") == 1
    assert estimate_cost("lovely care " * 100) == 301
    assert estimate_cost(("a", "b")) == 2
    assert estimate_cost(("x" * 4000, "x" * 4000)) > 60_000


def test_text_errors_keep_their_position(models):
    found = models[0].explain(None, None, ["a", "<br />", "b"])
    assert [isinstance(one, DataError) for one in found] == [False, True, False]
    assert [one.text for one in found[::2]] == ["a", "b"]
    assert all(isinstance(one, DataError) for one in models[0].explain(None, None, ["<br />"]))


def test_long_text_is_in_its_own_batch(models, monkeypatch):
    """They would be padded to its length, and all take as long as it does; the answers keep their order."""
    model = models[0].model
    texts = ["lovely care", "musty room " * 400, "We had lovely care. " * 3, "dirty musty room"]
    expected = [model.explain(text) for text in texts]
    batches = []
    real = type(model).explain_examples
    monkeypatch.setattr(
        type(model), "explain_examples", lambda *args, **how: batches.append(len(args[1])) or real(*args, **how)
    )
    found = models[0].explain(None, None, texts)
    assert [(one.text, one.selected) for one in found] == [(one.text, one.selected) for one in expected]
    assert batches == [3, 1]


def test_groups_of_similar_length():
    assert group_by_length([]) == []
    assert group_by_length([(20,)] * 64) == [list(range(64))]
    assert group_by_length([(15 + k % 7,) for k in range(50)]) == [sorted(range(50), key=lambda k: k % 7)]
    assert group_by_length([(100 * k,) for k in range(1, 7)]) == [
        [0, 1],
        [2, 3],
        [4, 5],
    ]  # three would be padded by 300
    # 500 words beside 5, twice: each pads what the other has little of
    assert group_by_length([(500, 5), (5, 500), (5, 5)]) == [[2], [0], [1]]
