"""Text classifiers that read only the words they show."""

from rationalizer import ops

__all__ = ["ops"]
__version__ = "0.1.0"
