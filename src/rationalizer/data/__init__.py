"""Texts with labels and rationales, from wherever people have them: lists, files, datasets by name."""

from rationalizer.data.arrays import any_examples_from, are_pairs, corpus_from, examples_from, pair_examples_from
from rationalizer.data.bad_rows import BadRows
from rationalizer.data.catalogue import DATASETS
from rationalizer.data.columns import Columns
from rationalizer.data.corpus import Corpus, Task
from rationalizer.data.datasets import EMBEDDED, load, load_dataset
from rationalizer.data.dialect import Dialect
from rationalizer.data.files import Given, holds_pairs, iter_rows, read_corpus, read_examples
from rationalizer.data.generated_pairs import generated_pairs
from rationalizer.data.generated_reviews import generated_reviews
from rationalizer.data.generated_stays import generated_stays
from rationalizer.data.labels import Labels
from rationalizer.data.nli import with_hans
from rationalizer.data.source import Source, pick_split
from rationalizer.data.stored import StoredExamples
from rationalizer.data.streaming import stream_corpus
from rationalizer.text.errors import DataError

__all__ = [
    "DATASETS",
    "EMBEDDED",
    "BadRows",
    "Columns",
    "Corpus",
    "DataError",
    "Dialect",
    "Given",
    "Labels",
    "Source",
    "StoredExamples",
    "Task",
    "any_examples_from",
    "are_pairs",
    "corpus_from",
    "examples_from",
    "generated_pairs",
    "generated_reviews",
    "generated_stays",
    "holds_pairs",
    "iter_rows",
    "load",
    "load_dataset",
    "pair_examples_from",
    "pick_split",
    "read_corpus",
    "read_examples",
    "stream_corpus",
    "with_hans",
]
