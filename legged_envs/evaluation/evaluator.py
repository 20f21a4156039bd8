"""Evaluation of a policy on episodes with a random seed that trainings do not use."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import torch
from gymnasium.vector import VectorEnv

from legged_envs.envs import unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import (
    EVALUATION_ENV_OPTIONS,
    PolicyFunction,
    evaluation_cfg,
)
from legged_envs.evaluation.harsh import check_can_be_harsh, harsh_cfg
from legged_envs.evaluation.metrics.gaits import GaitMetrics
from legged_envs.evaluation.metrics.harsh import HarshMetrics
from legged_envs.evaluation.metrics.mimic import MimicMetrics
from legged_envs.evaluation.metrics.task import Measures, Rollout, TaskMetrics
from legged_envs.evaluation.metrics.terrain import TerrainMetrics
from legged_envs.evaluation.metrics.velocity import VelocityMetrics
from legged_envs.policy.memory import clear_memory
from legged_envs.runs.progress import Show, show_nothing
from legged_envs.tasks import make_training_defaults
from legged_envs.tasks.kind import kind_of

EVALUATION_SEED = 90_001
"""Default random seed of an evaluation, far from the small seeds that trainings usually have."""


def metrics_of(cfg: TaskCfg) -> type[TaskMetrics]:
    """Return the metrics class for the kind of a task: mimic, rough ground, gaits, velocity or
    other."""
    kind = kind_of(cfg)
    if kind.imitates_motions:
        return MimicMetrics
    if not kind.follows_velocity:
        return TaskMetrics
    if kind.has_terrain:
        return TerrainMetrics
    if kind.has_gait_command:
        return GaitMetrics
    return VelocityMetrics


class Evaluator:
    """Evaluates policies on a task, one episode per environment.

    Environments are made once and reused for each policy.

    Args:
        task_id: Registered id of the task.
        cfg: Configuration of the task, as in training.
        episodes: Number of episodes. On a mimic task: number for each clip, and number without a
            reference.
        sim: Name of the physics engine.
        groups: Names of the observation groups that are the arguments of a policy, in order. Empty:
            the usual groups of the kind of task.
        device: Torch device of the environments.
        harsh: True: harsh conditions (:mod:`legged_envs.evaluation.harsh`).
        wrap: Function that adds wrappers, for a policy that observes more than the task shows.
            None: no wrappers.

    Raises:
        ValueError: With ``harsh``, if the task has other commands than velocity commands.
    """

    def __init__(
        self,
        task_id: str,
        cfg: TaskCfg,
        episodes: int = 256,
        sim: str = "mujoco",
        groups: Sequence[str] = (),
        device: str = "cpu",
        harsh: bool = False,
        wrap: Callable[[VectorEnv], VectorEnv] | None = None,
    ):
        trained = cfg
        metrics = metrics_of(cfg)
        self._groups = tuple(groups) or metrics.GROUPS
        # The physics are the task's, also for a policy that was trained on coarser physics.
        cfg, num_envs = metrics.task(evaluation_cfg(cfg), episodes)
        if harsh:
            check_can_be_harsh(task_id, trained)
            cfg = harsh_cfg(cfg, trained)
            metrics = HarshMetrics
        envs = gym.make_vec(
            task_id,
            num_envs=num_envs,
            cfg=cfg,
            sim=sim,
            device=device,
            **EVALUATION_ENV_OPTIONS,
        )
        self._envs = wrap(envs) if wrap else envs

        self.core = unwrap(envs)
        """Environment of the evaluation, without wrappers."""
        self.metrics = metrics(self.core)
        """Object that measures each step and computes the result."""
        if not kind_of(trained).imitates_motions:
            self.metrics.cost_discount = make_training_defaults(task_id).final_gamma

    def run(
        self,
        policy: PolicyFunction,
        still: bool = True,
        seed: int = EVALUATION_SEED,
        show: Show = show_nothing,
        reset: Callable[[], None] | None = None,
    ) -> Any:
        """Evaluate a policy.

        Args:
            policy: Function from observations, one argument per group, to actions.
            still: True: make a second rollout under the zero command. It only applies to velocity
                tasks on flat ground.
            seed: Random seed of initial states and commands.
            show: Reports the progress. An error that it raises aborts the evaluation.
            reset: Called before each rollout, to clear the memory of a policy. None: the method
                ``reset`` of the policy, if it has one.

        Returns:
            A `VelocityEvaluation`, `TerrainEvaluation`, `GaitEvaluation`, `MimicEvaluation` or
            `TaskEvaluation`, depending on the kind of task; a `HarshEvaluation` under harsh
            conditions.
        """
        if reset is None:
            reset = partial(clear_memory, policy, None)
        reset()
        moving = self.rollout(policy, seed, show=show)
        standing = None
        if still and self.metrics.EVALUATES_STANDING:
            reset()
            standing = self.rollout(policy, seed, still=True, show=show)
        return self.metrics.result(moving.measures, moving.alive, standing)

    def rollout(
        self, policy: PolicyFunction, seed: int, still: bool = False, show: Show = show_nothing
    ) -> Rollout:
        """Run a policy for one episode in each environment, and measure every step.

        All rollouts have the same number of steps, `episode_seconds` of the metrics. Robots with a
        terminated episode are simulated further, but marked as no longer alive.

        Args:
            policy: Function from observations, one argument per group, to actions.
            seed: Random seed of initial states and commands.
            still: True: the velocity command is zero.
            show: Reports the progress. An error that it raises aborts the rollout.

        Returns:
            Measures of every step, and a mask of the steps before termination.
        """
        observation = self.metrics.start(self._envs, seed, still)
        upright = torch.ones(self.core.num_envs, dtype=torch.bool, device=self.core.device)
        rows = []
        alive = []
        steps = round(self.metrics.episode_seconds / self.core.step_dt)
        for step in range(steps):
            with torch.inference_mode():
                action = policy(*(observation[group] for group in self._groups))
            observation, reward, terminated, _, info = self._envs.step(action)
            # Robots that fell stay in the simulation, but are not counted from then on.
            upright = upright & ~terminated
            alive.append(upright)
            # A wrapper that shapes rewards keeps those of the task.
            earned = info.get("original_reward", reward)
            rows.append(self._copied_measures({**info, "reward": earned}))
            show("standing" if still else "evaluating", (step + 1) / steps)
        measures = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
        return Rollout(measures, torch.stack(alive))

    def _copied_measures(self, info: Mapping[str, Any]) -> Measures:
        # Environments reuse the memory of some of their tensors at the next step.
        measures = {"reward": info["reward"], **self.metrics.measures(info)}
        return {name: value.clone() for name, value in measures.items()}

    def close(self) -> None:
        """Close the environments. The evaluator cannot be used afterwards."""
        self._envs.close()
