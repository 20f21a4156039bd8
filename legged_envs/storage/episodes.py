"""Whole episodes of many environments: kept while they last, and written to files."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

Episode = dict[str, np.ndarray]
"""Name, in which ``/`` separates levels → values of each step, (steps, …), or of the episode, (1, …)."""


class PresentEpisodes:
    """The steps of the present episodes of ``num_envs`` environments, of each the last ``longest`` ones, in one tensor
    for each name."""

    def __init__(self, num_envs: int, longest: int):
        self._num_envs, self._longest, self._now = num_envs, longest, 0
        self._first = torch.zeros(num_envs, dtype=torch.int64)
        self._steps: dict[str, Tensor] = {}
        self._once: dict[str, Tensor] = {}

    def add(self, name: str, value: Any, env_ids: Tensor | None = None) -> None:
        """Take in a tensor, or a dict of such: of the present step, (num_envs, …), or of whole episodes, (n, …)."""
        if isinstance(value, dict):
            for key, part in value.items():
                self.add(f"{name}/{key}", part, env_ids)
        elif env_ids is not None:
            self._once.setdefault(name, value.new_zeros(self._num_envs, *value.shape[1:]))[env_ids] = value
        else:
            if name not in self._steps:
                self._steps[name] = value.new_zeros(self._longest, *value.shape)
            self._steps[name][self._now % self._longest] = value

    def end_step(self) -> None:
        self._now += 1

    def begin(self, env_ids: Tensor) -> None:
        self._first[env_ids.cpu()] = self._now

    def take(self, env_id: int) -> Episode:
        """A copy of the episode of one environment."""
        steps = torch.arange(max(int(self._first[env_id]), self._now - self._longest), self._now) % self._longest
        episode = {name: values[steps, env_id].cpu().numpy() for name, values in self._steps.items()}
        return episode | {name: values[[env_id]].cpu().numpy() for name, values in self._once.items()}


class HDF5DatasetFileHandler:
    """Writes ``<folder>/<name>.hdf5`` as Isaac Lab and robomimic lay it out, ``data/demo_0/…``; FileExistsError if
    there is one."""

    module = "h5py"

    def __init__(self, folder: str, name: str, core: Any):
        self.path, self.name, self.core, self.written = Path(folder, f"{name}.hdf5"), name, core, 0
        try:
            self.library: Any = import_module(self.module)
        except ImportError as error:
            how = "pip install 'legged-envs[record]'"
            raise ImportError(f"{type(self).__name__} needs the package {self.module!r}: {how}") from error

    def write(self, episodes: list[tuple[Episode, bool]]) -> None:
        """Append episodes, name → (steps, …) or (1, …), and whether each succeeded."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.library.File(self.path, "a" if self.written else "x") as file:
            data = file.require_group("data")
            data.attrs["env_args"] = json.dumps({"env_name": getattr(self.core.spec, "id", ""), "type": 2})
            for episode, success in episodes:
                demo, steps = data.create_group(f"demo_{self.written}"), len(episode["terminated"])
                demo.attrs["num_samples"], demo.attrs["success"] = steps, success
                data.attrs["total"] = int(data.attrs.get("total", 0)) + steps
                for name, values in episode.items():
                    demo.create_dataset(name, data=values, compression="gzip", compression_opts=1)
                self.written += 1


class MinariDatasetHandler(HDF5DatasetFileHandler):
    """Makes the Minari dataset whose id is ``name``, such as ``"go2/walk-v0"``, where Minari keeps them."""

    module = "minari"
    dataset: Any = None

    def write(self, episodes: list[tuple[Episode, bool]]) -> None:
        buffers = []
        for e, success in episodes:
            infos = {"costs": e["costs"], "success": np.full(len(e["costs"]), success)}
            steps = {
                "observations": np.concatenate((e["obs"], e["final_obs"])),
                "actions": e["actions"],
                "infos": infos,
            }
            steps |= {"rewards": e["rewards"], "terminations": e["terminated"], "truncations": e["truncated"]}
            buffers.append(import_module("minari.data_collector").EpisodeBuffer(**steps))
        if self.dataset is None:
            space = self.core.single_observation_space
            spaces = {"observation_space": getattr(space, "spaces", {}).get("policy", space)}
            spaces["action_space"] = self.core.single_action_space
            self.dataset = self.library.create_dataset_from_buffers(self.name, buffers, **spaces)
        else:
            self.dataset.update_dataset_from_buffer(buffers)
