"""Policies that a running training writes, so that they can be watched before its end."""

import shutil
from typing import TYPE_CHECKING

from legged_envs.policy.policy import save_policy
from legged_envs.policy.snapshots import SNAPSHOT_FOLDER, snapshot_file
from legged_envs.training import processes
from legged_envs.training.results import describe_policy

if TYPE_CHECKING:
    from legged_envs.training.trainer import Trainer

SNAPSHOT_SECONDS = 30.0
"""Shortest training time between two of these policies, s."""
SNAPSHOT_GROWTH = 1.06
"""Smallest ratio of the training times of two of these policies. With it, a training of ten hours
writes about 85 of them, most at its start, where it learns most."""


class Snapshots:
    """Writes policies of a training into its run folder, at growing intervals.

    Args:
        trainer: The training.
    """

    def __init__(self, trainer: "Trainer"):
        self._trainer = trainer
        self._written_at = trainer.seconds
        is_new = trainer.iteration == 0
        if is_new and processes.is_first():
            # Those of an earlier run in the same folder have other updates.
            shutil.rmtree(trainer.run_dir / SNAPSHOT_FOLDER, ignore_errors=True)

    def write_if_due(self) -> None:
        """Write the present policy if enough time has passed since the last one.

        The last policy of a training is written if there are others.
        """
        trainer = self._trainer
        earliest = max(self._written_at + SNAPSHOT_SECONDS, self._written_at * SNAPSHOT_GROWTH)
        has_others = (trainer.run_dir / SNAPSHOT_FOLDER).is_dir()
        is_last = trainer.progress >= 1.0 and has_others
        if trainer.seconds >= earliest or is_last:
            self.write()

    def write(self) -> None:
        """Write the present policy. Of several processes, only the first one writes."""
        trainer = self._trainer
        self._written_at = trainer.seconds
        if processes.is_first():
            path = snapshot_file(trainer.run_dir, trainer.iteration)
            path.parent.mkdir(parents=True, exist_ok=True)
            network, entries = describe_policy(
                trainer.prepared, trainer.algorithm, trainer.core, trainer.groups
            )
            save_policy(path, network, entries)
