"""Write the episodes of an environment to a file, in Isaac Lab's words."""

from typing import Any

from torch import Tensor

from legged_envs.configuration import configclass
from legged_envs.datasets.episodes import HDF5DatasetFileHandler, PresentEpisodes
from legged_envs.managers.manager import Manager

STATE = {"root_pose": "root_pose_w", "root_velocity": "root_vel_w"}
STATE |= {"joint_position": "joint_pos", "joint_velocity": "joint_vel"}
"""The initial state of a robot: x, y, z and (w, x, y, z), velocity in the world, rad and rad/s → names of the data."""
SERIES = {
    "rewards": "reward",
    "terminated": "terminated",
    "truncated": "truncated",
    "costs": "costs",
}


@configclass
class ActionStateRecorderManagerCfg:
    """Where episodes go, each with its initial state, ``obs``, ``actions``, ``rewards``, ``costs``, ``terminated`` and
    ``truncated`` of each step, and ``final_obs``; whether a termination term ``success`` ended it is noted."""

    dataset_file_handler_class_type: Any = HDF5DatasetFileHandler
    dataset_export_dir_path: str = "datasets"
    dataset_filename: str = "dataset"
    longest_episode: int = 1000
    episodes_at_once: int = 100
    """Steps that are kept of an episode of a task without time limit, the last ones, and episodes written together."""


class RecorderManager(Manager):
    """Records every step, and exports the episodes that are over."""

    def __init__(self, cfg: Any, env: Any):
        super().__init__(env, {})
        self._core, self._at_once, make = (
            env.core,
            cfg.episodes_at_once,
            cfg.dataset_file_handler_class_type,
        )
        self._file, self._over = (
            make(cfg.dataset_export_dir_path, cfg.dataset_filename, env.core),
            list[Any](),
        )
        self.episodes = PresentEpisodes(
            env.num_envs, env.core.max_episode_length or cfg.longest_episode
        )

    def reset(self, env_ids: Tensor) -> None:
        self.episodes.begin(env_ids)
        for robot, each in self._env.scene.articulations.items():
            for name, own in STATE.items():
                value = getattr(each.data, own)[env_ids]
                self.episodes.add(f"initial_state/articulation/{robot}/{name}", value, env_ids)

    def end_step(self, outcome: Any) -> None:
        """Take in a step whose observation is still the last one."""
        self.episodes.add("obs", self._core.last_observation["policy"])
        self.episodes.add("actions", self._core.actions.current)
        for name, own in SERIES.items():
            self.episodes.add(name, getattr(outcome, own))
        self.episodes.end_step()

    def end_episodes(self, env_ids: Tensor, steps: Tensor) -> Tensor:
        self.episodes.add("final_obs", self._core.last_observation["policy"][env_ids], env_ids)
        ended = self._core.terminations
        for i in env_ids.tolist():
            reasons = dict(zip(ended.names, ended.reasons[i].tolist(), strict=True))
            self._over.append((self.episodes.take(i), reasons.get("success", False)))
        self.flush(self._at_once)
        return super().end_episodes(env_ids, steps)

    def flush(self, least: int = 1) -> None:
        """Write the episodes that are over, if there are at least so many."""
        if len(self._over) >= least:
            self._file.write(self._over)
            self._over = []
