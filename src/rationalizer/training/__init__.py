"""Training: the loop, its checkpoints, and runs with their folders."""

from rationalizer.training.runs import Run, degeneration_findings, read_source, run

__all__ = ["Run", "degeneration_findings", "read_source", "run", "train"]


def __getattr__(name: str) -> object:
    # Lightning takes seconds to import and only training needs it.
    if name == "train":
        from rationalizer.training.loop import train

        return train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
