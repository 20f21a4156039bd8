"""Write the episodes of an environment to a file, in Isaac Lab's words: terms with hooks record what they choose."""

import enum
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from legged_envs.workflows.configclass import configclass

Recorded = tuple[str | None, Any]
"""A key, in which ``/`` separates levels, and a tensor or a dict of such, with a row for each environment in question;
None for nothing."""
OUTCOME = ("rewards", "terminated", "truncated", "costs")
"""What is recorded of every step beside the terms; of every episode there is ``final_obs``."""


class DatasetExportMode(enum.IntEnum):
    EXPORT_NONE = 0
    EXPORT_ALL = 1
    EXPORT_SUCCEEDED_FAILED_IN_SEPARATE_FILES = 2
    EXPORT_SUCCEEDED_ONLY = 3


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

    def write(self, episodes: list[tuple[dict[str, np.ndarray], bool]]) -> None:
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

    def write(self, episodes: list[tuple[dict[str, np.ndarray], bool]]) -> None:
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


class RecorderTerm:
    """A subclass writes the hooks that it needs."""

    def __init__(self, cfg: Any, env: Any):
        self.cfg, self._env = cfg, env

    def _nothing(self, *env_ids: Tensor) -> Recorded:
        return None, None

    record_pre_step: Any = _nothing
    record_post_step: Any = _nothing
    """``()``, before the physics of a step, whose action is known, and after it, before resets."""
    record_pre_reset: Any = _nothing
    record_post_reset: Any = _nothing
    """``(env_ids)``, when these episodes are over, and when new ones have begun: once an episode."""


class PreStepActionsRecorder(RecorderTerm):
    def record_pre_step(self) -> Recorded:
        return "actions", self._env.core.actions.current


class PreStepFlatPolicyObservationsRecorder(RecorderTerm):
    def record_pre_step(self) -> Recorded:
        return "obs", self._env.obs_buf["policy"]


class InitialStateRecorder(RecorderTerm):
    """Root pose, x, y, z and (w, x, y, z), and velocity in the world, joint positions and velocities."""

    NAMES: tuple[tuple[str, str], ...] = (("root_pose", "root_pose_w"), ("root_velocity", "root_vel_w"))
    NAMES += (("joint_position", "joint_pos"), ("joint_velocity", "joint_vel"))

    def record_post_reset(self, env_ids: Tensor) -> Recorded:
        robots = self._env.scene.articulations.items()
        parts = {r: {name: getattr(robot.data, own)[env_ids] for name, own in self.NAMES} for r, robot in robots}
        return "initial_state/articulation", parts


@configclass
class RecorderTermCfg:
    class_type: Any = RecorderTerm


@configclass
class RecorderManagerBaseCfg:
    """Where episodes go; a subclass has terms :class:`RecorderTermCfg` as fields."""

    dataset_file_handler_class_type: Any = HDF5DatasetFileHandler
    dataset_export_dir_path: str = "datasets"
    dataset_filename: str = "dataset"
    dataset_export_mode: DatasetExportMode = DatasetExportMode.EXPORT_ALL
    longest_episode: int = 1000
    episodes_at_once: int = 100
    """Steps that are kept of an episode of a task without time limit, the last ones, and episodes written together."""


@configclass
class ActionStateRecorderManagerCfg(RecorderManagerBaseCfg):
    record_initial_state: RecorderTermCfg = RecorderTermCfg(InitialStateRecorder)
    record_pre_step_actions: RecorderTermCfg = RecorderTermCfg(PreStepActionsRecorder)
    record_pre_step_flat_policy_observations: RecorderTermCfg = RecorderTermCfg(PreStepFlatPolicyObservationsRecorder)


class RecorderManager:
    """Keeps the steps of the present episodes of all environments in one tensor for each key, and exports those
    episodes that are over."""

    def __init__(self, cfg: Any, terms: dict[str, Any], env: Any):
        self._env, self._core, mode = env, env.core, cfg.dataset_export_mode
        self.terms = {name: term.class_type(term, env) for name, term in terms.items()}
        self._steps: dict[str, Tensor] = {}
        self._once: dict[str, Tensor] = {}
        self._room, self._at_once = env.core.max_episode_length or cfg.longest_episode, cfg.episodes_at_once
        self._now, self._first = 0, torch.zeros(env.core.num_envs, dtype=torch.int64)
        make, folder, name = cfg.dataset_file_handler_class_type, cfg.dataset_export_dir_path, cfg.dataset_filename
        files = {True: make(folder, name, env.core)} if mode else {}
        if mode == DatasetExportMode.EXPORT_ALL:
            files[False] = files[True]
        elif mode == DatasetExportMode.EXPORT_SUCCEEDED_FAILED_IN_SEPARATE_FILES:
            files[False] = make(folder, f"{name}_failed", env.core)
        self._files: dict[bool, tuple[Any, list[Any]]] = {success: (file, []) for success, file in files.items()}

    def record(self, hook: str, env_ids: Tensor | None = None) -> None:
        """Call a hook of all terms."""
        for term in self.terms.values():
            key, value = getattr(term, hook)(*(() if env_ids is None else (env_ids,)))
            if key is not None:
                self._add(key, value, env_ids)

    def _add(self, key: str, value: Any, env_ids: Tensor | None = None) -> None:
        if isinstance(value, dict):
            for name, part in value.items():
                self._add(f"{key}/{name}", part, env_ids)
        elif env_ids is not None:
            self._once.setdefault(key, value.new_zeros(self._core.num_envs, *value.shape[1:]))[env_ids] = value
        else:
            steps = self._steps.setdefault(key, value.new_zeros(0))
            if not len(steps):
                steps = self._steps[key] = value.new_zeros(self._room, *value.shape)
            steps[self._now % self._room] = value

    def end_step(self, cost: Tensor) -> None:
        """Record the outcome of a step."""
        ended = self._core.terminations
        for name, value in zip(
            OUTCOME, (self._core.rewards.total, ended.terminated, ended.time_outs, cost), strict=True
        ):
            self._add(name, value)
        self.record("record_post_step")
        self._now += 1

    def begin_episodes(self, env_ids: Tensor) -> None:
        self._first[env_ids.cpu()] = self._now
        self.record("record_post_reset", env_ids)

    def end_episodes(self, env_ids: Tensor) -> None:
        """Export the episodes of ``env_ids``, whose last observation is the environment's."""
        self.record("record_pre_reset", env_ids)
        self._add("final_obs", self._env.obs_buf["policy"][env_ids], env_ids)
        names, reasons = self._core.terminations.names, self._core.terminations.reasons
        succeeded = reasons[:, names.index("success")] if "success" in names else reasons.new_zeros(len(reasons))
        for i in env_ids.tolist():
            steps = torch.arange(max(int(self._first[i]), self._now - self._room), self._now) % self._room
            episode = {name: values[steps, i].cpu().numpy() for name, values in self._steps.items()}
            episode |= {name: values[i : i + 1].cpu().numpy() for name, values in self._once.items()}
            episode["truncated"][-1] |= not episode["terminated"][-1]
            success = bool(succeeded[i])
            if success in self._files:
                self._files[success][1].append((episode, success))
        self.flush(self._at_once)

    def flush(self, least: int = 1) -> None:
        """Write the episodes that are over, of each file with at least so many."""
        for file, episodes in self._files.values():
            if len(episodes) >= least:
                file.write(episodes)
                episodes.clear()
