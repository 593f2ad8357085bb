"""The history of a run for other programs: `history.csv`, and TensorBoard's files if TensorBoard is installed."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rationalizer.models.atomic_files import write_bytes
from rationalizer.models.trained_model import HISTORY_CSV, LOGS


class HistoryLog:
    """Writes the log files of one run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.writer: Any = None

    def write(self, history: Sequence[Mapping[str, float]], step: int) -> None:
        """Write the whole history to the CSV file, and its last row to TensorBoard."""
        columns = list(dict.fromkeys(name for row in history for name in row))
        text = io.StringIO()
        table = csv.DictWriter(text, columns)
        table.writeheader()
        table.writerows(history)
        write_bytes(self.directory / HISTORY_CSV, text.getvalue().encode())
        if self.writer is None and find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter  # imports slowly

            self.writer = SummaryWriter(str(self.directory / LOGS))  # a file with a new name for each process
        if self.writer is not None:
            for name, value in history[-1].items():
                self.writer.add_scalar(name, value, step)
            self.writer.flush()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
