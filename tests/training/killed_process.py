"""Run the command line, and kill the second training process in step 5."""

import os
import signal

from rationalizer.cli import app
from rationalizer.training.loop import TrainingLoop

original = TrainingLoop.training_step


def training_step(self, batch):
    if self.fabric.global_rank == 1 and self.progress.step == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, batch)


TrainingLoop.training_step = training_step
app()
