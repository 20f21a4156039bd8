"""How well a policy does on episodes that it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import torch

from legged_envs.envs import unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.rl.metrics import EVALUATED, evaluation_cfg
from legged_envs.rl.mimic_metrics import MimicMetrics
from legged_envs.rl.velocity_metrics import VelocityMetrics
from legged_envs.tasks import is_mimic

EVALUATION_SEED = 90_001
"""Training takes small seeds; no stream of this one is ever trained on."""
SECONDS = 10.0
"""Length of an episode of an evaluation."""


def metrics_of(cfg: TaskCfg) -> type[MimicMetrics] | type[VelocityMetrics]:
    """What is measured on a task; :class:`~legged_envs.rl.velocity_metrics.VelocityMetrics` says how."""
    return MimicMetrics if is_mimic(cfg) else VelocityMetrics


class Evaluator:
    """Holds the evaluation environment of a task, to evaluate policies one by one.

    Args:
        task_id: Registered id.
        cfg: The task.
        episodes: How many; on a mimic task for each clip, and without a reference.
        sim: The physics engine.
        groups: The observation groups that a policy takes, one argument each; by default ``policy``, on a mimic task
            with ``reference`` and ``reference_mask``.
    """

    def __init__(
        self, task_id: str, cfg: TaskCfg, episodes: int = 256, sim: str = "mujoco", groups: Sequence[str] = ()
    ):
        metrics = metrics_of(cfg)
        self._groups = tuple(groups) or metrics.GROUPS
        cfg, num_envs = metrics.task(evaluation_cfg(cfg), episodes)
        options = {**EVALUATED, "sim": sim, "max_episode_steps": 100_000}
        self._envs = gym.make_vec(task_id, num_envs=num_envs, cfg=cfg, **options)
        self.core = unwrap(self._envs)
        self.metrics = metrics(self.core)

    def run(self, policy: Callable[..., torch.Tensor], still: bool = True, seed: int = EVALUATION_SEED) -> Any:
        """Evaluate ``policy``: observations of the groups → actions.

        ``still`` adds the zero command, on a velocity task. Returns an
        :class:`~legged_envs.rl.velocity_metrics.Evaluation` or a
        :class:`~legged_envs.rl.mimic_metrics.MimicEvaluation`.
        """
        moving = self.rollout(policy, seed)
        standing = self.rollout(policy, seed, still=True) if still and self.metrics.STANDS else None
        return self.metrics.result(*moving, standing)

    def rollout(
        self, policy: Callable[..., torch.Tensor], seed: int, still: bool = False
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """What is measured in every step of ``SECONDS``, and which episodes had not ended by then.

        Shapes: (steps, num_envs, …), (steps, num_envs).
        """
        observation = self.metrics.start(self._envs, seed, still)
        upright = torch.ones(self.core.num_envs, dtype=torch.bool, device=self.core.device)
        rows: dict[str, list[torch.Tensor]] = {"alive": []}
        for _ in range(round(SECONDS / self.core.step_dt)):
            with torch.inference_mode():
                action = policy(*(observation[group] for group in self._groups))
            observation, _, terminated, _, info = self._envs.step(action)
            upright = upright & ~terminated
            for name, value in (("alive", upright), *self.metrics.measures(info).items()):
                rows.setdefault(name, []).append(value.clone())
        values = {name: torch.stack(steps) for name, steps in rows.items()}
        return values, values.pop("alive")

    def close(self) -> None:
        self._envs.close()
