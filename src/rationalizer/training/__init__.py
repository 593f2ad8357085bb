"""Training: the loop, its checkpoints, and runs with their folders."""

from rationalizer.training.runs import Run, degeneration_findings, read_source, run

__all__ = ["Run", "degeneration_findings", "read_source", "run", "train"]


def __getattr__(name: str) -> object:
    # Lightning Fabric takes a second to import and only training needs it.
    if name == "train":
        from rationalizer.training.trainer import train

        return train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
