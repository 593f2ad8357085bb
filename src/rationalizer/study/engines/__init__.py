"""Where the runs of a comparison are carried out: here, in processes side by side, on Ray, on Slurm."""

from rationalizer.study.engines.local import Engine, Here, Local
from rationalizer.study.engines.ray import Ray
from rationalizer.study.engines.slurm import Slurm

__all__ = ["Engine", "Here", "Local", "Ray", "Slurm"]
