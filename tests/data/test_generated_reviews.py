import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from rationalizer.data import generated_reviews as reviews
from rationalizer.data.disk_examples import word_counts
from rationalizer.data.generated_reviews import ASPECTS, NEGATIONS, SHARED
from rationalizer.text import Vocabulary, is_punctuation


@pytest.fixture(scope="module")
def corpus():
    return reviews()


def gold(example):
    return [token for token, flag in zip(example.tokens, example.annotation, strict=True) if flag]


def test_sizes_classes_and_texts(corpus):
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [4000, 500, 500]
    assert corpus.classes == ("negative", "positive")
    everything = [*corpus.train, *corpus.dev, *corpus.test]
    assert len({example.text for example in everything}) == 5000
    assert 0.47 < np.mean([example.label for example in everything]) < 0.53
    for example in everything[:200]:
        assert tuple(example.text[a:b] for a, b in example.offsets) == example.tokens


def test_corpus_is_deterministic(corpus):
    assert reviews(seed=0).train == corpus.train
    assert reviews(seed=1).train != corpus.train
    assert reviews(seed=0, train=100, dev=10, test=10).train == corpus.train[:100]


def test_annotation_is_contiguous_and_its_majority_is_the_label(corpus):
    aspect = ASPECTS["service"]
    for example in corpus.train:
        opening, first, second, noun = gold(example)
        start = example.annotation.index(True)
        assert all(example.annotation[start : start + 4])
        good = [word in SHARED.good or word in aspect.adjectives.good for word in (first, second)]
        if opening in NEGATIONS:
            good = [not value for value in good]
        assert (sum(good) + (noun in aspect.nouns.good) >= 2) == bool(example.label)


def test_annotation_size_is_near_the_budget(corpus):
    lengths = np.array([sum(not is_punctuation(token) for token in example.tokens) for example in corpus.train])
    budgets = np.maximum(1, np.round(corpus.budget.amount * lengths))
    best = 2 * np.minimum(4, budgets) / (4 + budgets)
    assert best.mean() > 0.98  # token-F1 of the whole rationale, filled up to the budget
    assert lengths.min() >= 12
    assert lengths.max() <= 30


@pytest.mark.parametrize(("correlation", "agreement"), [(0.0, 0.5), (0.8, 0.9), (1.0, 1.0), (-1.0, 0.0)])
def test_correlation_controls_agreement_of_aspects(correlation, agreement):
    corpus = reviews(train=1500, dev=0, test=0, correlation=correlation)
    agrees = []
    for example in corpus.train:
        for k, token in enumerate(example.tokens):
            for name, aspect in ASPECTS.items():
                if name != "service" and token in (*aspect.nouns.bad, *aspect.nouns.good):
                    opening, first, second = example.tokens[k - 3 : k]
                    own = aspect.adjectives
                    good = [word in SHARED.good or word in own.good for word in (first, second)]
                    if opening in NEGATIONS:
                        good = [not value for value in good]
                    agrees.append((sum(good) + (token in aspect.nouns.good) >= 2) == bool(example.label))
    assert len(agrees) >= 1500
    assert abs(np.mean(agrees) - agreement) < (0.05 if 0 < agreement < 1 else 1e-9)


def bag_of_words_accuracy(corpus):
    """Logistic regression on word counts, the ridge chosen on dev: what a model blind to order can do."""
    vocabulary = Vocabulary.from_counts(word_counts(corpus.train), lower=True)

    def counts(examples):
        table = torch.zeros(len(examples), len(vocabulary))
        for row, example in enumerate(examples):
            for word in map(vocabulary.id, example.tokens):
                table[row, word] += 1
        return table, torch.tensor([float(example.label) for example in examples])

    (x, y), dev, test = counts(corpus.train), counts(corpus.dev), counts(corpus.test)
    scores = []
    for ridge in (1e-4, 1e-3, 1e-2):
        weights = torch.zeros(len(vocabulary) + 1, requires_grad=True)
        optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

        def loss(weights=weights, optimizer=optimizer, ridge=ridge):
            optimizer.zero_grad()
            value = binary_cross_entropy_with_logits(x @ weights[1:] + weights[0], y) + ridge * weights @ weights / 2
            value.backward()
            return value

        optimizer.step(loss)
        right = [((a @ weights[1:] + weights[0] > 0) == (b > 0)).float().mean().item() for a, b in (dev, test)]
        scores.append(right)
    return max(scores)[1]


def test_bag_of_words_is_better_than_chance_but_imperfect(corpus):
    assert 0.7 < bag_of_words_accuracy(corpus) < 0.9


def test_correlation_helps_a_bag_of_words(corpus):
    assert bag_of_words_accuracy(reviews(correlation=1.0)) > bag_of_words_accuracy(corpus) + 0.05


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match=r"between -1 and 1, got 2"):
        reviews(correlation=2)
    with pytest.raises(ValueError, match=r"one of food, service.*got 'weather'"):
        reviews(aspect="weather")
    with pytest.raises(ValueError, match="negative"):
        reviews(train=-1)
