"""The weight of each class in the loss: the setting `class_weight`, and the numbers it stands for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rationalizer.data.labels import Labels, plain
from rationalizer.text.errors import DataError

# "auto" becomes "balanced" or None when a training starts. By class name; classes that are not named weigh 1.
ClassWeight = Literal["auto", "balanced"] | Mapping[str, float] | None
RARE = 0.5  # of an even share of the texts: a class with less is rare


def parse_class_weight(value: Any) -> ClassWeight:
    """Parse the setting: "auto", "balanced", None, weights by class, or such weights as a text: "spam=5,ham=1"."""
    text = value.strip() if isinstance(value, str) else None
    if value is None or (text is not None and text.lower() in ("none", "null", "")):
        return None
    if text == "auto":
        return "auto"
    if text == "balanced":
        return "balanced"
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif text is not None and "=" in text:
        pairs = [(name.strip(), weight) for name, _, weight in (part.rpartition("=") for part in text.split(","))]
    else:
        raise ValueError(
            f"class_weight must be 'auto', 'balanced', none, or a weight for each class, such as spam=5,ham=1 (in "
            f"Python {{'spam': 5, 'ham': 1}}), got {value!r}"
        )
    weights = {str(plain(name)): _parse_weight(name, weight) for name, weight in pairs}
    if len(weights) < max(1, len(pairs)):
        raise ValueError(f"class_weight names a class twice, or none, got {value!r}; name each class once")
    return weights


def _parse_weight(name: Any, value: Any) -> float:
    try:
        weight = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 < weight < math.inf:
        raise ValueError(
            f"class_weight must be a number above 0 for each class, got {value!r} for {name!r}; to ignore a class, "
            "leave its texts out"
        )
    return weight


def has_rare_class(counts: NDArray[Any]) -> bool:
    """Return whether a class that occurs has less than half of an even share of the texts."""
    counts = counts[counts > 0]
    return bool(len(counts)) and float(counts.min()) < RARE * float(counts.mean())


def compute_class_weights(
    setting: ClassWeight, classes: Sequence[str], counts: NDArray[Any], *, sampled: bool = False
) -> NDArray[np.float64] | None:
    """Return the factor of each class in a mean of losses; None if all factors are 1.

    The factors are scaled so that their mean over the texts is 1: only their ratios matter, and the loss keeps its
    relation to penalties. "balanced" is texts / (classes · texts of the class), as in scikit-learn.

    Args:
        setting: the setting `class_weight`.
        classes: the names of the classes.
        counts: the number of texts of each class.
        sampled: whether training draws every class equally often, so that the mean must count them equally.
    """
    is_balanced = setting == "balanced" or sampled
    if (setting is None and not sampled) or not counts.any():
        return None
    if is_balanced and not isinstance(setting, Mapping) and len(set(counts[counts > 0].tolist())) == 1:
        return None  # not 1 up to rounding: balanced classes change no bit of a training
    weights = 1 / np.maximum(counts, 1) if is_balanced else np.ones(len(classes))
    if isinstance(setting, Mapping):
        for name, weight in setting.items():
            weights[_find_class(name, classes)] *= weight
    return weights * (counts.sum() / (weights * counts).sum())


def _find_class(name: str, classes: Sequence[str]) -> int:
    try:
        return int(Labels("classification", tuple(classes)).encode_one(name))
    except DataError:
        raise ValueError(
            f"class_weight names the class {name!r}, but the classes are {', '.join(classes)}; correct the name"
        ) from None
