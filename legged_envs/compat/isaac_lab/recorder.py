"""Recording of episodes to a file, in Isaac Lab's words."""

from typing import Any

from torch import Tensor

from legged_envs.configuration import configclass
from legged_envs.datasets.episodes import (
    HDF5DatasetFileHandler,
    PresentEpisodes,
    RecordedEpisode,
)
from legged_envs.envs import Evaluation
from legged_envs.managers.manager import Manager


@configclass
class ActionStateRecorderManagerCfg:
    """Settings of the recorder.

    An episode has its initial state, ``obs``, ``actions``, ``rewards``, ``costs``, ``terminated``
    and ``truncated`` of each step, and ``final_obs``. A file notes for each episode if a
    termination term ``success`` ended it.
    """

    dataset_file_handler_class_type: Any = HDF5DatasetFileHandler
    """Class that writes the file."""
    dataset_export_dir_path: str = "datasets"
    """Folder of the file."""
    dataset_filename: str = "dataset"
    """Name of the file, without its ending."""
    longest_episode: int = 1000
    """Number of steps that are kept of an episode, the last ones, in a task without time limit."""
    episodes_at_once: int = 100
    """Number of episodes that are written together."""


class RecorderManager(Manager):
    """Records every step, and writes the episodes that are over.

    Args:
        cfg: An ``ActionStateRecorderManagerCfg``.
        env: The ``ManagerBasedEnv``.

    Raises:
        ValueError: If the observations of the group ``policy`` are no single vector.
    """

    def __init__(self, cfg: Any, env: Any):
        super().__init__(env, {})
        core = env.core
        if not isinstance(core.last_observation["policy"], Tensor):
            raise ValueError(
                "recorders need one vector of observations in the group 'policy': "
                "set concatenate_terms = True"
            )
        self._core = core
        self._scene = env.scene
        self._episodes_at_once = cfg.episodes_at_once
        make_file = cfg.dataset_file_handler_class_type
        self._file = make_file(cfg.dataset_export_dir_path, cfg.dataset_filename, core)
        self._ended: list[RecordedEpisode] = []
        longest = core.max_episode_length or cfg.longest_episode

        self.episodes = PresentEpisodes(env.num_envs, longest)
        """Steps of the present episodes."""

    def reset(self, env_ids: Tensor) -> None:
        """Record the initial states of the episodes of ``env_ids`` (n,)."""
        self.episodes.begin(env_ids)
        for name, robot in self._scene.articulations.items():
            # Isaac Lab's files have these names.
            initial_state = {
                "root_pose": robot.data.root_pose_w,
                "root_velocity": robot.data.root_vel_w,
                "joint_position": robot.data.joint_pos,
                "joint_velocity": robot.data.joint_vel,
            }
            for key, values in initial_state.items():
                path = f"initial_state/articulation/{name}/{key}"
                self.episodes.add(path, values[env_ids], env_ids)

    def end_step(self, outcome: Evaluation) -> None:
        """Record a step, before its observation replaces the one of the step before."""
        self.episodes.add("obs", self._core.last_observation["policy"])
        self.episodes.add("actions", self._core.actions.current)
        self.episodes.add("rewards", outcome.reward)
        self.episodes.add("terminated", outcome.terminated)
        # The managers always evaluate it.
        assert outcome.truncated is not None
        self.episodes.add("truncated", outcome.truncated)
        self.episodes.add("costs", outcome.costs)
        self.episodes.end_step()

    def end_episodes(self, env_ids: Tensor, steps: Tensor) -> Tensor:
        """Take the ended episodes, and write them if there are enough.

        Args:
            env_ids: Environments with an ended episode, shape (n,).
            steps: Control steps of the episodes, shape (n,).

        Returns:
            Nothing to log, shape (n, 0).
        """
        final_observation = self._core.last_observation["policy"][env_ids]
        self.episodes.add("final_obs", final_observation, env_ids)
        terminations = self._core.terminations
        for env_id in env_ids.tolist():
            succeeded = False
            if "success" in terminations.names:
                column = terminations.names.index("success")
                succeeded = bool(terminations.reasons[env_id, column])
            self._ended.append((self.episodes.take(env_id), succeeded))
        self.flush(self._episodes_at_once)
        return super().end_episodes(env_ids, steps)

    def flush(self, least: int = 1) -> None:
        """Write the ended episodes, if there are at least ``least``."""
        if len(self._ended) >= least:
            self._file.write(self._ended)
            self._ended = []
