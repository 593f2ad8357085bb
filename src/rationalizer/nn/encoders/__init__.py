"""Encoders, by name in `ENCODERS`. A new encoder is one new module in this folder."""

from rationalizer.discovery import import_modules
from rationalizer.nn.encoders.base import ENCODERS, Encoder, Punctuation
from rationalizer.nn.encoders.transformer import TransformerEncoder
from rationalizer.nn.encoders.vector_bilstm import VectorEncoder

import_modules(__name__)


def encoder_class(encoder: str) -> type[Encoder]:
    """The class for a value of the setting `encoder`: an encoder's name, a transformer's on the Hub, or its folder."""
    return ENCODERS.get(encoder, TransformerEncoder)


__all__ = [
    "ENCODERS",
    "Encoder",
    "Punctuation",
    "TransformerEncoder",
    "VectorEncoder",
    "encoder_class",
]
