"""The log of finished episodes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from legged_envs.envs.execution import export
from legged_envs.envs.task import Info


class EpisodeLog:
    """Collects values of finished episodes until a reset reports them.

    Args:
        names: Names of the values that a task logs for an episode.
        device: Device of the tensors.
        array: Kind of the arrays that are reported, ``"numpy"`` or ``"torch"``.
    """

    def __init__(self, names: Sequence[str], device: torch.device, array: str):
        self.names = ("episodes", "episode_length_s", *names, "termination/bad_physics")
        """Names of the columns of :attr:`rows`."""
        # Counts of episodes are summed over the episodes, all other values are averaged.
        is_count = [name == "episodes" or name.startswith("termination/") for name in self.names]
        self._is_count = torch.tensor(is_count, device=device)
        self._array = array

        self.rows = torch.zeros(0, len(self.names), dtype=torch.float32, device=device)
        """Values of the episodes that were not reported yet. Shape: (episodes, columns)."""

    def add(
        self,
        env_ids: torch.Tensor,
        seconds: torch.Tensor,
        values: torch.Tensor,
        bad_physics: torch.Tensor,
    ) -> None:
        """Add finished episodes.

        Args:
            env_ids: Environment of each episode, shape (n,).
            seconds: Length of each episode, s, shape (n,).
            values: Values that the task logs, shape (n, names).
            bad_physics: Episodes that bad physics ended, shape (n,), bool.
        """
        bad = bad_physics.float().unsqueeze(1)
        count = torch.ones_like(bad)
        rows = torch.cat((count, seconds.unsqueeze(1), values, bad), dim=1)
        self.rows = torch.cat((self.rows, rows))

    def take_rows(self) -> torch.Tensor:
        """Return :attr:`rows`, and forget the episodes."""
        rows = self.rows
        self.rows = rows[:0]  # keeps the number of columns and the device
        return rows

    def report(self, further: Info, env_ids: torch.Tensor) -> Info:
        """Return the log of the episodes as entries of ``info``, and forget the episodes.

        Args:
            further: Further entries of the log, from the task.
            env_ids: Environments that were reset, shape (n,).

        Returns:
            ``log`` with sums of counts and means of other values, scalars by name; an empty dict if
            there is nothing to report.
        """
        log = {name: export(value, self._array) for name, value in self._means().items()}
        for name, value in further.items():
            log[name] = export(value, self._array) if isinstance(value, torch.Tensor) else value
        return {"log": log} if log else {}

    def _means(self) -> dict[str, torch.Tensor]:
        rows = self.take_rows()
        if not len(rows):
            return {}
        # In float32 the last digit of a column would depend on the number of episodes.
        sums = rows.double().sum(0)
        values = torch.where(self._is_count, sums, sums / len(rows)).float()
        return dict(zip(self.names, values, strict=True))


class EpisodeRows(EpisodeLog):
    """Reports a row for each environment, in NumPy arrays.

    Args:
        names: Names of the values that a task logs for an episode.
        device: Device of the tensors.
        num_envs: Number of environments.
    """

    def __init__(self, names: Sequence[str], device: torch.device, num_envs: int):
        super().__init__(names, device, "numpy")
        self.num_envs = num_envs
        # The last column, so that a saved state shows to which environment an episode belongs.
        self.names = (*self.names, "env_id")
        self.rows = torch.zeros(0, len(self.names), dtype=torch.float32, device=device)

    def add(
        self,
        env_ids: torch.Tensor,
        seconds: torch.Tensor,
        values: torch.Tensor,
        bad_physics: torch.Tensor,
    ) -> None:
        earlier = self.take_rows()
        self.rows = earlier[:, :-1]
        super().add(env_ids, seconds, values, bad_physics)
        numbers = torch.cat((earlier[:, -1], env_ids.float()))
        self.rows = torch.cat((self.rows, numbers.unsqueeze(1)), dim=1)

    def report(self, further: Info, env_ids: torch.Tensor) -> Info:
        """Return the log of the episodes as entries of ``info``, and forget the episodes.

        An entry from the task without a row for each environment is repeated in the reported rows.

        Args:
            further: Further entries of the log, from the task.
            env_ids: Environments that were reset, shape (n,).

        Returns:
            ``log`` with arrays (num_envs, …) by name, and the mask ``_log`` (num_envs,) of the
            environments with a finished episode, or of all that were reset where there is no
            episode; an empty dict if there is nothing to report.
        """
        rows = self.take_rows().cpu().numpy()
        numbers = rows[:, -1].astype(np.int64)
        mask = np.zeros(self.num_envs, bool)
        log: Info = {}
        if len(rows):
            mask[numbers] = True
            values = np.zeros((len(self.names), self.num_envs), np.float32)
            values[:, numbers] = rows.T
            log.update(zip(self.names[:-1], values[:-1], strict=True))
        else:
            mask[env_ids.cpu().numpy()] = True
        log.update(_as_rows(further, mask))
        return {"log": log, "_log": mask} if log else {}


def _as_rows(entries: Mapping[str, Any], mask: np.ndarray) -> Info:
    """Return entries of a log as arrays with a row for each environment.

    Args:
        entries: Numbers, tensors, dicts of them or anything else, by name.
        mask: Environments with rows to fill, shape (num_envs,), bool.
    """
    filled: Info = {}
    for name, value in entries.items():
        if isinstance(value, Mapping):
            filled[name] = _as_rows(value, mask)
            continue
        array = _as_array(value)
        if array.shape[:1] == mask.shape:
            filled[name] = array
            continue
        filled[name] = np.zeros((*mask.shape, *array.shape), array.dtype)
        filled[name][mask] = array
    return filled


def _as_array(value: object) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy().copy()
    try:
        return np.array(value)
    except ValueError:  # lists of different lengths
        whole = np.empty((), object)
        whole[()] = value
        return whole


def make_log(
    arguments: Mapping[str, Any], names: Sequence[str], num_envs: int, device: torch.device
) -> EpisodeLog:
    """Return the log that the argument ``info`` of an environment asks for.

    Args:
        arguments: Keyword arguments of ``CoreVectorEnv``.
        names: Names of the values that a task logs for an episode.
        num_envs: Number of environments.
        device: Device of the tensors.
    """
    if arguments["info"] == "arrays":
        return EpisodeRows(names, device, num_envs)
    return EpisodeLog(names, device, arguments["array"])
