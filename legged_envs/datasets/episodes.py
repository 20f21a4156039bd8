"""Whole episodes of many environments: kept while they last, and written to files."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any
from warnings import catch_warnings, filterwarnings

import torch
from torch import Tensor

from legged_envs.system_checks import check_installed

Episode = dict[str, Any]
"""Name, in which ``/`` separates levels → values of each step, (steps, …), or of the episode, (1, …)."""
STEPS = {
    "actions": "actions",
    "rewards": "rewards",
    "terminations": "terminated",
    "truncations": "truncated",
}
INFOS = ("cost", "costs")
"""What Minari calls series of an episode → what they are called here; and those that are among its infos."""


class PresentEpisodes:
    """The steps of the present episodes of ``num_envs`` environments, of each the last ``longest`` ones, in one tensor
    for each name."""

    def __init__(self, num_envs: int, longest: int):
        self._num_envs, self._longest, self._now = num_envs, longest, 0
        self._first = torch.zeros(num_envs, dtype=torch.int64)
        self._steps: dict[str, Tensor] = {}
        self._once: dict[str, Tensor] = {}

    def add(self, name: str, value: Tensor, env_ids: Tensor | None = None) -> None:
        """Take in a tensor of the present step, (num_envs, …), or of the whole episodes of ``env_ids``, (n, …)."""
        if env_ids is not None:
            self._once.setdefault(name, value.new_zeros(self._num_envs, *value.shape[1:]))[
                env_ids
            ] = value
            return
        if name not in self._steps:
            self._steps[name] = value.new_zeros(self._longest, *value.shape)
        self._steps[name][self._now % self._longest] = value

    def end_step(self) -> None:
        """End the present step: tensors that are added from now on are of the next one."""
        self._now += 1

    def begin(self, env_ids: Tensor) -> None:
        """Let the episodes of ``env_ids`` (n,) begin with the present step."""
        self._first[env_ids.cpu()] = self._now

    def take(self, env_id: int) -> Episode:
        """A copy of the episode of one environment, which is over: truncated if it has not terminated."""
        steps = (
            torch.arange(max(int(self._first[env_id]), self._now - self._longest), self._now)
            % self._longest
        )
        episode = {
            name: values[steps, env_id].cpu().numpy() for name, values in self._steps.items()
        }
        episode["truncated"][-1] |= not episode["terminated"][-1]
        return episode | {
            name: values[[env_id]].cpu().numpy() for name, values in self._once.items()
        }


class HDF5DatasetFileHandler:
    """Writes ``<folder>/<name>.hdf5`` as Isaac Lab and robomimic lay it out, ``data/demo_0/…``; FileExistsError if
    there is one."""

    module = "h5py"

    def __init__(self, folder: str, name: str, core: Any):
        self.path, self.name, self.core, self.written = Path(folder, f"{name}.hdf5"), name, core, 0
        check_installed(self.module, extra="record")
        self.library: Any = import_module(self.module)

    def write(self, episodes: list[tuple[Episode, bool | None]]) -> None:
        """Append episodes, name → (steps, …) or (1, …), and whether each succeeded; None if that is not known."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.library.File(self.path, "a" if self.written else "x") as file:
            data = file.require_group("data")
            data.attrs["env_args"] = json.dumps(
                {"env_name": getattr(self.core.spec, "id", ""), "type": 2}
            )
            for episode, success in episodes:
                demo, steps = data.create_group(f"demo_{self.written}"), len(episode["terminated"])
                demo.attrs["num_samples"], demo.attrs["success"] = steps, bool(success)
                data.attrs["total"] = int(data.attrs.get("total", 0)) + steps
                for name, values in episode.items():
                    demo.create_dataset(name, data=values, compression="gzip", compression_opts=1)
                self.written += 1


class MinariDatasetHandler(HDF5DatasetFileHandler):
    """Makes the Minari dataset whose id is ``name``, such as ``"go2/walk-v0"``, where Minari keeps them. Observations
    are those of ``obs``, or a dict of those of ``obs/policy`` and the like; ``infos`` have a row for each step.
    ``about`` are further arguments of ``minari.create_dataset_from_buffers``, ``metadata`` are kept beside
    ``cost_names`` and ``cost_limits``."""

    module = "minari"
    dataset: Any = None

    def __init__(
        self,
        folder: str,
        name: str,
        core: Any,
        metadata: dict[str, Any] | None = None,
        **about: Any,
    ):
        super().__init__(folder, name, core)
        space = getattr(core.single_observation_space, "spaces", {}).get(
            "policy", core.single_observation_space
        )
        self.about = {"observation_space": space, "action_space": core.single_action_space, **about}
        self.metadata = {
            "cost_names": [*core.cost_names],
            "cost_limits": [*core.cost_limits],
            **(metadata or {}),
        }

    def write(self, episodes: list[tuple[Episode, bool | None]]) -> None:
        buffer, buffers = import_module("minari.data_collector").EpisodeBuffer, []
        for episode, success in episodes:
            names = [name for name in episode if name.split("/")[0] == "obs"]
            groups = {name[4:]: [*episode[name], *episode[f"final_{name}"]] for name in names}
            infos = {name: episode[name] for name in INFOS if name in episode}
            infos |= {} if success is None else {"success": [success] * len(episode["terminated"])}
            steps = {ours: episode[own] for ours, own in STEPS.items()}
            buffers.append(buffer(observations=groups.get("", groups), infos=infos, **steps))
        if self.dataset is not None:
            self.dataset.update_dataset_from_buffer(buffers)
            return
        with catch_warnings():
            filterwarnings(
                "ignore", module="minari"
            )  # it recommends to tell the author's address and the like
            self.dataset = self.library.create_dataset_from_buffers(
                self.name, buffers, **self.about
            )
        self.dataset.storage.update_metadata(self.metadata)


def dataset_folder(name: str) -> Path:
    """Where Minari keeps a dataset of this name; ValueError if it refuses the name."""
    check_installed("minari", "h5py", extra="record")
    try:
        import_module("minari.dataset.minari_dataset").parse_dataset_id(name)
    except (ValueError, TypeError) as error:  # a TypeError without a version
        what = "[NAMESPACE/]NAME-vN, of letters, digits, - and _, a NAMESPACE of at least two"
        raise ValueError(
            f"Minari refuses the name {name!r}; it must be {what}, such as go2/walk-v0"
        ) from error
    folder: Path = import_module("minari.storage").get_dataset_path(name)
    return folder
