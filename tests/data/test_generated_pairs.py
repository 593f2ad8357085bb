from collections import Counter

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from rationalizer.data import generated_pairs as pairs
from rationalizer.data import load
from rationalizer.data.generated_pairs import CLASSES, LEXICON, relation


@pytest.fixture(scope="module")
def corpus():
    return pairs()


@pytest.fixture(scope="module")
def everything(corpus):
    return [*corpus.train, *corpus.dev, *corpus.test]


def words(example):
    return [token.lower() for token in example.tokens]


def aligned(pair):
    """(premise's word, hypothesis' word), in the hypothesis' order."""
    premise, hypothesis = words(pair.premise), words(pair.hypothesis)
    return [(premise[i], hypothesis[j]) for i, j in sorted(pair.alignment, key=lambda link: link[1])]


def nouns(text):
    """Who acts and who is acted on: the two words with a family that is not a building's."""
    family = [word for word in text if word in LEXICON and (LEXICON[word].general or LEXICON[word].specific)]
    return [word for word in family if "building" not in (word, LEXICON[word].general)]


def test_sizes_classes_and_texts(corpus, everything):
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [4800, 300, 300]
    assert (corpus.classes, corpus.pairs, str(corpus.budget)) == (
        ("entailment", "neutral", "contradiction"),
        True,
        "100%",
    )
    for split in (corpus.train, corpus.dev, corpus.test):
        assert set(Counter(pair.label for pair in split).values()) == {len(split) // 3}
    assert len({(pair.premise.text, pair.hypothesis.text) for pair in everything}) > 0.99 * len(everything)
    for pair in everything[:200]:
        for side in (pair.premise, pair.hypothesis):
            assert tuple(side.text[a:b] for a, b in side.offsets) == side.tokens
            assert side.text[0].isupper()
            assert side.text.endswith(".")


def test_corpus_is_deterministic(corpus):
    assert load("pairs") == corpus
    assert load("pairs", seed=1).train != corpus.train
    small = pairs(train=5, dev=4, test=2)
    assert small.train == corpus.train[:5]
    assert [*small.dev, *small.test] == corpus.train[5:11]


def test_premise_lengths_vary(everything):
    longer = np.mean([len(pair.premise.tokens) > len(pair.hypothesis.tokens) for pair in everything])
    shorter = np.mean([len(pair.premise.tokens) < len(pair.hypothesis.tokens) for pair in everything])
    assert longer > 0.3
    assert shorter > 0.15
    lengths = [len(side.tokens) for pair in everything for side in (pair.premise, pair.hypothesis)]
    assert (min(lengths), max(lengths)) == (4, 13)


def test_alignments_are_matchings(everything):
    for pair in everything:
        rows, columns = zip(*pair.alignment, strict=True)
        assert len(set(rows)) == len(rows)
        assert len(set(columns)) == len(columns)


def test_aligned_words_are_related(everything):
    """So that it is plain which word belongs with which."""
    for pair in everything:
        premise, hypothesis = words(pair.premise), words(pair.hypothesis)
        for i, one in enumerate(premise):
            for j, other in enumerate(hypothesis):
                related = relation(one, other) is not None and one != "."
                assert ((i, j) in pair.alignment) == related, (pair, one, other)


def test_label_is_determined_by_aligned_words(everything):
    kinds = Counter()
    for pair in everything:
        links = aligned(pair)
        relations = {relation(*link) for link in links}
        premise, hypothesis = nouns(words(pair.premise)), nouns(words(pair.hypothesis))
        exchanged = relation(premise[0], hypothesis[0]) is None
        more = len(links) < len(pair.hypothesis.tokens) - 1 or "broader" in relations
        if "opposite" in relations or exchanged:
            label = "contradiction"
        else:
            label = "neutral" if more else "entailment"
        assert CLASSES[pair.label] == label
        kinds["exchanged"] += exchanged
        kinds["negated"] += ("often", "never") in links or ("never", "often") in links
        kinds["synonym"] += any(a != b and relation(a, b) == "same" for a, b in links)
        kinds.update(relations)
    assert all(kinds[kind] > 100 for kind in ("exchanged", "negated", "synonym", "opposite", "narrower", "broader"))


def test_role_swaps_keep_the_words(everything):
    turned = 0
    for pair in everything:
        premise, hypothesis = nouns(words(pair.premise)), nouns(words(pair.hypothesis))
        if relation(premise[0], hypothesis[0]) is None:
            assert relation(premise[1], hypothesis[0])
            assert relation(premise[0], hypothesis[1])
            assert not any(relation(*link) == "opposite" for link in aligned(pair))
            turned += 1
    assert turned > 100


def accuracy(corpus, text):
    """Of logistic regression on word counts."""
    counter = CountVectorizer()
    train, test = corpus.train[:2400], [*corpus.dev, *corpus.test]
    model = LogisticRegression(C=0.1, max_iter=100, tol=1e-3)
    model.fit(counter.fit_transform(map(text, train)), [pair.label for pair in train])
    return model.score(counter.transform(map(text, test)), [pair.label for pair in test])


def test_hypothesis_alone_is_uninformative(corpus):
    assert accuracy(corpus, lambda pair: pair.hypothesis.text) < 0.42


def test_bags_of_words_are_insufficient(corpus):
    assert accuracy(corpus, lambda pair: pair.premise.text) < 0.55
    both = accuracy(
        corpus,
        lambda pair: " ".join(["p" + w for w in words(pair.premise)] + ["h" + w for w in words(pair.hypothesis)]),
    )
    assert both < 0.65


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="-1, 300, 300"):
        pairs(train=-1)
    for option in ({"aspect": "food"}, {"data_dir": "x"}, {"dev_fraction": 0.2}):
        with pytest.raises(ValueError, match=next(iter(option))):
            load("pairs", **option)
