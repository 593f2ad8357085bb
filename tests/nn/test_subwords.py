"""Words in an encoder's tokens."""

import json

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from rationalizer.nn.readers.subwords import MOST, Subwords
from rationalizer.text import Example, cut
from tests.nn.encoders import tokenizer


def example(text, rule="words"):
    return Example(text, *cut(text, rule))


def pieces(subwords, text):
    return [[subwords.tokenizer.id_to_token(i) for i in ids] for ids in subwords.of_text(example(text))]


def test_words_are_cut_each_by_itself():
    subwords = Subwords.of(tokenizer())
    assert pieces(subwords, "W12, w7!") == [["w1", "##2"], [","], ["w7"], ["!"]]
    assert [subwords.tokenizer.id_to_token(i) for i in (*subwords.prefix, *subwords.suffix)] == ["[CLS]", "[SEP]"]
    assert subwords.special == 2
    assert subwords.tokenizer.id_to_token(subwords.mask) == "[MASK]"


def test_a_blank_before_a_word_is_part_of_it_where_the_tokenizer_says_so():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    corpus = ["a good film", "good film", "good good"]
    letters = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=300, initial_alphabet=letters, show_progress=False))
    subwords = Subwords(made, (), (), None, None)
    assert pieces(subwords, "good good film") == [["good"], ["Ġgood"], ["Ġfilm"]]
    assert pieces(subwords, "(good") == [["("], ["good"]]


def test_what_cannot_be_written_is_unknown():
    subwords = Subwords.of(tokenizer())
    assert [subwords.knows(word) for word in ("w3", "quite", "w3\ud800")] == [True] * 3
    assert [subwords.knows(word) for word in ("你", "\u200d", "\ud800")] == [False] * 3
    assert pieces(subwords, "w3 你")[1] == ["[UNK]"]


def test_a_word_of_very_many_tokens_is_cut_short():
    subwords = Subwords.of(tokenizer())
    assert len(subwords.of_text(example("w" + "1" * 60))[0]) == MOST


def test_it_survives_being_written():
    subwords = Subwords.of(tokenizer())
    again = Subwords.from_json(json.loads(json.dumps(subwords.to_json())))
    text = example("W12, w7! 你 (abc)")
    assert again.of_text(text) == subwords.of_text(text)
    assert (again.prefix, again.suffix, again.mask, again.unknown) == (
        subwords.prefix,
        subwords.suffix,
        subwords.mask,
        subwords.unknown,
    )


def test_forgotten_words_are_looked_up_again(monkeypatch):
    from rationalizer.nn.readers import subwords as module

    monkeypatch.setattr(module, "REMEMBERED", 3)
    subwords = Subwords.of(tokenizer())
    text = example("w1 w2 w3 w4 w1 w5 w2")
    first = subwords.of_text(text)
    assert subwords.of_text(text) == first == Subwords.of(tokenizer()).of_text(text)
