"""Rewards, r = Σ weight · term · dt, and costs, what a constrained policy must keep below a limit."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch

from legged_envs.checks import check_known, check_number
from legged_envs.configuration import Configuration
from legged_envs.managers.manager import TermColumns


class EpisodeSums(TermColumns):
    """Sums its terms over each episode; the log has sums over episode length · ``sums_dt``."""

    STATE: tuple[str, ...] = ("episode_sums",)

    def __init__(self, env: Any, kind: str, cfg: dict[str, Any], sums_dt: float):
        super().__init__(env, kind, cfg, torch.float32)
        self._sums_dt = sums_dt
        self.episode_sums = torch.zeros(
            env.num_envs, len(cfg), dtype=torch.float32, device=env.device
        )
        """Sum of each term over each environment's episode. Shape: (num_envs, num_terms)."""

    def reset(self, env_ids: torch.Tensor) -> None:
        self.episode_sums.index_fill_(0, env_ids, 0.0)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return self.episode_sums[env_ids] / (steps.float() * self._sums_dt).unsqueeze(1)


@dataclass
class RewardTermCfg(Configuration):
    """A reward term: ``weight · func(env, **params) · step_dt`` in each step."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)`` → (num_envs,) float32."""
    weight: float
    """Reward per second at a value of 1; 0 leaves the term out."""
    params: dict[str, Any] = field(default_factory=dict)
    after_floor: bool = False
    """Whether it is added after the floor of ``only_positive_rewards`` (LeggedGym-Ex ``termination``)."""


class RewardManager(EpisodeSums):
    """Weighted sum of the reward terms, times the control time step (as LeggedGym-Ex and Isaac Lab do). ValueError for
    a weight that is no number."""

    STATE = (*EpisodeSums.STATE, "weights")

    COLUMNS: ClassVar[dict[str, str]] = {"weight [1/s]": "weight", "parameters": "params"}

    cfg: dict[str, RewardTermCfg]

    def __init__(self, env: Any, cfg: dict[str, RewardTermCfg], only_positive: bool):
        for name, term in cfg.items():
            check_number(f"reward term {name!r}: weight", term.weight)
        active = sorted(
            ((n, t) for n, t in cfg.items() if t.weight != 0.0),
            key=lambda item: item[1].after_floor,
        )
        super().__init__(env, "reward", dict(active), env.step_dt)
        self.title = "Rewards (sum floored at 0)" if only_positive else "Rewards"
        self.only_positive = only_positive
        self.weights = tuple(term.weight for _, term in active)
        self._scale = torch.tensor(self.weights, dtype=torch.float32, device=env.device).mul_(
            env.step_dt
        )
        self._num_floored = sum(not term.after_floor for _, term in active)
        self.total = self.unfloored = self.episode_sums.sum(1)
        """The reward of the last step, and of its terms that are floored together before that. Shape: (num_envs,)."""
        self._sums = ("total", "unfloored") if only_positive else ("total",)

    def set_weight(self, name: str, weight: float) -> None:
        """Weigh the term ``name`` anew from the next step on; ValueError if there is none, as with weight 0 so far."""
        check_known("there is no reward term with a weight", (name,), self.names, "terms")
        check_number(f"reward term {name!r}: weight", weight)
        self.cfg[name] = replace(self.cfg[name], weight=weight)
        self.weights = tuple(term.weight for term in self.cfg.values())
        self._scale = torch.tensor(self.weights, dtype=torch.float32, device=self._env.device).mul_(
            self._env.step_dt
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state, weights included."""
        super().load_state_dict(state)
        for name, weight in zip(self.names, self.weights, strict=True):
            self.set_weight(name, weight)

    def compute(self) -> None:
        weighted = self.columns() * self._scale
        self.episode_sums.add_(weighted)
        if not self.only_positive:
            self.total = weighted.sum(1)
        elif self._num_floored == len(self.names):
            self.unfloored = weighted.sum(1)
            self.total = self.unfloored.clamp_min(0.0)
        else:
            self.unfloored, rest = (
                weighted[:, : self._num_floored].sum(1),
                weighted[:, self._num_floored :],
            )
            self.total = self.unfloored.clamp_min(0.0) + rest.sum(1)


@dataclass
class CostTermCfg(Configuration):
    """A cost term, whose mean over steps is to stay below ``limit``."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)`` → (num_envs,) float32, 0 when the constraint is satisfied, never negative."""
    limit: float
    """What the term may be on average per step."""
    params: dict[str, Any] = field(default_factory=dict)


class CostManager(EpisodeSums):
    """Evaluates the cost terms; their sum is the scalar cost of a transition. ValueError if a limit is negative."""

    LEAST = 0.0
    title = "Costs"
    COLUMNS: ClassVar[dict[str, str]] = {"limit [mean per step]": "limit", "parameters": "params"}

    def __init__(self, env: Any, cfg: dict[str, CostTermCfg]):
        for name, term in cfg.items():
            if not term.limit >= 0.0:
                raise ValueError(f"cost term {name!r}: limit must be at least 0, got {term.limit}")
        super().__init__(env, "cost", cfg, 1.0)
        self.limits = tuple(term.limit for term in cfg.values())
        self.values = torch.zeros_like(self.episode_sums)
        self.total = self.values.sum(1)
        """The costs of the last step, (num_envs, num_terms), and their sum, (num_envs,)."""
        self._sums = ("total",) if self.own else ("total", "roots")

    def compute(self) -> None:
        self.values = self.columns()
        self.episode_sums.add_(self.values)
        self.total = self.values.sum(1)
        if not self.own:
            self.roots = self.values.amin(1).sqrt_()  # no number where one is negative
