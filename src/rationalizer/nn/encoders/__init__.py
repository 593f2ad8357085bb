"""The encoders, by name: from texts to words, and from words to states. A new encoder is one new module here."""

from rationalizer.nn.encoders.base import Encoder, Punctuation, Reading
from rationalizer.nn.encoders.transformer import SubwordBatch, TransformerEncoder
from rationalizer.nn.encoders.vector_bilstm import VectorEncoder, VectorWordBatch

ENCODERS: dict[str, type[Encoder]] = {VectorEncoder.name: VectorEncoder}


def encoder_class(encoder: str) -> type[Encoder]:
    """By its own name, or by that of an encoder on the Hub, or its folder."""
    return ENCODERS.get(encoder, TransformerEncoder)


__all__ = [
    "ENCODERS",
    "Encoder",
    "Punctuation",
    "Reading",
    "SubwordBatch",
    "TransformerEncoder",
    "VectorEncoder",
    "VectorWordBatch",
    "encoder_class",
]
