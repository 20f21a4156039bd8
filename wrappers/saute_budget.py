"""The wrapper that shows the remaining safety budget, and pays no reward once it is spent."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from legged_envs.checks import check_number, whole_number
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.appended import append_columns, with_columns
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import Shape
from legged_envs.wrappers.plumbing.constraint import ConstraintWrapper
from legged_envs.wrappers.plumbing.layers import AnyEnv, Step


class SauteBudget(ConstraintWrapper):
    """Appends the remaining budget of each cost to the observations, as Sauté RL does.

    From Sootla et al. 2022, "Sauté RL: almost surely safe reinforcement learning using state
    augmentation". With costs c, limits d, horizon T and discount γ, every episode has::

        b_k = d_k (1 + γ + … + γ^(T-1))      the budget
        z_k = 1 at first, then (z_k - c_k / b_k) / γ
        r   where all z_k ≥ 0, else unsafe_reward

    A policy that sees z keeps the limit in every episode, and not only in the mean. z is appended
    to each observation and is ``info["remaining_budget"]`` (num_envs, K).
    ``info["original_reward"]`` (num_envs,) is the reward of the layer below.

    Args:
        env: The environment, with observations that are a Box of floats in one row, or a Dict of
            them.
        horizon: Number T of steps of an episode.
        limits: Limits d_k of the mean costs per step, (K,). None: ``cost_limits`` of ``env``.
        gamma: Discount γ of the costs, above 0. With 1, z is the share of the budget that is left.
        unsafe_reward: Reward after a budget is spent, which should be below all rewards.

    Raises:
        ValueError: An argument is out of its range, or a limit is 0.

    Examples:
        >>> import gymnasium as gym, numpy as np, legged_envs
        >>> env = gym.make_vec("Legged/Go2-Flat-v0", num_envs=2)
        >>> env = SauteBudget(env, horizon=1000)
        >>> observation, info = env.reset(seed=0)
        >>> observation[0, -6:].tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    log_name = "remaining_budget"
    STATE: ClassVar[dict[str, Shape | None]] = {
        **ConstraintWrapper.STATE,
        "remaining": ("num_envs", "num_costs"),
    }
    REQUIRED: ClassVar[frozenset[str]] = frozenset({"cost_sums", "remaining"})

    def __init__(
        self,
        env: AnyEnv,
        horizon: int,
        limits: Sequence[float] | None = None,
        *,
        gamma: float = 1.0,
        unsafe_reward: float = 0.0,
    ):
        super().__init__(env, limits, interval=1, warmup=0)
        check_number("gamma", gamma, above=0.0, most=1.0)
        for name, limit in zip(self.cost_names, self.limits, strict=True):
            check_number(f"the limit of {name!r}", limit, above=0.0)
        self.gamma = gamma
        """Discount γ of the costs."""
        self.unsafe_reward = unsafe_reward
        """Reward after a budget is spent."""
        self.budgets = self.limits * (gamma ** np.arange(whole_number("horizon", horizon))).sum()
        """Budget b of an episode, in the unit of each cost. Shape: (K,)."""
        self.remaining: Array = np.ones((self.num_envs, self.num_costs))
        """Remaining budget z of each environment, as a share. Shape: (num_envs, K)."""
        space = with_columns(self.env.single_observation_space, self.num_costs)
        self.single_observation_space = space
        self.observation_space = batch_space(space, self.num_envs)

    @property
    def adapted(self) -> Array:
        mean: Array = arrays.namespace(self.remaining).mean(self.remaining, axis=0)
        return mean

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        example = arrays.first_array(observation)
        self.remaining = arrays.as_kind_of(self.remaining, example)
        self.remaining = arrays.where_rows(begun, 1.0, self.remaining)
        return append_columns(observation, self.remaining), self._with_log(info)

    def _shape(self, step: Step, costs: Array) -> Step:
        observation, reward, terminated, truncated, info = step
        xp = self._xp
        exact = xp.astype(costs, xp.float64)
        spent = (self.remaining - exact / self._like_costs(self.budgets)) / self.gamma
        over = self._over.over(reward)
        if self._over.mode is AutoresetMode.NEXT_STEP:
            # These rows have only been reset.
            spent = arrays.where_rows(over, 1.0, spent)
        else:
            spent = arrays.where_rows(over, self.remaining, spent)
        is_safe = xp.all(spent >= 0.0, axis=1)
        shaped = xp.where(is_safe | over, reward, xp.full_like(reward, self.unsafe_reward))
        info["remaining_budget"] = spent
        self.remaining = spent
        if self._over.mode is AutoresetMode.SAME_STEP:
            if "final_obs" in info:
                info["final_obs"] = append_columns(info["final_obs"], spent)
            self.remaining = arrays.where_rows(terminated | truncated, 1.0, spent)
        return append_columns(observation, self.remaining), shaped, terminated, truncated, info

    def _end_of_interval(self, excess: Array, count: int, adapt: bool) -> None:
        """Nothing is adapted: each episode has the same budget."""
