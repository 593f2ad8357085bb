"""Integrated gradients (Sundararajan et al., 2017), computed with Captum."""

from __future__ import annotations

import torch
from torch import Tensor

from rationalizer.inference.attributions.base import ATTRIBUTIONS
from rationalizer.nn import HighlightModel
from rationalizer.text import WordBatch

ROWS = 128  # (text, step) pairs per call of the predictor
STEPS = 32  # steps of the integral


@ATTRIBUTIONS.register("integrated-gradients")
def integrated_gradients(model: HighlightModel, words: WordBatch) -> Tensor:
    """(batch, n): ∫ ∂p(ŷ | α · x) / ∂z dα over α from 0 to 1, where ŷ is the class predicted from the whole text x.

    z multiplies what the predictor reads of each word. For any encoder, this equals the integrated gradients of the
    words' vectors with baseline 0, summed over each vector.
    """
    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        raise ImportError('integrated gradients need captum: pip install ".[captum]" in a checkout') from None

    def probabilities(z: Tensor, rows: Tensor) -> Tensor:
        return model.head.predict(model.predict_from(z, words.take(rows)))

    whole, rows = words.mask.to(model.dtype), torch.arange(len(words), device=words.mask.device)
    with torch.no_grad():
        predicted = probabilities(whole, rows).argmax(-1)
    # cuDNN computes gradients of LSTMs in training mode only.
    with torch.backends.cudnn.flags(enabled=False):
        gradients: Tensor = IntegratedGradients(probabilities).attribute(
            whole, target=predicted, additional_forward_args=(rows,), n_steps=STEPS, internal_batch_size=ROWS
        )
    return gradients.detach()
