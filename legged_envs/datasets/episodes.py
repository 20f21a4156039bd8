"""Recording of whole episodes of many environments, and writers of HDF5 and Minari files."""

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

import numpy as np
import torch
from torch import Tensor

from legged_envs.system_checks import check_installed

if TYPE_CHECKING:
    from legged_envs.envs import CoreVectorEnv

Episode = dict[str, np.ndarray]
"""One recorded episode: name → values of each step, (steps, …), or of the whole episode, (1, …).

A ``/`` in a name separates levels, as in ``obs/policy``.
"""
RecordedEpisode = tuple[Episode, bool | None]
"""An episode, and True if it succeeded, False if it failed, None if that is not known."""

MINARI_SERIES = {
    "actions": "actions",
    "rewards": "rewards",
    "terminations": "terminated",
    "truncations": "truncated",
}
"""Minari's names of the series of an episode, mapped to the names in an :data:`Episode`."""
INFOS = ("cost", "costs")
"""Names of the series of an episode that are written to Minari's ``infos``."""


class PresentEpisodes:
    """Recorder of the unfinished episodes of all environments, in one tensor for each name.

    Args:
        num_envs: Number of environments.
        longest: Largest number of steps to keep of an episode. Earlier steps are dropped.
    """

    def __init__(self, num_envs: int, longest: int):
        self._num_envs = num_envs
        self._longest = longest
        self._now = 0
        self._first = torch.zeros(num_envs, dtype=torch.int64)
        self._of_steps: dict[str, Tensor] = {}  # rings: (longest, num_envs, …)
        self._of_episodes: dict[str, Tensor] = {}  # (num_envs, …)

    def add(self, name: str, value: Tensor, env_ids: Tensor | None = None) -> None:
        """Record values of the present step, or values of whole episodes.

        Args:
            name: Name of the values in an :data:`Episode`.
            value: Values of the present step, (num_envs, …), or one for each episode, (n, …).
            env_ids: Environments of the episodes, (n,). None: ``value`` is of the present step.
        """
        if env_ids is not None:
            if name not in self._of_episodes:
                self._of_episodes[name] = value.new_zeros(self._num_envs, *value.shape[1:])
            self._of_episodes[name][env_ids] = value
            return
        if name not in self._of_steps:
            self._of_steps[name] = value.new_zeros(self._longest, *value.shape)
        self._of_steps[name][self._now % self._longest] = value

    def end_step(self) -> None:
        """End the present step. Values that are added later are of the next step."""
        self._now += 1

    def begin(self, env_ids: Tensor) -> None:
        """Start new episodes of ``env_ids`` (n,): the present step is their first step."""
        self._first[env_ids.cpu()] = self._now

    def take(self, env_id: int) -> Episode:
        """Return a copy of the recorded episode of one environment, which has ended.

        Its last step is marked as truncated if it is not marked as terminated.

        Args:
            env_id: Index of the environment.

        Returns:
            The values of its steps by name. Shapes: (steps, …).
        """
        begin = max(int(self._first[env_id]), self._now - self._longest)
        steps = torch.arange(begin, self._now) % self._longest
        episode: Episode = {}
        for name, values in self._of_steps.items():
            episode[name] = values[steps, env_id].cpu().numpy()
        # An episode that is over without having terminated was cut off.
        episode["truncated"][-1] |= not episode["terminated"][-1]
        for name, values in self._of_episodes.items():
            episode[name] = values[[env_id]].cpu().numpy()
        return episode


class HDF5DatasetFileHandler:
    """Writes ``<folder>/<name>.hdf5`` in the layout of Isaac Lab and robomimic, ``data/demo_0/…``.

    Args:
        folder: Folder of the file.
        name: Name of the file, without its ending.
        core: Environment without its wrappers.

    Raises:
        FileExistsError: From :meth:`write`, if there is a file of this name.
    """

    module = "h5py"
    """Library that writes the files."""

    def __init__(self, folder: str, name: str, core: "CoreVectorEnv"):
        self.path = Path(folder, f"{name}.hdf5")
        """The file."""
        self.name = name
        """Name of the data set."""
        self.core = core
        """Environment without its wrappers."""
        self.written = 0
        """Number of episodes in the file."""
        check_installed(self.module, extra="record")
        self.library: Any = import_module(self.module)
        """The imported library."""

    def write(self, episodes: list[RecordedEpisode]) -> None:
        """Append episodes.

        Args:
            episodes: Each episode, and whether it succeeded; None if that is not known.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # "x" refuses a file that another run has written.
        mode = "a" if self.written else "x"
        env_name = getattr(self.core.spec, "id", "")
        with self.library.File(self.path, mode) as file:
            data = file.require_group("data")
            data.attrs["env_args"] = json.dumps({"env_name": env_name, "type": 2})
            for episode, success in episodes:
                num_steps = len(episode["terminated"])
                demo = data.create_group(f"demo_{self.written}")
                demo.attrs["num_samples"] = num_steps
                demo.attrs["success"] = bool(success)
                data.attrs["total"] = int(data.attrs.get("total", 0)) + num_steps
                for name, values in episode.items():
                    demo.create_dataset(name, data=values, compression="gzip", compression_opts=1)
                self.written += 1


class MinariDatasetHandler(HDF5DatasetFileHandler):
    """Makes a Minari dataset in Minari's own folder.

    Observations come from ``obs``, or are a dict of ``obs/policy`` and so on. ``infos``
    have a row for each step.

    Args:
        folder: Not read.
        name: Id of the dataset, such as ``"go2/walk-v0"``.
        core: Environment without its wrappers.
        metadata: Metadata of the dataset, in addition to ``cost_names`` and ``cost_limits``.
        about: Further arguments of ``minari.create_dataset_from_buffers``.
    """

    module = "minari"
    """Library that writes the datasets."""

    dataset: Any = None
    """The dataset, once episodes were written."""

    def __init__(
        self,
        folder: str,
        name: str,
        core: "CoreVectorEnv",
        metadata: dict[str, object] | None = None,
        **about: object,
    ):
        super().__init__(folder, name, core)
        space = core.single_observation_space
        groups = getattr(space, "spaces", {})

        self.about = {
            "observation_space": groups.get("policy", space),
            "action_space": core.single_action_space,
            **about,
        }
        """Arguments of ``minari.create_dataset_from_buffers``."""
        self.metadata = {
            "cost_names": list(core.cost_names),
            "cost_limits": list(core.cost_limits),
            **(metadata or {}),
        }
        """Metadata of the dataset."""

    def write(self, episodes: list[RecordedEpisode]) -> None:
        """Append episodes.

        Args:
            episodes: Each episode, and whether it succeeded; None if that is not known.
        """
        buffers = [_episode_buffer(episode, success) for episode, success in episodes]
        if self.dataset is not None:
            self.dataset.update_dataset_from_buffer(buffers)
            return
        with catch_warnings():
            # Minari recommends to give the author's address and the like.
            filterwarnings("ignore", module="minari")
            self.dataset = self.library.create_dataset_from_buffers(
                self.name, buffers, **self.about
            )
        self.dataset.storage.update_metadata(self.metadata)


def _episode_buffer(episode: Episode, success: bool | None) -> Any:
    """Return an episode as Minari's ``EpisodeBuffer``."""
    groups: dict[str, list[np.ndarray]] = {}
    for name, values in episode.items():
        if name.split("/")[0] == "obs":
            # Minari wants the last observation too: one more than there are steps.
            group = name.removeprefix("obs").removeprefix("/")
            groups[group] = [*values, *episode[f"final_{name}"]]
    infos: dict[str, object] = {name: episode[name] for name in INFOS if name in episode}
    if success is not None:
        infos["success"] = [success] * len(episode["terminated"])
    series = {}
    for minari_name, name in MINARI_SERIES.items():
        series[minari_name] = episode[name]
    buffer_class = import_module("minari.data_collector").EpisodeBuffer
    # A single observation is the group with an empty name.
    return buffer_class(observations=groups.get("", groups), infos=infos, **series)


def dataset_folder(name: str) -> Path:
    """Return the folder in which Minari keeps a dataset.

    Args:
        name: Id of the dataset.

    Raises:
        ValueError: If Minari refuses the name.
    """
    check_installed("minari", "h5py", extra="record")
    try:
        import_module("minari.dataset.minari_dataset").parse_dataset_id(name)
    except (ValueError, TypeError) as error:  # a TypeError for a name without a version
        raise ValueError(
            f"Minari refuses the name {name!r}; it must be [NAMESPACE/]NAME-vN, of letters, "
            "digits, - and _, a NAMESPACE of at least two, such as go2/walk-v0"
        ) from error
    folder: Path = import_module("minari.storage").get_dataset_path(name)
    return folder
