"""Small models and texts of random words."""

import random

import numpy as np
import torch

from rationalizer.nn import HighlightModel, PairModel, VectorEncoder
from rationalizer.nn.encoders.vector_bilstm import VectorOptions
from rationalizer.text import Example, Vocabulary, WordVectors, split_words

WORDS = [f"w{k}" for k in range(60)]


def make_encoder(*, pretrained=False, hidden=7, pairs=False, generates=True, gaps="kept", **how):
    """With `pretrained`, half of the words have a vector that training never touches."""
    torch.manual_seed(0)
    known = [f"w{k}" for k in range(0, 60, 2)]
    vectors = WordVectors.from_floats(known, np.random.default_rng(0).normal(size=(30, 10))) if pretrained else None
    options = VectorOptions(vector_size=10, hidden=hidden, gaps=gaps, word_scores=not pairs)
    made = VectorEncoder(Vocabulary(WORDS), vectors, options, predicts=not pairs, generates=generates, **how)
    made._initialize_vectors()
    return made


def highlight_model(method="spectra", *, pretrained=False, punctuation="free", gaps="kept", **settings):
    how = {"gaps": gaps, "punctuation": punctuation, "generates": method != "full-text"}
    return HighlightModel(make_encoder(pretrained=pretrained, **how), method=method, **settings)


def pair_model(method="at-most-one", *, punctuation="free", **settings):
    return PairModel(make_encoder(pairs=True, hidden=6, punctuation=punctuation), method=method, **settings).double()


def text(length, seed=0, with_punctuation=True):
    """Return a text of `length` tokens, some of them punctuation if `with_punctuation` is True."""
    generator = random.Random(seed)
    tokens = [generator.choice(WORDS) for _ in range(length)]
    for k in range(2, length, 4) if with_punctuation else ():
        tokens[k] = ","
    joined = " ".join(tokens)
    return Example(joined, *split_words(joined, "spaces"))


def texts(lengths=(14, 6, 1, 9), seed=0, with_punctuation=True):
    return [text(length, 100 * seed + k, with_punctuation) for k, length in enumerate(lengths)]
