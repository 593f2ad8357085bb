"""The readers, by name: from texts to words, and from words to states. A new encoder is one new module here."""

from rationalizer.nn.readers.base import Punctuation, Reader, Reading
from rationalizer.nn.readers.transformer import SubwordWords, TransformerReader
from rationalizer.nn.readers.word_vectors import VectorReader, VectorWords

READERS: dict[str, type[Reader]] = {VectorReader.name: VectorReader}


def reader_of(encoder: str) -> type[Reader]:
    """By its own name, or by that of an encoder on the Hub, or its folder."""
    return READERS.get(encoder, TransformerReader)


__all__ = [
    "READERS",
    "Punctuation",
    "Reader",
    "Reading",
    "SubwordWords",
    "TransformerReader",
    "VectorReader",
    "VectorWords",
    "reader_of",
]
