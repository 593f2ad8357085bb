"""Saved models with random weights: what is exported does not depend on a training."""

from collections import Counter
from pathlib import Path

import torch

from rationalizer.models import TrainedModel, configure
from rationalizer.models.description import Description
from rationalizer.nn import encoder_class
from rationalizer.text import split_words

TEXTS = (
    "The room was spotless, but the staff was rude. We would not stay here again!",
    "Good film.",
    "not a very good film; the plot (what plot?) makes no sense, yet I enjoyed every minute of it.",
    "great great great",
    "bad 😀 xqzzv it's",
    "Two children play in the snow. A man plays a guitar on the street, and a woman sings for people outside.",
)


def save_model(folder: Path, method="spectra", *, classes=("no", "yes"), target=None, calibration=None, **settings):
    """Save an untrained model; return its folder."""
    chosen = {"transition": 0.1} if method == "spectra" else {}  # a training would choose it by the texts
    config = configure(method, {"seed": 1, **chosen, **settings})
    torch.manual_seed(1)
    words = Counter(word for text in TEXTS for word in split_words(text)[0])
    description = Description(config, "regression" if target else "classification", tuple(classes), target or {})
    kind = encoder_class(config.encoder)
    how = {"rule": "words", "punctuation": config.punctuation, "sentences": config.sentences}
    encoder = kind.prepare(config.encoder, words, description.build_encoder_options(), **how, **description.network())
    model = description.build(encoder)
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # so that words and labels differ clearly
            if "LayerNorm" not in name and "embeddings" not in name:
                parameter.mul_(3)
        if getattr(model, "threshold", None) is not None:
            model.threshold += 0.5
    history = {
        "score": "mse" if target else "macro_f1",
        "best": None,
        "best_epoch": None,
        "steps": 0,
        "seconds_per_epoch": 0.0,
        "epochs": [],
        "data": "none",
        "versions": {},
        **({} if calibration is None else {"calibration": calibration}),
    }
    TrainedModel(description, model.eval(), history).save(folder)
    return folder
