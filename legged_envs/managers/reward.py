"""Rewards: r = Σ weight · term · step_dt; and costs, which a constrained policy keeps below
limits."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch

from legged_envs.checks import check_known, check_number
from legged_envs.configuration import Configuration
from legged_envs.managers.manager import TermManager
from legged_envs.mdp.context import Env


class EpisodeSumManager(TermManager):
    """A manager that sums its terms over each episode.

    The log holds the mean of each term over the episode: sum / (steps · ``sums_dt``).

    Args:
        env: The environment that the terms see.
        kind: Kind of the terms, used in errors and in the log.
        cfg: Name of each term mapped to its configuration.
        sums_dt: Divisor of a logged sum per step; the control time step logs a mean per second.
    """

    STATE: tuple[str, ...] = ("episode_sums",)

    def __init__(self, env: Env, kind: str, cfg: dict[str, Any], sums_dt: float):
        super().__init__(env, kind, cfg, torch.float32)
        self._sums_dt = sums_dt

        self.episode_sums = torch.zeros_like(self.columns)
        """Sum of each term over the present episode. Shape: (num_envs, num_terms)."""

    def reset(self, env_ids: torch.Tensor) -> None:
        self.episode_sums.index_fill_(0, env_ids, 0.0)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        # Divided by the steps that ran, so that short and long episodes can be compared.
        divisor = steps.float() * self._sums_dt
        return self.episode_sums[env_ids] / divisor.unsqueeze(1)


@dataclass
class RewardTermCfg(Configuration):
    """A reward term, which adds ``weight · func(env, **params) · step_dt`` in each step."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)``, which returns shape (num_envs,), float32."""
    weight: float
    """Reward per second at a value of 1; 0 leaves the term out."""
    params: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of ``func``."""
    after_floor: bool = False
    """True if the term is added after the sum of the others is floored at 0.

    Has an effect only with ``only_positive_rewards`` (LeggedGym-Ex: ``termination``).
    """


class RewardManager(EpisodeSumManager):
    """Weighted sum of the reward terms, times the control time step.

    LeggedGym-Ex and Isaac Lab scale rewards in the same way.

    Args:
        env: The environment that the terms see.
        cfg: Name of each term mapped to its configuration.
        only_positive: True if the sum of the terms is floored at 0.

    Raises:
        ValueError: If a weight is not a finite number.
    """

    STATE = (*EpisodeSumManager.STATE, "weights")
    COLUMNS: ClassVar[dict[str, str]] = {"weight [1/s]": "weight", "parameters": "params"}

    cfg: dict[str, RewardTermCfg]

    def __init__(self, env: Env, cfg: dict[str, RewardTermCfg], only_positive: bool):
        for name, term in cfg.items():
            check_number(f"reward term {name!r}: weight", term.weight)
        # Terms that are added after the floor stand last, so that one slice has all others.
        weighed = {name: term for name, term in cfg.items() if term.weight != 0.0}
        floored = {name: term for name, term in weighed.items() if not term.after_floor}
        after_floor = {name: term for name, term in weighed.items() if term.after_floor}
        super().__init__(env, "reward", floored | after_floor, env.step_dt)
        self.title = "Rewards (sum floored at 0)" if only_positive else "Rewards"

        self.only_positive = only_positive
        """True if the sum of the terms is floored at 0."""
        self._num_floored = len(floored)
        self._apply_weights()
        self.total = self.episode_sums.sum(1)
        """Reward of the last step. Shape: (num_envs,)."""
        self.unfloored = self.total
        """Sum of the floored terms in the last step, before the floor. Shape: (num_envs,)."""

    def _apply_weights(self) -> None:
        self.weights = tuple(term.weight for term in self.cfg.values())
        """Reward per second at a value of 1, of each term."""
        weights = torch.tensor(self.weights, dtype=torch.float32, device=self._env.device)
        self._scale = weights.mul_(self._env.step_dt)

    def set_weight(self, name: str, weight: float) -> None:
        """Change the weight of a term from the next step on.

        Args:
            name: Name of the term.
            weight: Reward per second at a value of 1.

        Raises:
            ValueError: If there is no such term, its weight has been 0 so far, or ``weight`` is
                not finite.
        """
        check_known("there is no reward term with a weight", (name,), self.names, "terms")
        check_number(f"reward term {name!r}: weight", weight)
        self.cfg[name] = replace(self.cfg[name], weight=weight)
        self._apply_weights()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a saved state, weights included."""
        super().load_state_dict(state)
        # The tensor of scaled weights is not a part of the state and follows from the weights.
        for name, weight in zip(self.names, self.weights, strict=True):
            self.set_weight(name, weight)

    def compute(self) -> None:
        # The columns stay unweighted: errors about a term show what its function returned.
        self.columns = self.evaluate_terms()
        weighted = self.columns * self._scale
        self.episode_sums.add_(weighted)
        if not self.only_positive:
            self.total = weighted.sum(1)
        elif self._num_floored == len(self.names):
            self.unfloored = weighted.sum(1)
            self.total = self.unfloored.clamp_min(0.0)
        else:
            self.unfloored = weighted[:, : self._num_floored].sum(1)
            rest = weighted[:, self._num_floored :].sum(1)
            self.total = self.unfloored.clamp_min(0.0) + rest

    def check_sum(self) -> torch.Tensor:
        """Return a number that is finite if all values of the last step are. Shape: ()."""
        if not self.only_positive:
            return self.total.sum()
        # The floor would hide -inf.
        return self.total.sum() + self.unfloored.sum()


@dataclass
class CostTermCfg(Configuration):
    """A cost term, to be kept below a limit on average over the steps."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)``, which returns shape (num_envs,), float32.

    The value is 0 where the constraint is satisfied, and never negative.
    """
    limit: float
    """Largest allowed mean of the term over the steps, in the unit of the term."""
    params: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of ``func``."""


class CostManager(EpisodeSumManager):
    """Evaluates the cost terms; their sum is the scalar cost of a transition.

    Args:
        env: The environment that the terms see.
        cfg: Name of each term mapped to its configuration.

    Raises:
        ValueError: If a limit is negative.
    """

    LEAST = 0.0
    title = "Costs"
    COLUMNS: ClassVar[dict[str, str]] = {"limit [mean per step]": "limit", "parameters": "params"}

    def __init__(self, env: Env, cfg: dict[str, CostTermCfg]):
        for name, term in cfg.items():
            if not term.limit >= 0.0:
                raise ValueError(f"cost term {name!r}: limit must be at least 0, got {term.limit}")
        # Costs have limits per step, so that their log is per step as well.
        super().__init__(env, "cost", cfg, sums_dt=1.0)
        self.limits = tuple(term.limit for term in cfg.values())
        """Largest allowed mean over the steps, of each term."""
        self.values = torch.zeros_like(self.episode_sums)
        """Cost terms of the last step. Shape: (num_envs, num_terms)."""
        self.total = self.values.sum(1)
        """Sum of the cost terms of the last step. Shape: (num_envs,)."""

    def compute(self) -> None:
        self.columns = self.evaluate_terms()
        self.values = self.columns
        self.episode_sums.add_(self.values)
        self.total = self.values.sum(1)

    def check_sum(self) -> torch.Tensor:
        """Return a number that is finite if all values of the last step are allowed. Shape: ()."""
        if self.is_builtin:  # never negative
            return self.total.sum()
        return torch.where(self.values < 0.0, math.nan, self.values).sum()
