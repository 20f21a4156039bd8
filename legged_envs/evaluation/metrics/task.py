"""Metrics of any task, and base class of the metrics of each kind of task."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import mean_over_steps
from legged_envs.evaluation.metrics.costs import (
    DISCOUNT,
    CostResults,
    cost_results,
    until_the_end,
)

Measures = dict[str, torch.Tensor]
"""Quantities that were measured in a rollout, by name."""


class Rollout(NamedTuple):
    """Measures of one episode in each environment under a policy."""

    measures: Measures
    """Measures of each step, by name. Shapes: (steps, num_envs, …)."""
    alive: torch.Tensor
    """True in the steps before the episode terminates. Shape: (steps, num_envs), bool."""


@dataclass
class TaskEvaluation(CostResults):
    """Result of the evaluation of a policy on a task without velocity command and reference."""

    episodes: int
    """Number of episodes of the evaluation."""
    reward: float
    """Reward per second of simulated time, mean over the steps of an episode, then over
    episodes."""
    falls: float
    """Fraction of the episodes that a termination ended, such as a fall."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, as dicts and numbers."""
        return asdict(self)

    def print(self, console: Console) -> None:
        """Print episodes, reward and falls in a line, and a table of the costs."""
        console.print(
            f"{self.episodes} episodes; reward {self.reward:.3f}/s; ended early {self.falls:.1%}"
        )
        self.print_costs(console)


class TaskMetrics:
    """Metrics of any task: reward, falls and costs. Base of the metrics of other kinds of tasks.

    Args:
        core: Environment of the evaluation.
    """

    GROUPS: ClassVar[tuple[str, ...]] = ("policy",)
    """Names of the observation groups that are by default the arguments of a policy, in order."""
    ERRORS: ClassVar[dict[str, str]] = {}
    """Units of the numbers that `training_errors` returns, by name."""
    GOAL: ClassVar[dict[str, float]] = {}
    """Largest errors and fraction of falls with which a policy counts as trained, by name. Empty:
    the task has no goal."""
    EVALUATES_STANDING: ClassVar[bool] = False
    """True if an evaluation includes a second rollout under the zero velocity command."""
    EPISODE_SECONDS: ClassVar[float] = 10.0
    """Duration of the episodes of an evaluation, s."""
    OUTLASTS_TIME_LIMIT: ClassVar[bool] = False
    """True if an evaluation goes on after the time limit of the task."""

    def __init__(self, core: CoreVectorEnv):
        self.cost_discount = DISCOUNT
        """Discount factor per control step of the sums of costs."""
        self._core = core

    @property
    def episode_seconds(self) -> float:
        """Duration of the episodes of this evaluation, s.

        `EPISODE_SECONDS`, cut to the time limit of the task unless `OUTLASTS_TIME_LIMIT`.
        """
        if self.OUTLASTS_TIME_LIMIT:
            return self.EPISODE_SECONDS
        return min(self.EPISODE_SECONDS, self._core.max_episode_length_s)

    @staticmethod
    def training_errors(core: CoreVectorEnv) -> dict[str, float]:
        """Return the current errors of a training, averaged over its robots.

        They become columns of the learning curve. `ERRORS` has their names and units.

        Args:
            core: Training environment, without wrappers.
        """
        return {}

    @staticmethod
    def task(cfg: TaskCfg, episodes: int) -> tuple[TaskCfg, int]:
        """Return the configuration and the number of environments for an evaluation.

        Args:
            cfg: Configuration of the task, from `evaluation_cfg`.
            episodes: Number of episodes. On a mimic task: number per clip.
        """
        return cfg, episodes

    def start(self, envs: VectorEnv, seed: int, still: bool) -> dict[str, torch.Tensor]:
        """Reset the environments for a rollout.

        Args:
            envs: Environments of the evaluation.
            seed: Random seed of initial states and commands.
            still: True: the velocity command is zero.

        Returns:
            The first observation of each group. Shapes: (num_envs, size).
        """
        observation, _ = envs.reset(seed=seed)
        return observation

    def measures(self, info: Mapping[str, Any]) -> Measures:
        """Return the measures of the last step, by name. Shapes: (num_envs, …).

        Args:
            info: `info` of the step, with the reward of the step under `reward`.
        """
        return {"reward": info["reward"], "costs": info["costs"]}

    def result(self, values: Measures, alive: torch.Tensor, standing: Rollout | None = None) -> Any:
        """Compute the result of an evaluation from the measures of its rollouts.

        Args:
            values: Measures of each step, by name. Shapes: (steps, num_envs, …).
            alive: True until the episode terminates. Shape: (steps, num_envs), bool.
            standing: Rollout under the zero command. None: there was none.
        """
        core = self._core
        counted = until_the_end(alive)
        reward = mean_over_steps(values["reward"], counted).nanmean(0)
        costs = self._cost_results(values["costs"], alive, counted)
        return TaskEvaluation(
            episodes=core.num_envs,
            reward=reward.item() / core.step_dt,
            falls=(~alive[-1]).float().mean().item(),
            **vars(costs),
        )

    def _cost_results(
        self, costs: torch.Tensor, alive: torch.Tensor, counted: torch.Tensor
    ) -> CostResults:
        """Return the results of the costs of some environments, see `cost_results`."""
        core = self._core
        return cost_results(
            costs, alive, counted, core.cost_names, core.cost_limits, self.cost_discount
        )
