"""Evaluations during a training, which find out when the policy reaches the goal of its task."""

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import torch

from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.runs.progress import Show
from legged_envs.training.prepare import Prepared
from legged_envs.training.threads import limit_threads

GOAL_INTERVAL = 15.0
"""Shortest training time before the first evaluation of the goal, and between two of them, s."""

GOAL_MARGIN = 0.1
"""Margin above the goal, in the unit of each error.

The policy is evaluated only if each error of the last update is below its goal plus this margin.
The margin is positive because training errors include exploration noise, which the evaluated policy
does not have.
"""

QUICK_EPISODES = 32
"""Number of episodes of a first, quick evaluation.

The full evaluation follows only if the quick one reaches the goal.
"""

GOAL_PATIENCE = 5
"""Training time that follows a failed evaluation, in multiples of the duration of that
evaluation."""


class GoalCheck:
    """Evaluates the policy of a training at intervals, until it reaches the goal of the task.

    The goal of a task is a set of bounds on evaluation results, ``GOAL`` of its
    :class:`~legged_envs.evaluation.metrics.task.TaskMetrics`.

    Args:
        prepared: Checked options and task of the training.
        groups: Names of the observation groups that are the arguments of the policy, in order.
    """

    def __init__(self, prepared: Prepared, groups: tuple[str, ...]):
        self._prepared = prepared
        self._groups = groups

        self.next_check = GOAL_INTERVAL
        """Training time at which the next evaluation is allowed, s."""

    @cached_property
    def evaluator(self) -> Evaluator:
        """Evaluator with all ``prepared.episodes`` episodes, made on first use.

        The trainer evaluates the final policy with it.
        """
        return self._make_evaluator(self._prepared.episodes)

    @cached_property
    def quick_evaluator(self) -> Evaluator:
        """Evaluator with at most ``QUICK_EPISODES`` episodes, made on first use."""
        return self._make_evaluator(min(QUICK_EPISODES, self._prepared.episodes))

    def _make_evaluator(self, episodes: int) -> Evaluator:
        cfg = self._prepared.cfg
        return Evaluator(
            cfg.task_id,
            limit_threads(self._prepared.task, cfg.threads),
            episodes=episodes,
            sim=cfg.sim,
            groups=self._groups,
            device=cfg.device,
        )

    def is_due(self, row: Mapping[str, float], seconds: float) -> bool:
        """Return True if the next evaluation is due and the training errors are near the goal.

        Always False for a task without a goal.

        Args:
            row: Numbers of the last update by name, which include its training errors.
            seconds: Training time so far, s.
        """
        goal = self._prepared.metrics.GOAL
        if not goal or seconds < self.next_check:
            return False
        errors = self._prepared.metrics.ERRORS
        return all(row[name] < goal[name] + GOAL_MARGIN for name in errors)

    def check(self, policy: Callable[..., torch.Tensor], seconds: float, show: Show) -> Any:
        """Evaluate a policy against the goal: on a few episodes first, then on all of them.

        Args:
            policy: The policy to evaluate.
            seconds: Training time so far, s. The next evaluation is scheduled relative to it.
            show: Reports the progress of an evaluation. A KeyboardInterrupt that it raises aborts
                the evaluation.

        Returns:
            Result of the evaluation on all episodes if it reaches the goal. None if it misses the
            goal or the evaluation was aborted.
        """
        begun = time.perf_counter()
        goal = self._prepared.metrics.GOAL
        result = None
        for evaluator in (self.quick_evaluator, self.evaluator):
            try:
                result = evaluator.run(policy, still=False, show=show)
            except KeyboardInterrupt:
                # The trainer itself notices the request to stop and then saves the run.
                return None
            if not result.walks(**goal):
                took = time.perf_counter() - begun
                # With GOAL_PATIENCE = 5, evaluations take at most a sixth of the training time.
                self.next_check = seconds + max(GOAL_INTERVAL, took + GOAL_PATIENCE * took)
                return None
        return result
