"""How well a policy does on episodes that it was not trained on."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import torch

from legged_envs.envs import unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import EVALUATED, PolicyFunction, evaluation_cfg
from legged_envs.evaluation.metrics.mimic import MimicMetrics
from legged_envs.evaluation.metrics.task import TaskMetrics
from legged_envs.evaluation.metrics.terrain import TerrainMetrics
from legged_envs.evaluation.metrics.velocity import VelocityMetrics
from legged_envs.runs.progress import Show, show_nothing
from legged_envs.tasks import follows_velocity, is_mimic

EVALUATION_SEED = 90_001
SECONDS = 10.0
"""Seed of an evaluation, far from the small ones that trainings take, and length of its episodes, s."""


def metrics_of(cfg: TaskCfg) -> type[TaskMetrics]:
    """What measures policies on a task: :class:`MimicMetrics` if it imitates motions, else :class:`VelocityMetrics` or,
    on rough ground, :class:`TerrainMetrics` if it has a velocity command, else :class:`TaskMetrics`."""
    if follows_velocity(cfg) and not is_mimic(cfg):
        return VelocityMetrics if cfg.scene.terrain is None else TerrainMetrics
    return MimicMetrics if is_mimic(cfg) else TaskMetrics


class Evaluator:
    """Evaluates policies on the task ``cfg`` over ``episodes``, on a mimic task for each clip and without a reference.
    ``groups`` are what a policy takes; by default ``policy``, on a mimic task with the reference."""

    def __init__(
        self,
        task_id: str,
        cfg: TaskCfg,
        episodes: int = 256,
        sim: str = "mujoco",
        groups: Sequence[str] = (),
        device: str = "cpu",
    ):
        metrics = metrics_of(cfg)
        self._groups = tuple(groups) or metrics.GROUPS
        cfg, num_envs = metrics.task(evaluation_cfg(cfg), episodes)
        self._envs = gym.make_vec(
            task_id, num_envs=num_envs, cfg=cfg, sim=sim, device=device, **EVALUATED
        )
        self.core = unwrap(self._envs)
        self.metrics = metrics(self.core)

    def run(
        self,
        policy: PolicyFunction,
        still: bool = True,
        seed: int = EVALUATION_SEED,
        show: Show = show_nothing,
    ) -> Any:
        """Evaluate ``policy``, ``still`` for standing as well; gives an ``Evaluation`` or a ``MimicEvaluation``. What
        ``show`` raises ends it."""
        moving = self.rollout(policy, seed, show=show)
        standing = self.rollout(policy, seed, True, show) if still and self.metrics.STANDS else None
        return self.metrics.result(*moving, standing)

    def rollout(
        self, policy: PolicyFunction, seed: int, still: bool = False, show: Show = show_nothing
    ) -> tuple[dict[str, Any], torch.Tensor]:
        """Measures of each step, (steps, num_envs, …), and which episodes had not ended by then, (steps, num_envs)."""
        observation = self.metrics.start(self._envs, seed, still)
        upright = torch.ones(self.core.num_envs, dtype=torch.bool, device=self.core.device)
        seconds = getattr(self.metrics, "SECONDS", SECONDS)
        rows, alive, steps = [], [], round(seconds / self.core.step_dt)
        for step in range(steps):
            with torch.inference_mode():
                action = policy(*(observation[group] for group in self._groups))
            observation, reward, terminated, _, info = self._envs.step(action)
            upright = upright & ~terminated
            alive.append(upright)
            measures = self.metrics.measures({**info, "reward": reward})
            rows.append({name: value.clone() for name, value in measures.items()})
            show("standing" if still else "evaluating", (step + 1) / steps)
        return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}, torch.stack(
            alive
        )

    def close(self) -> None:
        """Close the environments; nothing can be evaluated afterwards."""
        self._envs.close()
