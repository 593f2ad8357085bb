"""Objectives: what a training minimises; `OBJECTIVES` has them by name. A new one is one new module in this folder."""

from rationalizer.discovery import import_modules
from rationalizer.nn.objectives.base import OBJECTIVES, Objective, ObjectiveLoss, TrainingStep, make_objective

import_modules(__name__)

__all__ = ["OBJECTIVES", "Objective", "ObjectiveLoss", "TrainingStep", "make_objective"]
