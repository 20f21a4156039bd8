"""Checks during a training whether the policy already reaches the goal of its task."""

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import torch

from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.runs.progress import Show
from legged_envs.training.prepare import Prepared

GOAL_INTERVAL = 15.0
"""Least training time before the first check, and between two checks, s."""

GOAL_MARGIN = 0.1
"""Excess of a training error over the goal, in its unit, up to which a check is worth its time."""

QUICK_EPISODES = 32
"""Episodes of the quick evaluation. Only if it reaches the goal are all episodes evaluated."""

GOAL_PATIENCE = 5
"""Training time after a failed check, as a multiple of the time that the check took."""


class GoalCheck:
    """Evaluates the policy of a training from time to time, until it reaches the goal of the task.

    Args:
        prepared: The training.
        groups: Observation groups that the policy takes.
    """

    def __init__(self, prepared: Prepared, groups: tuple[str, ...]):
        self._prepared = prepared
        self._groups = groups

        self.next_check = GOAL_INTERVAL
        """Training time of the next check, s."""

    @cached_property
    def evaluator(self) -> Evaluator:
        """Evaluator of all episodes, which also evaluates the trained policy."""
        return self._make_evaluator(self._prepared.cfg.episodes)

    @cached_property
    def quick_evaluator(self) -> Evaluator:
        """Evaluator of a few episodes."""
        return self._make_evaluator(min(QUICK_EPISODES, self._prepared.cfg.episodes))

    def _make_evaluator(self, episodes: int) -> Evaluator:
        cfg = self._prepared.cfg
        return Evaluator(
            cfg.task_id,
            self._prepared.task,
            episodes=episodes,
            sim=cfg.sim,
            groups=self._groups,
            device=cfg.device,
        )

    def is_due(self, row: Mapping[str, float], seconds: float) -> bool:
        """Return True if it is time for a check and the training errors are near the goal.

        Args:
            row: Numbers of the last update.
            seconds: Training time so far, s.
        """
        goal = self._prepared.metrics.GOAL
        if not goal or seconds < self.next_check:
            return False
        errors = self._prepared.metrics.ERRORS
        return all(row[name] < goal[name] + GOAL_MARGIN for name in errors)

    def check(self, policy: torch.nn.Module, seconds: float, show: Show) -> Any:
        """Evaluate the policy.

        Args:
            policy: The policy.
            seconds: Training time so far, s.
            show: Called during an evaluation. A KeyboardInterrupt that it raises ends the check.

        Returns:
            The evaluation on all episodes if it reaches the goal, else None.
        """
        begun = time.perf_counter()
        goal = self._prepared.metrics.GOAL
        result = None
        for evaluator in (self.quick_evaluator, self.evaluator):
            try:
                result = evaluator.run(policy, still=False, show=show)
            except KeyboardInterrupt:
                return None
            if not result.walks(**goal):
                took = time.perf_counter() - begun
                # Checks take a sixth of the time at most.
                self.next_check = seconds + max(GOAL_INTERVAL, took + GOAL_PATIENCE * took)
                return None
        return result
