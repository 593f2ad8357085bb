"""The error of a model that was not trained, without importing scikit-learn."""

from __future__ import annotations

import sys


class NotFittedError(ValueError, AttributeError):
    """The model was not trained: call `fit`, or load one. scikit-learn's class of this name if it is in use."""


def not_fitted(message: str) -> Exception:
    """Return scikit-learn's `NotFittedError` if the program has imported scikit-learn, else the class above.

    A program that catches scikit-learn's error has imported it. Both classes are ValueError and AttributeError.
    """
    theirs = sys.modules.get("sklearn.exceptions")
    kind = NotFittedError if theirs is None else theirs.NotFittedError
    error: Exception = kind(message)
    return error
