"""Write the episodes of an environment to a file, in Isaac Lab's words: terms with hooks record what they choose."""

import enum
from typing import Any

from torch import Tensor

from legged_envs.storage.episodes import HDF5DatasetFileHandler, PresentEpisodes
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
    """Records what the terms and :data:`OUTCOME` say of every step, and exports the episodes that are over."""

    def __init__(self, cfg: Any, terms: dict[str, Any], env: Any):
        self._env, self._core, mode = env, env.core, cfg.dataset_export_mode
        self.terms = {name: term.class_type(term, env) for name, term in terms.items()}
        longest = env.core.max_episode_length or cfg.longest_episode
        self.episodes, self._at_once = PresentEpisodes(env.core.num_envs, longest), cfg.episodes_at_once
        make, folder, name = cfg.dataset_file_handler_class_type, cfg.dataset_export_dir_path, cfg.dataset_filename
        files = {True: make(folder, name, env.core)} if mode else {}
        if mode == DatasetExportMode.EXPORT_ALL:
            files[False] = files[True]
        elif mode == DatasetExportMode.EXPORT_SUCCEEDED_FAILED_IN_SEPARATE_FILES:
            files[False] = make(folder, f"{name}_failed", env.core)
        self._files: dict[bool, tuple[Any, list[Any]]] = {success: (file, []) for success, file in files.items()}

    def record(self, hook: str, *env_ids: Tensor) -> None:
        """Call a hook of all terms."""
        for term in self.terms.values():
            key, value = getattr(term, hook)(*env_ids)
            if key is not None:
                self.episodes.add(key, value, *env_ids)

    def end_step(self, costs: Tensor) -> None:
        """Record the outcome of a step."""
        ended, reward = self._core.terminations, self._core.rewards.total
        for name, value in zip(OUTCOME, (reward, ended.terminated, ended.time_outs, costs), strict=True):
            self.episodes.add(name, value)
        self.record("record_post_step")
        self.episodes.end_step()

    def begin_episodes(self, env_ids: Tensor) -> None:
        self.episodes.begin(env_ids)
        self.record("record_post_reset", env_ids)

    def end_episodes(self, env_ids: Tensor) -> None:
        """Export the episodes of ``env_ids``, whose last observation is the environment's."""
        self.record("record_pre_reset", env_ids)
        self.episodes.add("final_obs", self._env.obs_buf["policy"][env_ids], env_ids)
        names, reasons = self._core.terminations.names, self._core.terminations.reasons
        for i in env_ids.tolist():
            episode, success = self.episodes.take(i), "success" in names and bool(reasons[i, names.index("success")])
            episode["truncated"][-1] |= not episode["terminated"][-1]
            if success in self._files:
                self._files[success][1].append((episode, success))
        self.flush(self._at_once)

    def flush(self, least: int = 1) -> None:
        """Write the episodes that are over, of each file with at least so many."""
        for file, episodes in self._files.values():
            if len(episodes) >= least:
                file.write(episodes)
                episodes.clear()
