"""MGR: several generators train one predictor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.objectives.base import ModelPart, TrainingStep, register
from rationalizer.nn.objectives.dr import equal_rates
from rationalizer.nn.objectives.full_text_loss import FullTextObjective
from rationalizer.nn.shared_parts import Parts, copy_parts, with_parts
from rationalizer.ranges import Range, Weight
from rationalizer.text import WordBatch

GENERATOR = ("encoder.generator", "method")  # the submodules of which each generator has its own


@register("mgr")
class MultipleGenerators(FullTextObjective):
    """The joint losses of several generators with one predictor, added up (MGR; Liu et al., 2023).

    The predictor sees the selections of all generators, and cannot adapt to the mistakes of one. Generator i has i
    times the usual learning rate, the predictor the usual one divided by the number of generators. The first generator
    is that of the model; the others are discarded after the training. By default the encoder's `predictor_rate` equals
    its `generator_rate`.

    Args:
        generator_count: number of generators.
        full_text_weight: weight of the predictor's loss on whole texts.
    """

    needs_selection = True
    shares_encoder = False

    def __init__(
        self, *, generator_count: Annotated[int, Range(2, 10)] = 3, full_text_weight: Weight = 0.0, **settings: Any
    ) -> None:
        super().__init__(full_text_weight=full_text_weight, **settings)
        self.generator_count = generator_count

    @classmethod
    def encoder_defaults(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        return super().encoder_defaults(options) | equal_rates(options)

    def prepare(self, model: Model, sample: Callable[[], tuple[WordBatch, ...]]) -> None:
        for _ in range(self.generator_count - 1):
            generator = copy_parts(model, GENERATOR)
            if model.encoder.loads_pretrained:
                redraw(generator.get_submodule("method"))
            else:
                redraw(generator)
            if model.method.initializes_from_texts:
                was_training = model.training
                with_parts(model.eval(), generator).initialize(*sample())
                model.train(was_training)
            self.generators.append(generator)

    def rate_factor(self, part: ModelPart, generator: int, selected: float) -> float:
        return {"generator": float(generator), "predictor": 1 / self.generator_count, "both": 1.0}[part]

    def extra_loss(self, model: Model, output: Output, step: TrainingStep) -> Tensor | float:
        loss = super().extra_loss(model, output, step)
        for generator in self.generators:
            assert isinstance(generator, Parts)
            other = with_parts(model, generator)
            other.method.progress = model.method.progress
            selected, task_loss = self.select(other, step)
            loss = loss + self.method_loss(other, selected, task_loss, step)
            loss = loss + self.annotation_loss(other, selected, step)
        return loss


@torch.no_grad()
def redraw(network: nn.Module) -> None:
    """Shuffle the entries of every weight matrix: another draw from the same distribution, whichever it was."""
    for parameter in network.parameters():
        if parameter.dim() > 1:
            order = torch.randperm(parameter.numel(), device=parameter.device)
            parameter.copy_(parameter.flatten()[order].view_as(parameter))
