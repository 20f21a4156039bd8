"""The log of finished episodes."""

from collections.abc import Sequence

import torch


class EpisodeLog:
    """Collects values of finished episodes until a reset reports them.

    Args:
        names: Names of the values that a task logs for an episode.
        device: Device of the tensors.
    """

    def __init__(self, names: Sequence[str], device: torch.device):
        self.names = ("episodes", "episode_length_s", *names, "termination/bad_physics")
        """Names of the columns of :attr:`rows`."""
        # Counts of episodes are summed over the episodes, all other values are averaged.
        is_count = [name == "episodes" or name.startswith("termination/") for name in self.names]
        self._is_count = torch.tensor(is_count, device=device)

        self.rows = torch.zeros(0, len(self.names), dtype=torch.float32, device=device)
        """Values of the episodes that were not reported yet. Shape: (episodes, columns)."""

    def add(self, seconds: torch.Tensor, values: torch.Tensor, bad_physics: torch.Tensor) -> None:
        """Add finished episodes.

        Args:
            seconds: Length of each episode, s, shape (n,).
            values: Values that the task logs, shape (n, names).
            bad_physics: Episodes that bad physics ended, shape (n,), bool.
        """
        bad = bad_physics.float().unsqueeze(1)
        count = torch.ones_like(bad)
        rows = torch.cat((count, seconds.unsqueeze(1), values, bad), dim=1)
        self.rows = torch.cat((self.rows, rows))

    def take(self) -> dict[str, torch.Tensor]:
        """Return sums of counts and means of other values, by name, and forget the episodes.

        Returns:
            Scalars, shape () each; an empty dict if no episode was added.
        """
        rows = self.rows
        self.rows = rows[:0]  # keeps the number of columns and the device
        if not len(rows):
            return {}
        # In float32 the last digit of a column would depend on the number of episodes.
        sums = rows.double().sum(0)
        values = torch.where(self._is_count, sums, sums / len(rows)).float()
        return dict(zip(self.names, values, strict=True))
