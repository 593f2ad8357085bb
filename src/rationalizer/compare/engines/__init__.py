"""Where the runs of a comparison are carried out: here, in processes side by side, on Ray, on Slurm."""

from rationalizer.compare.engines.local import Engine, Here, Local
from rationalizer.compare.engines.ray_engine import Ray
from rationalizer.compare.engines.slurm_engine import Slurm

__all__ = ["Engine", "Here", "Local", "Ray", "Slurm"]
