"""Texts before any model: words and where they stand, budgets, word vectors."""

from rationalizer.text.budget import Budget
from rationalizer.text.cutting import Offsets, Rule, cut, is_punctuation
from rationalizer.text.errors import DataError
from rationalizer.text.example import AnyExample, Example, PairExample
from rationalizer.text.lookup import Lookup
from rationalizer.text.sentences import Sentences, sentence_numbers
from rationalizer.text.vectors import BUNDLED, WordVectors, load_vectors
from rationalizer.text.vocabulary import Vocabulary
from rationalizer.text.words import Words

__all__ = [
    "BUNDLED",
    "AnyExample",
    "Budget",
    "DataError",
    "Example",
    "Lookup",
    "Offsets",
    "PairExample",
    "Rule",
    "Sentences",
    "Vocabulary",
    "WordVectors",
    "Words",
    "cut",
    "is_punctuation",
    "load_vectors",
    "sentence_numbers",
]
