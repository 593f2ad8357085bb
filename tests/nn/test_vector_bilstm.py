"""The BiLSTM encoder: word vectors, unknown words, and saving."""

import json
from collections import Counter

import numpy as np
import pytest
import torch

from rationalizer.nn import ENCODERS, VectorEncoder
from rationalizer.nn.encoders.vector_bilstm import MIN_COVERAGE, VectorOptions, coverage
from rationalizer.text import BUNDLED, DataError, Example, VectorLookup, WordVectors, load_vectors, split_words

TRAINED = Counter(["A", "lovely", "qqq", "room", ".", "the", "room", "wouldn't", "do", "!"])


def example(text):
    return Example(text, *split_words(text))


def prepared(**options):
    torch.manual_seed(0)
    return VectorEncoder.prepare(
        "bilstm", TRAINED, VectorOptions(hidden=4, **options), rule="words", punctuation="free"
    )


def test_english_texts_get_the_package_vectors():
    encoder = prepared()
    assert len(encoder.vectors) == len(load_vectors(BUNDLED))
    assert encoder.summary() == {
        "rule": "words",
        "punctuation": "free",
        "pretrained": 75_000,
        "seen in training": 9,
    }
    assert [encoder.knows(word) for word in ("lovely", "qqq", "dreadful", "DREADFUL", "zzzqx")] == [True] * 4 + [False]


def test_texts_without_coverage_learn_their_own_vectors():
    words = Counter(["zorble", "fnord", "blarg", "the", "zorble", "qux"])
    assert coverage(VectorLookup(load_vectors(BUNDLED).words), words) < MIN_COVERAGE
    torch.manual_seed(0)
    encoder = VectorEncoder.prepare("bilstm", words, VectorOptions(vector_size=5), rule="words", punctuation="free")
    assert encoder.vectors is None
    assert encoder.learned.weight.shape == (6, 5)
    assert not encoder.knows("dreadful")
    assert prepared(embeddings=None).vectors is None


def test_word_vector_is_pretrained_plus_learned():
    encoder = prepared()
    table, words = encoder.vectors.decoded(), encoder.vectors.words
    vector = lambda text: encoder.word_vectors(encoder.collate([example(text)]))[0].detach().numpy()  # noqa: E731
    np.testing.assert_allclose(vector("dreadful")[0], table[words.index("dreadful")], atol=1e-6)
    np.testing.assert_allclose(vector("lovely")[0], table[words.index("lovely")], atol=1e-6)  # nothing learned yet
    parts = [table[words.index(part)] for part in ("would", "n't")]
    np.testing.assert_allclose(vector("Wouldn't")[0], np.mean(parts, axis=0), atol=1e-6)
    with torch.no_grad():
        encoder.learned.weight[encoder.vocabulary.id("lovely")] = 1.0
    np.testing.assert_allclose(vector("Lovely")[0], table[words.index("lovely")] + 1, atol=1e-6)
    assert np.abs(vector("qqq")[0]).sum() > 0  # in the training texts, without a pretrained vector
    assert np.abs(vector("zzzqx")[0]).sum() == 0


def test_untuned_vectors_are_frozen():
    assert not prepared(tuned=False).learned.weight.requires_grad
    assert prepared(embeddings=None, tuned=False).learned.weight.requires_grad  # no pretrained vectors to freeze


@pytest.mark.parametrize("options", [{}, {"embeddings": None, "vector_size": 6}, {"lower": False}, {"min_count": 2}])
def test_restored_encoder_gives_the_same_states(options):
    encoder = prepared(**options).eval()
    described = json.loads(json.dumps(encoder.description()))
    again = VectorEncoder.restore(described, encoder.tables(), VectorOptions(hidden=4, **options)).eval()
    again.load_state_dict(encoder.state_dict())
    texts = [example("A LOVELY dreadful room."), example("zzzqx wouldn't!")]
    one, other = (r.collate(texts) for r in (encoder, again))
    assert torch.equal(one.parts, other.parts)
    assert torch.equal(one.seen, other.seen)
    assert torch.equal(one.counted, other.counted)
    assert torch.equal(encoder.states(one), again.states(other))
    assert not any(name.startswith(("codes", "scales")) for name in encoder.state_dict())  # saved once, in another file


def test_table_of_another_encoder_raises():
    encoder = prepared()
    other = WordVectors.from_floats(["a"], np.ones((1, 100)))
    tables = {name: torch.from_numpy(array) for name, array in other.to_arrays().items()}
    with pytest.raises(ValueError, match="saved with 75000 pretrained words, but its table has 1"):
        VectorEncoder.restore(encoder.description(), tables, VectorOptions(hidden=4))


def test_vectors_without_coverage_raise(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("zorble 1 2\nfnord 3 4\n")
    with pytest.raises(DataError, match=r"none of the 9 words of the training texts has a vector"):
        prepared(embeddings=str(path))


def test_encoders_are_registered_by_their_names():
    for name, encoder in ENCODERS.items():
        assert encoder.name == name
        assert encoder.options()
