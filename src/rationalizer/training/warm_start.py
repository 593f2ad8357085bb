"""Go on from a trained model: with its weights, words and classes, and other texts or settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rationalizer.data import Corpus
from rationalizer.models.description import Description
from rationalizer.models.json_schema import find_tensor_mismatch
from rationalizer.models.trained_model import TrainedModel
from rationalizer.nn import Encoder, Model, encoder_class

# Settings that determine the network, or how texts become words.
FIXED = ("method", "pairs", "faithful", "encoder", "punctuation", "sentences", "pooling")
# Weights that only some settings need: the threshold of pairs with annotations, the multiplier of an average budget.
OPTIONAL = ("threshold", "method.multiplier")


def continued_description(start: TrainedModel, description: Description, corpus: Corpus) -> Description:
    """The description of the model that a training from `start` gives; ValueError if it cannot go on from there."""
    for name in FIXED:
        own, other = getattr(start.config, name), getattr(description.config, name)
        if own != other:
            raise ValueError(
                f"the model to go on from has {name}={own}, not {other}; leave {name} out, or train from scratch"
            )
    if corpus.rule != start.encoder.rule:
        raise ValueError(
            f"the model to go on from splits texts by the rule {start.encoder.rule!r}, but these texts are split by "
            f"{corpus.rule!r}; load them with rule={start.encoder.rule!r}"
        )
    if description.labels != start.description.labels or description.rationales != start.description.rationales:
        own, other = (", ".join(classes) or "numbers" for classes in (start.classes, description.classes))
        raise ValueError(
            f"the model to go on from predicts {own}, but the labels are {other}; give texts with its labels, or train "
            "from scratch"
        )
    return replace(
        description,
        target=start.description.target,
        target_settings=start.description.target_settings,
        label_type=start.description.label_type,
    )


def copy_encoder(start: TrainedModel, description: Description) -> Encoder:
    """A new encoder with the words of `start`; its weights come with those of the model."""
    tables = {name: table.clone() for name, table in start.encoder.tables().items()}
    settings = start.encoder.description(), tables, description.build_encoder_options()
    return encoder_class(description.config.encoder).restore(*settings, **description.network())


def load_weights(model: Model, start: TrainedModel) -> None:
    """Copy the weights of `start` into a model of the same description."""
    weights = start.model.state_dict()
    expected: dict[str, Any] = {
        name: tensor for name, tensor in model.state_dict().items() if name in weights or name not in OPTIONAL
    }
    weights = {name: tensor for name, tensor in weights.items() if name in expected or name not in OPTIONAL}
    if problem := find_tensor_mismatch(weights, expected):
        raise ValueError(
            f"the settings do not fit the model to go on from: {problem}; leave out those of its network, or train "
            "from scratch"
        )
    model.load_state_dict(weights, strict=False)
