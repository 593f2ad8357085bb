"""Texts before any model: words and their offsets, sentences, budgets, word vectors."""

from typing import TYPE_CHECKING

from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError
from rationalizer.text.example import AnyExample, Example, PairExample
from rationalizer.text.sentence_splitting import SentenceRule, sentence_numbers
from rationalizer.text.vector_lookup import VectorLookup
from rationalizer.text.vocabulary import Vocabulary
from rationalizer.text.word_splitting import Offsets, SplitRule, is_punctuation, split_words
from rationalizer.text.word_vectors import BUNDLED, WordVectors, load_vectors

if TYPE_CHECKING:
    from rationalizer.text.word_batch import WordBatch

__all__ = [
    "BUNDLED",
    "AnyExample",
    "Budget",
    "DataError",
    "Example",
    "Offsets",
    "PairExample",
    "SentenceRule",
    "SplitRule",
    "VectorLookup",
    "Vocabulary",
    "WordBatch",
    "WordVectors",
    "is_punctuation",
    "load_vectors",
    "sentence_numbers",
    "split_words",
]


def __getattr__(name: str) -> object:
    if name == "WordBatch":  # lazy: it needs PyTorch, which exported models do without
        from rationalizer.text.word_batch import WordBatch

        return WordBatch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
