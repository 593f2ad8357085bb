"""Texts with labels and rationales: examples, corpora, batches, vocabularies, embeddings, readers."""

from rationalizer.data.arrays import any_examples_from, are_pairs, corpus_from, examples_from, pair_examples_from
from rationalizer.data.batch import Batch, BucketSampler, PairBatch, collate, loader
from rationalizer.data.columns import Columns
from rationalizer.data.corpus import Corpus, Task
from rationalizer.data.datasets import DATASETS, EMBEDDED, load, load_dataset
from rationalizer.data.embeddings import Embeddings, load_embeddings
from rationalizer.data.errors import DataError
from rationalizer.data.example import AnyExample, Example, PairExample
from rationalizer.data.files import holds_pairs, iter_examples, read_corpus, read_examples
from rationalizer.data.labels import Labels
from rationalizer.data.nli import with_hans
from rationalizer.data.pairs import pairs
from rationalizer.data.reviews import reviews
from rationalizer.data.tokenize import tokenize
from rationalizer.data.vocabulary import Vocabulary

__all__ = [
    "DATASETS",
    "EMBEDDED",
    "AnyExample",
    "Batch",
    "BucketSampler",
    "Columns",
    "Corpus",
    "DataError",
    "Embeddings",
    "Example",
    "Labels",
    "PairBatch",
    "PairExample",
    "Task",
    "Vocabulary",
    "any_examples_from",
    "are_pairs",
    "collate",
    "corpus_from",
    "examples_from",
    "holds_pairs",
    "iter_examples",
    "load",
    "load_dataset",
    "load_embeddings",
    "loader",
    "pair_examples_from",
    "pairs",
    "read_corpus",
    "read_examples",
    "reviews",
    "tokenize",
    "with_hans",
]
