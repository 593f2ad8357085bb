"""Engines execute the runs of a comparison: in this process, in subprocesses, on Ray, on Slurm."""

from rationalizer.compare.engines.local import Engine, InProcessEngine, LocalEngine
from rationalizer.compare.engines.ray_engine import RayEngine
from rationalizer.compare.engines.slurm_engine import SlurmEngine

__all__ = ["Engine", "InProcessEngine", "LocalEngine", "RayEngine", "SlurmEngine"]
