"""Objectives: the losses that training minimises, by name in `OBJECTIVES`. To add one, add a module to this folder."""

from rationalizer.discovery import import_modules
from rationalizer.nn.objectives.base import OBJECTIVES, Objective, ObjectiveLoss, TrainingStep, make_objective

import_modules(__name__)

__all__ = ["OBJECTIVES", "Objective", "ObjectiveLoss", "TrainingStep", "make_objective"]
