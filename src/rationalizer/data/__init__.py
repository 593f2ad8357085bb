"""Texts with labels and annotations, from lists, tables, files, and datasets by name."""

from rationalizer.data.annotation_file import AnnotationFile, Annotations
from rationalizer.data.bad_rows import BadRows
from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Corpus, Task
from rationalizer.data.corpus_files import InputRow, holds_pairs, iter_rows, read_corpus, read_examples
from rationalizer.data.csv_dialect import Dialect
from rationalizer.data.data_source import DataSource, pick_split
from rationalizer.data.dataset_registry import DATASETS
from rationalizer.data.disk_examples import DiskExamples
from rationalizer.data.examples import are_pairs, make_corpus, make_examples
from rationalizer.data.generated_pairs import generated_pairs
from rationalizer.data.generated_reviews import generated_reviews
from rationalizer.data.generated_stays import generated_stays
from rationalizer.data.labels import Labels
from rationalizer.data.loading import GENERATED, load, load_dataset
from rationalizer.data.read_options import OnProgress, ReadOptions
from rationalizer.data.streaming import stream_corpus
from rationalizer.text.errors import DataError

__all__ = [
    "DATASETS",
    "GENERATED",
    "AnnotationFile",
    "Annotations",
    "BadRows",
    "Columns",
    "Corpus",
    "DataError",
    "DataSource",
    "Dialect",
    "DiskExamples",
    "InputRow",
    "Labels",
    "OnProgress",
    "ReadOptions",
    "Task",
    "are_pairs",
    "generated_pairs",
    "generated_reviews",
    "generated_stays",
    "holds_pairs",
    "iter_rows",
    "load",
    "load_dataset",
    "make_corpus",
    "make_examples",
    "pick_split",
    "read_corpus",
    "read_examples",
    "stream_corpus",
]
