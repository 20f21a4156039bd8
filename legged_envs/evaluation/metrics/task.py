"""What is measured of a policy: here on a task with neither a velocity command nor motions to imitate."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs import LeggedVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import mean_over_steps, print_costs


@dataclass
class TaskEvaluation:
    """How a policy does on a task with neither a velocity command nor motions: means over ``episodes`` of them."""

    episodes: int
    reward: float
    """Reward per second, while the episode lasts."""
    falls: float
    """Fraction of the episodes that the task ended."""
    costs: dict[str, float]
    cost_limits: dict[str, float]
    """Mean of each cost per step, and what it may be."""

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, in dicts and numbers alone."""
        return asdict(self)

    def print(self, console: Console) -> None:
        """Print episodes, reward and falls in a line, and a table of the costs."""
        console.print(
            f"{self.episodes} episodes; reward {self.reward:.3f}/s; ended early {self.falls:.1%}"
        )
        print_costs(self.costs, self.cost_limits, console)


class TaskMetrics:
    """What is measured in the environment ``core`` of an evaluation."""

    GROUPS: ClassVar[tuple[str, ...]] = ("policy",)
    ERRORS: ClassVar[dict[str, str]] = {}
    """Observation groups that a policy takes by default; what :meth:`training_errors` gives, and the units."""
    GOAL: ClassVar[dict[str, float]] = {}
    STANDS: ClassVar[bool] = False
    """Errors and falls that a training is to reach, empty without a goal; whether to evaluate the zero command too."""

    def __init__(self, core: LeggedVectorEnv):
        self._core = core

    @staticmethod
    def training_errors(core: LeggedVectorEnv) -> dict[str, float]:
        """Means over the robots of a training in this moment, by the names and in the units of :attr:`ERRORS`: columns
        of its learning curve."""
        return {}

    @staticmethod
    def task(cfg: TaskCfg, episodes: int) -> tuple[TaskCfg, int]:
        """The task of an evaluation of ``episodes`` each, and how many environments that takes."""
        return cfg, episodes

    def start(self, envs: VectorEnv, seed: int, still: bool) -> dict[str, torch.Tensor]:
        """Reset the environments, if ``still`` to the zero command; returns the first observation, (num_envs, …)."""
        observation, _ = envs.reset(seed=seed)
        return observation

    def measures(self, info: dict[str, Any]) -> dict[str, torch.Tensor]:
        """Numbers of the step that led to ``info``. Shapes: (num_envs, …)."""
        return {"reward": info["reward"], "costs": info["costs"]}

    def result(
        self, values: dict[str, torch.Tensor], alive: torch.Tensor, still: Any = None
    ) -> Any:
        """What a rollout's measures (steps, num_envs, …) say, and who is ``alive`` in it; ``still`` is one standing."""
        core, counted = self._core, torch.cat((torch.ones_like(alive[:1]), alive[:-1]))
        means = {name: mean_over_steps(value, counted).nanmean(0) for name, value in values.items()}
        return TaskEvaluation(
            episodes=core.num_envs,
            reward=means["reward"].item() / core.step_dt,
            falls=(~alive[-1]).float().mean().item(),
            costs=dict(zip(core.cost_names, means["costs"].tolist(), strict=True)),
            cost_limits=dict(zip(core.cost_names, core.cost_limits, strict=True)),
        )
