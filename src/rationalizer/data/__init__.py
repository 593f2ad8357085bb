"""Texts with labels and rationales: examples, corpora, batches, vocabularies, embeddings, readers."""

from rationalizer.data.batch import Batch, BucketSampler, collate, loader
from rationalizer.data.corpus import Corpus
from rationalizer.data.example import Example
from rationalizer.data.vocabulary import Vocabulary

__all__ = ["Batch", "BucketSampler", "Corpus", "Example", "Vocabulary", "collate", "loader"]
