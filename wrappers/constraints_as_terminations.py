"""Costs as probabilities that the episode ends, which discount the reward."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs.wrappers.array_kinds import detached
from legged_envs.wrappers.base import first_array, not_reset, reset_mask
from legged_envs.wrappers.constraint import ConstraintWrapper

TERMINATE = ("none", "sample")


class ConstraintsAsTerminations(ConstraintWrapper):
    """The worse a cost, the likelier the episode is to end: a policy that keeps its rewards keeps its constraints.

    Chane-Sane et al. 2024, "CaT: Constraints as Terminations for Legged Locomotion Reinforcement Learning". On every
    step, with costs c (0 when satisfied)::

        m_i ← τ m_i + (1 − τ) max over the batch of c_i      at first the maximum itself; never below 1e-6
        δ = max_i p_i · clip(c_i / m_i, 0, 1)
        r ← max(r (1 − δ), 0)

    δ is ``info["termination_probability"]`` (num_envs,). Rewards should not be negative: then an end is a loss.

    What ends: in CaT the learner takes δ for ``done``, so that all later rewards are discounted by 1 − δ too. A learner
    that can do so takes it from ``info``, as ``maximum(done, δ)``. For others ``terminate`` is

    * ``"none"`` (default): δ discounts the reward of its own step alone, and the flags stay as they are. Such a
      discount weighs about 1 / (1 − γ) times less than one of the whole future, so p has to be larger.
    * ``"sample"``: ``terminated`` becomes true with probability δ, which gives CaT's returns in expectation. It is not
      the default because of its noise: an end that is drawn costs the whole value of a state, about 1 / (1 − γ)
      rewards, where a float ``done`` costs the fraction δ of it. Around an environment without autoreset the episode
      really ends, and the resets then shape which states are visited. Above :class:`AutoReset` in mode SAME_STEP only
      the learner's episode ends: its next one begins where the robot is, and ``final_obs`` of that row is the
      observation itself. In mode NEXT_STEP it goes below :class:`AutoReset`.

    How large p_i is: CaT has one number for each constraint, which a schedule raises, and no limits on averages. Here
    p_i follows the mean c̄_i of ``interval`` steps towards its limit d_i, with e_i = min(c̄_i / d_i − 1, 1)::

        b_i ← b_i exp(rate · e_i)        at first min_probability
        p_i = b_i exp(gain · e_i)        both between min_probability and max_probability

    ``rate=0`` holds p_i at ``max_probability``, as CaT does after its schedule (there 0.25 for most, 1 for what must
    never happen). p_i may go above 1 if ``max_probability`` does; p_i · clip(…) is then bounded by 1.

    ``info`` also holds ``original_reward`` (num_envs,) and ``max_probabilities`` (K,), the p_i of this step, and
    ``info["log"]``, where there is one, ``max_probability/<cost>``. It goes above or below :class:`AutoReset` and
    :class:`CostNormalize`, whose raw costs it reads.

    Args:
        env: A vector environment with costs.
        limits: What each cost may be on average per step; None takes the environment's ``cost_limits``. Shape: (K,).
        min_probability: Least p_i.
        max_probability: Greatest p_i; a number, or one for each cost.
        rate: How fast p_i follows, per interval; 0 holds it.
        gain: How much p_i answers to the last interval at once, which damps swings about the limit.
        tau: How much of m_i a step keeps.
        terminate: ``"none"`` or ``"sample"``. What is drawn in environment i follows from the seed of ``reset``, i and
            the number of draws, whatever ``num_envs`` is.
        interval: Steps over which means are taken.
        warmup: Steps before p first changes.

    Raises:
        ValueError: If the environment has no costs, the limits are not one for each, an argument is not valid, or
            terminations are to be sampled above an autoreset in the next step.
    """

    log_name = "max_probability"

    def __init__(
        self,
        env: VectorEnv,
        limits: Sequence[float] | None = None,
        *,
        min_probability: float = 0.05,
        max_probability: float | Sequence[float] = 1.0,
        rate: float = 0.05,
        gain: float = 1.0,
        tau: float = 0.95,
        terminate: str = "none",
        interval: int = 24,
        warmup: int = 0,
    ):
        super().__init__(env, limits, interval, warmup)
        self.max_probability = np.asarray(max_probability, np.float64)
        if self.max_probability.shape not in ((), self.limits.shape):
            raise ValueError(
                f"max_probability must be a number or {len(self.limits)}, one for each cost; got {max_probability!r}"
            )
        if not (min_probability > 0.0 and (self.max_probability >= min_probability).all()):
            raise ValueError(
                "min_probability must be positive and max_probability at least that; "
                f"got {min_probability!r} and {max_probability!r}"
            )
        for name, value in (("rate", rate), ("gain", gain)):
            if not value >= 0.0:
                raise ValueError(f"{name} must be at least 0, got {value!r}")
        if not 0.0 <= tau < 1.0:
            raise ValueError(f"tau must be at least 0 and below 1, got {tau!r}")
        if terminate not in TERMINATE:
            raise ValueError(f"terminate must be one of {TERMINATE}, got {terminate!r}")
        if terminate == "sample" and self._mode is AutoresetMode.NEXT_STEP:
            raise ValueError(
                "terminations cannot be sampled above an autoreset in the next step, which would not reset them: go "
                "below it, AutoReset(ConstraintsAsTerminations(env, terminate='sample'), 'NextStep'), or use SAME_STEP"
            )
        self.min_probability, self.rate, self.gain = min_probability, rate, gain
        self.tau, self.terminate = tau, terminate
        self.probabilities: Any = None
        """p: greatest probability that each cost ends an episode. Shape: (K,)."""
        self.cost_maxima: Any = None
        """m: running means of the greatest cost in the batch. Shape: (K,)."""
        self._base: Any = None  # b. Shape: (K,)
        self._draws = _Uniform(self.num_envs)

    @property
    def adapted(self) -> Any:
        return self.probabilities

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        mask = reset_mask(options)
        observation, info = super().reset(seed=seed, options=options)
        if self.terminate == "sample":
            self._draws.seed(seed, mask, first_array(observation))
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        floating, costs = self._take_step(reward, info)
        delta = self._termination_probability(costs)
        info = {
            **info,
            "original_reward": reward,
            "termination_probability": delta,
            "max_probabilities": self._xp.asarray(self.probabilities, copy=True),
        }
        info = self._with_log(info)
        shaped = self._xp.clip(floating * (1.0 - delta), min=0.0)
        if self.terminate == "sample":
            if self._draws.position is None:
                raise not_reset(self)
            sampled = (self._draws() < delta) & ~(terminated | truncated)
            if self._over is not None:
                sampled = sampled & ~self._over
            if self._xp.any(sampled):
                terminated = terminated | sampled
                if self._mode is AutoresetMode.SAME_STEP:
                    info = _with_final(info, observation, sampled)
        self._end_of_step(terminated | truncated)
        return observation, shaped, terminated, truncated, info

    def _start(self) -> None:
        super()._start()
        if self.probabilities is None:
            self._base = self._vector(self.min_probability if self.rate > 0.0 else self.max_probability)
            self.probabilities = self._base

    def _termination_probability(self, costs: Any) -> Any:
        """δ. Shape: (num_envs,)."""
        xp = self._xp
        if self._over is None or not xp.all(self._over):
            maxima = xp.clip(xp.astype(xp.max(detached(costs), axis=0), xp.float64), min=1e-6)
            if self.cost_maxima is not None:
                maxima = self.tau * self.cost_maxima + (1.0 - self.tau) * maxima
            self.cost_maxima = maxima
        if self.cost_maxima is None:
            return xp.zeros_like(costs[:, 0])
        slope = xp.astype(self.probabilities / self.cost_maxima, costs.dtype)
        bound = xp.astype(xp.clip(self.probabilities, max=1.0), costs.dtype)
        return xp.clip(xp.max(xp.minimum(costs * slope, bound), axis=1), min=0.0)

    def _end_of_interval(self, excess: Any, count: int, adapt: bool) -> None:
        if adapt and self.rate > 0.0:
            self._base = self._bounded(self._base * self._xp.exp(self.rate * excess))
            self.probabilities = self._bounded(self._base * self._xp.exp(self.gain * excess))

    def _bounded(self, probabilities: Any) -> Any:
        return self._xp.clip(probabilities, self._vector(self.min_probability), self._vector(self.max_probability))

    def state_dict(self) -> dict[str, Any]:
        own = {"probabilities": self.probabilities, "base": self._base, "cost_maxima": self.cost_maxima}
        return {**super().state_dict(), **copy.deepcopy({**own, "draws": self._draws.position})}

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        shapes = dict.fromkeys(("probabilities", "base", "cost_maxima"), self.limits.shape)
        return {**super()._state_shapes(), **shapes, "draws": (self.num_envs,)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        state = copy.deepcopy(state)
        self.probabilities, self._base = state["probabilities"], state["base"]
        self.cost_maxima = state["cost_maxima"]
        self._draws.position = state["draws"]


def _with_final(info: dict[str, Any], observation: Any, ended: Any) -> dict[str, Any]:
    """``info`` of a step on which the episodes of ``ended`` ended too, without a reset. Shape: (num_envs,), bool."""
    if "final_obs" not in info:
        copies = {"final_obs": copy.deepcopy(observation), "final_info": dict(info)}
        return {**info, **copies, "_final_obs": copy.deepcopy(ended), "_final_info": copy.deepcopy(ended)}
    final = info["final_obs"]
    if not (isinstance(final, np.ndarray) and final.dtype == object):  # rows that went on equal the observation already
        marks: dict[str, Any] = {key: info[key] | ended for key in ("_final_obs", "_final_info") if key in info}
        return {**info, **marks}
    final = final.copy()  # as Gymnasium's vector environments have it: only of rows that ended
    for i in ended.nonzero()[0]:
        final[i] = copy.deepcopy(_row(observation, i))
    return {**info, "final_obs": final, "_final_obs": info["_final_obs"] | ended}


def _row(tree: Any, i: int) -> Any:
    return {key: _row(value, i) for key, value in tree.items()} if isinstance(tree, dict) else tree[i]


_GAMMA, _MIX_1, _MIX_2 = (x - (1 << 64) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def _splitmix64(x: Any) -> Any:
    """Steele, Lea & Flood 2014's mixing of 64 bits, on int64 arrays, whose products wrap around."""
    for bits, factor in ((30, _MIX_1), (27, _MIX_2)):
        x = (x ^ ((x >> bits) & ((1 << (64 - bits)) - 1))) * factor
    return x ^ ((x >> 31) & ((1 << 33) - 1))


class _Uniform:
    """One random stream for each environment, a function of its seed, its index and the number of draws."""

    def __init__(self, num_envs: int):
        self.num_envs = num_envs
        self.position: Any = None
        """Where each stream is. Shape: (num_envs,), int64."""

    def seed(self, seed: int | list[int] | None, mask: Any, like: Any) -> None:
        """Begin the streams of ``mask`` anew, as arrays of the kind of ``like``; without a seed only what never began.

        An int seeds environment i by (seed, i), a list by (seed[i], 0).
        """
        if seed is None:
            if self.position is not None:
                return
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        ids = range(self.num_envs)
        pairs = [(s, 0) for s in seed] if isinstance(seed, (list, tuple, np.ndarray)) else [(seed, i) for i in ids]
        seeds, indices = (np.array([int(x) % (1 << 64) for x in half], np.uint64) for half in zip(*pairs, strict=True))
        keys = _splitmix64(_splitmix64(seeds.astype(np.int64)) ^ (indices.astype(np.int64) * _GAMMA))
        xp = array_namespace(like)
        position = xp.asarray(keys, device=device(like))
        fresh = mask is None or self.position is None
        self.position = position if fresh else xp.where(mask, position, self.position)

    def __call__(self) -> Any:
        """The next number of every stream, in [0, 1). Shape: (num_envs,), float32."""
        self.position = self.position + _GAMMA
        bits = (_splitmix64(self.position) >> 40) & ((1 << 24) - 1)
        xp = array_namespace(bits)
        return xp.astype(bits, xp.float32) * 2.0**-24
