"""Small select-then-predict models that read word lists: honest ones, and ones with a planted leak."""

from __future__ import annotations

import numpy as np

from rationalizer.auditing import Adapter

_FILLERS = "the a of we it was and at in room hotel stay night day staff desk street view food bed time visit trip"
_WORDS = (
    "bad rude dirty noisy awful broken stale cold smelly poor",
    "good kind clean quiet lovely fresh warm bright great superb",
    "fair usual plain average medium standard normal common typical modest",
)
FILLERS, WORDS = _FILLERS.split(), [words.split() for words in _WORDS]
SIGNS = [".", ",", "!"]


def make_texts(rng, count, classes=2):
    """Random texts: fillers, punctuation, three words of the label's class and one of another class."""
    texts, labels = [], []
    for _ in range(count):
        label = int(rng.integers(classes))
        other = int(rng.choice([k for k in range(classes) if k != label]))
        words = [*rng.choice(WORDS[label], 3), rng.choice(WORDS[other]), *SIGNS]
        words += list(rng.choice(FILLERS, int(rng.integers(8, 25))))
        texts.append([str(word) for word in rng.permutation(words)])
        labels.append(label)
    return texts, labels


class WordLists:
    """Selects the words with the largest weights, up to a budget, and predicts from the sum of their weights.

    The weights of a model are random around those of the word lists, so that models differ in what they select and in
    how often they are right.
    """

    def __init__(self, rng, *, classes=2, share=0.3, noise=0.3):
        self.classes, self.share = classes, share
        vocabulary = [*FILLERS, *(word for k in range(classes) for word in WORDS[k]), *SIGNS]
        self.weights = {word: noise * rng.normal(size=classes) for word in vocabulary}
        for k in range(classes):
            for word in WORDS[k]:
                self.weights[word][k] += 2

    def weight(self, word):
        return self.weights.get(word, np.zeros(self.classes))

    def limit(self, text):
        counted = sum(word not in SIGNS for word in text)
        return max(1, round(self.share * counted))

    def select(self, texts):
        masks = []
        for text in texts:
            importance = np.array([np.ptp(self.weight(word)) if word not in SIGNS else -1.0 for word in text])
            mask = np.zeros(len(text))
            mask[np.argsort(-importance, kind="stable")[: self.limit(text)]] = 1
            masks.append(mask)
        return masks

    def scores(self, text, mask):
        return sum((self.weight(word) for word, kept in zip(text, mask, strict=True) if kept), np.zeros(self.classes))

    def predict_from(self, texts, masks):
        scores = np.stack([self.scores(text, mask) for text, mask in zip(texts, masks, strict=True)])
        powers = np.exp(scores - scores.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    def label(self, text):
        """The class that the whole text suggests: what a cheating generator encodes."""
        return int(self.scores(text, np.ones(len(text))).argmax())

    def adapter(self, **options):
        return Adapter(self.select, self.predict_from, classes=range(self.classes), budget=self.share, **options)


class SeesADroppedWord(WordLists):
    """One dropped word, the first one, has a little influence on the prediction."""

    def scores(self, text, mask):
        dropped = next((word for word, kept in zip(text, mask, strict=True) if not kept), None)
        return super().scores(text, mask) + (0 if dropped is None else 0.01 * self.weight(dropped))


class PositionParity(WordLists):
    """Words at even or at odd positions, by the label; the predictor reads the parity."""

    def select(self, texts):
        masks = []
        for text in texts:
            places = [k for k in range(len(text)) if k % 2 == self.label(text) % 2 and text[k] not in SIGNS]
            mask = np.zeros(len(text))
            mask[places[: self.limit(text)]] = 1
            masks.append(mask)
        return masks

    def scores(self, text, mask):
        odd = np.flatnonzero(mask) % 2
        return np.array([1.0, -1.0]) * (3 if len(odd) and odd.mean() < 0.5 else -3)


class Count(WordLists):
    """An even number of words for one label, an odd number for the other; the predictor also reads this."""

    def select(self, texts):
        masks = super().select(texts)
        for text, mask in zip(texts, masks, strict=True):
            if mask.sum() % 2 != self.label(text):
                mask[np.flatnonzero(mask)[-1]] = 0
        return masks

    def scores(self, text, mask):
        return super().scores(text, mask) + np.array([5.0, -5.0]) * (1 if np.sum(mask) % 2 == 0 else -1)


class PunctuationCode(WordLists):
    """A comma is selected for one label, a full stop for the other; both are in every text."""

    def select(self, texts):
        masks = super().select(texts)
        for text, mask in zip(texts, masks, strict=True):
            mask[text.index(SIGNS[self.label(text)])] = 1
        return masks

    def scores(self, text, mask):
        kept = {word for word, one in zip(text, mask, strict=True) if one}
        return super().scores(text, mask) + 5 * np.array([SIGNS[0] in kept, SIGNS[1] in kept])


class BatchNeighbours(WordLists):
    """The other texts of the call influence a prediction."""

    def predict_from(self, texts, masks):
        own = super().predict_from(texts, masks)
        return 0.9 * own + 0.1 * own.mean(0)


LEAKS = {  # model: the check that must find it
    SeesADroppedWord: "replaced-words",
    PositionParity: "positions",
    Count: "size",
    PunctuationCode: "punctuation",
    BatchNeighbours: "batches",
}


def clean_model(rng):
    """An honest model of random kind: number of classes, budget, and how noisy its weights are."""
    classes = int(rng.integers(2, 4))
    return WordLists(rng, classes=classes, share=float(rng.uniform(0.1, 0.5)), noise=float(rng.uniform(0.05, 0.5)))
