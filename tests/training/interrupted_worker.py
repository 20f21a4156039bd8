"""Program of each process of test_stop.py under ``torchrun``: ``python interrupted_worker.py FOLDER``."""

import os
import signal
import sys
import time
from pathlib import Path

import torch
from processes_worker import options
from rich.console import Console

from legged_envs.training import processes
from legged_envs.training.prepare import agreed, prepare
from legged_envs.training.trainer import Trainer

LAST = 2
"""Number of the update after which the training is interrupted."""

UPDATES = 4000
"""Number of updates of the training, which it would need minutes for."""


class InterruptedTrainer(Trainer):
    """A trainer in which all processes get the signals of one Ctrl-C."""

    def iterate(self):
        row = super().iterate()
        if self.iteration == LAST:
            send_signals()
        return row


def send_signals():
    """Send what a Ctrl-C sends: SIGINT to all by the terminal, again by torchrun, then SIGTERM."""
    os.kill(os.getpid(), signal.SIGINT)
    if processes.is_first():
        # torchrun forwards it to both processes.
        os.kill(os.getppid(), signal.SIGINT)
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


def make_trainer(kind, folder, **kwargs):
    return kind(agreed(prepare(options("ppo", folder, UPDATES, **kwargs))), Console(quiet=True))


def weights(trainer):
    """Return the weights after one more update."""
    trainer.set_schedule()
    trainer.iterate()
    return trainer.algorithm.get_policy().state_dict()


def main(folder):
    # What remains to do after the training is not to be interrupted.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with processes.joined():
        straight = make_trainer(Trainer, folder / "straight")
        for _ in range(LAST + 1):
            expected = weights(straight)
        run = folder / "run"
        is_interrupted = False
        try:
            make_trainer(InterruptedTrainer, run).run()
        except KeyboardInterrupt:
            is_interrupted = True
        resumed = make_trainer(Trainer, run, resume=run)
        results = {
            "is_interrupted": is_interrupted,
            "interrupted_at": LAST,
            "resumed_at": resumed.iteration,
            "weights": weights(resumed),
            "expected": expected,
        }
        torch.save(results, folder / f"{processes.rank()}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
