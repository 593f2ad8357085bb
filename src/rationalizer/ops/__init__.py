"""Structured layers: tensors in, tensors out."""

from rationalizer.ops.budget import budget

__all__ = ["budget"]
