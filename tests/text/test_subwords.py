"""Subwords of words."""

import json
from concurrent.futures import ThreadPoolExecutor

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from rationalizer.text import Example, split_words
from rationalizer.text.subwords import MAX_SUBWORDS, Subwords
from tests.nn.tiny_transformers import tokenizer


def example(text, rule="words"):
    return Example(text, *split_words(text, rule))


def pieces(subwords, text):
    return [[subwords.tokenizer.id_to_token(i) for i in ids] for ids in subwords.tokenize(example(text))]


def test_words_are_tokenized_separately():
    subwords = Subwords.from_tokenizer(tokenizer())
    assert pieces(subwords, "W12, w7!") == [["w1", "##2"], [","], ["w7"], ["!"]]
    assert [subwords.tokenizer.id_to_token(i) for i in (*subwords.prefix, *subwords.suffix)] == ["[CLS]", "[SEP]"]
    assert subwords.special == 2
    assert subwords.tokenizer.id_to_token(subwords.mask) == "[MASK]"


def test_blank_before_word_depends_on_tokenizer():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    corpus = ["a good film", "good film", "good good"]
    letters = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=300, initial_alphabet=letters, show_progress=False))
    subwords = Subwords(made, (), (), None, None)
    assert pieces(subwords, "good good film") == [["good"], ["Ġgood"], ["Ġfilm"]]
    assert pieces(subwords, "(good") == [["("], ["good"]]


def test_word_directly_after_another_has_no_blank():
    """SentencePiece adds a blank before every input."""
    pieces_of = [("<unk>", 0.0), ("▁", -3.0), ("▁film", -2.0), (",", -2.0), ("▁a", -2.0), ("▁,", -5.0), ("s", -2.0)]
    made = Tokenizer(models.Unigram(pieces_of, 0))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    subwords = Subwords(made, (), (), None, 0)
    text = "a film, film"
    assert (
        [piece for word in pieces(subwords, text) for piece in word]
        == made.encode(text).tokens
        == ["▁a", "▁film", ",", "▁film"]
    )
    assert pieces(subwords, "(s")[1] == ["s"]  # the blank was a separate token


def test_special_tokens_in_a_text_are_words():
    subwords = Subwords.from_tokenizer(tokenizer())
    special = {*subwords.prefix, *subwords.suffix, subwords.mask}
    text = example("w1 [SEP] [MASK] w2", "spaces")
    assert not special.intersection(sum(subwords.tokenize(text), ()))


def test_threads_may_clear_the_cache(monkeypatch):
    from rationalizer.text import subwords as module

    monkeypatch.setattr(module, "CACHE_SIZE", 20)
    subwords = Subwords.from_tokenizer(tokenizer())
    texts = [example(" ".join(f"w{k}{j}" for j in range(30))) for k in range(40)]
    expected = [Subwords.from_tokenizer(tokenizer()).tokenize(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(subwords.tokenize, texts * 5)) == expected * 5


def test_words_without_subwords_are_unknown():
    subwords = Subwords.from_tokenizer(tokenizer())
    assert [subwords.knows(word) for word in ("w3", "quite", "w3\ud800")] == [True] * 3
    assert [subwords.knows(word) for word in ("你", "\u200d", "\ud800")] == [False] * 3
    assert pieces(subwords, "w3 你")[1] == ["[UNK]"]


def test_word_with_many_subwords_is_truncated():
    subwords = Subwords.from_tokenizer(tokenizer())
    assert len(subwords.tokenize(example("w" + "1" * 60))[0]) == MAX_SUBWORDS


def test_subwords_json_round_trip():
    subwords = Subwords.from_tokenizer(tokenizer())
    again = Subwords.from_json(json.loads(json.dumps(subwords.to_json())))
    text = example("W12, w7! 你 (abc)")
    assert again.tokenize(text) == subwords.tokenize(text)
    assert (again.prefix, again.suffix, again.mask, again.unknown) == (
        subwords.prefix,
        subwords.suffix,
        subwords.mask,
        subwords.unknown,
    )


def test_evicted_words_are_tokenized_again(monkeypatch):
    from rationalizer.text import subwords as module

    monkeypatch.setattr(module, "CACHE_SIZE", 3)
    subwords = Subwords.from_tokenizer(tokenizer())
    text = example("w1 w2 w3 w4 w1 w5 w2")
    first = subwords.tokenize(text)
    assert subwords.tokenize(text) == first == Subwords.from_tokenizer(tokenizer()).tokenize(text)
