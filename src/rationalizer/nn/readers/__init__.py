"""The readers, by name: from texts to words, and from words to states. A new encoder is one new module here."""

from rationalizer.nn.readers.base import Punctuation, Reader, Reading
from rationalizer.nn.readers.word_vectors import VectorReader, VectorWords

READERS: dict[str, type[Reader]] = {reader.name: reader for reader in (VectorReader,)}

__all__ = ["READERS", "Punctuation", "Reader", "Reading", "VectorReader", "VectorWords"]
