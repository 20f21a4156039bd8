"""Costs as probabilities that the episode ends, which discount the reward."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from legged_envs.checks import check_choice, check_number
from legged_envs.wrappers.plumbing.arrays import (
    Info,
    any_row,
    as_kind_of,
    as_numpy,
    copied,
    detached,
    map_arrays,
)
from legged_envs.wrappers.plumbing.base import Options, Seed, Tree, not_reset
from legged_envs.wrappers.plumbing.constraint import PER_COST, PER_ENV, ConstraintWrapper
from legged_envs.wrappers.plumbing.layers import Env, Step

STREAM_STEP = (
    0x9E3779B97F4A7C15  # what a number that is drawn adds to the 64 bits of its random stream
)


class ConstraintsAsTerminations(ConstraintWrapper):
    """The worse a cost, the likelier the episode is to end: a policy that keeps its rewards keeps its constraints.

    Chane-Sane et al. 2024, "CaT: Constraints as Terminations for Legged Locomotion Reinforcement Learning". On every
    step, with costs c (0 when satisfied)::

        m_i ← τ m_i + (1 − τ) max over the batch of c_i      at first the maximum itself; never below 1e-6
        δ_i = min(p_i · clip(c_i / m_i, 0, 1), 1)            of constraint i alone
        δ = max_i δ_i                                        info["termination_probability"] (num_envs,)
        r ← max(r (1 − δ), 0)                                rewards should not be negative: then an end is a loss

    With ``combine="product"`` δ is 1 − Π_i (1 − δ_i), as of independent causes of an end: where two constraints are
    broken both count, where CaT's maximum hides the lesser δ_i.

    In CaT the learner takes ``maximum(done, δ)`` for ``done``, so that all later rewards are discounted by 1 − δ too.
    For learners that cannot, ``terminate`` is ``"none"``: δ discounts the reward of its own step alone, which weighs
    about 1 / (1 − γ) times less, so p has to be larger; or ``"sample"``: ``terminated`` becomes true with probability
    δ, drawn from the seed of ``reset`` and the row alone, which gives CaT's returns in expectation, with more noise.
    Above :class:`AutoReset` in mode SAME_STEP that ends only the learner's episode: its next one begins where the robot
    is, and ``final_obs`` of that row is the observation itself. Above one in mode NEXT_STEP it is a ValueError.

    In CaT a schedule raises p_i. Here it follows the mean c̄_i of ``interval`` steps towards its limit d_i, first after
    ``warmup`` steps, with e_i = min(c̄_i / d_i − 1, 1)::

        b_i ← b_i exp(rate · e_i)        at first min_probability
        p_i = b_i exp(gain · e_i)        both between min_probability and max_probability; gain damps swings about d_i

    ``max_probability`` is a number or one for each cost; ``rate=0`` holds p_i there, as CaT does after its schedule
    (0.25 for most, 1 for what must never happen). ``limits`` are d, (K,), by default the environment's ``cost_limits``.
    ``info`` also holds ``original_reward`` (num_envs,) and ``max_probabilities`` (K,), the p_i of this step, and
    ``info["log"]``, where there is one, ``max_probability/<cost>``. It goes above or below :class:`AutoReset` and
    :class:`CostNormalize`, whose raw costs it reads.

    >>> import gymnasium as gym, numpy as np, legged_envs
    >>> env = ConstraintsAsTerminations(gym.make_vec("Legged/Go2-Flat-v0", num_envs=2), rate=0.0, max_probability=0.25)
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(np.full((2, 12), 0.5, np.float32))
    >>> delta = info["termination_probability"]
    >>> float(delta.max()), bool(np.allclose(reward, np.maximum(info["original_reward"] * (1.0 - delta), 0.0)))
    (0.25, True)
    """

    log_name = "max_probability"
    adapts = "probabilities"
    whole_keys = frozenset({"max_probabilities"})
    STATE = ConstraintWrapper.STATE | {"draws": PER_ENV}
    STATE |= dict.fromkeys(("probabilities", "base", "cost_maxima"), PER_COST)

    def __init__(
        self,
        env: Env,
        limits: Sequence[float] | None = None,
        *,
        min_probability: float = 0.05,
        max_probability: float | Sequence[float] = 1.0,
        rate: float = 0.05,
        gain: float = 1.0,
        tau: float = 0.95,
        combine: str = "max",
        terminate: str = "none",
        interval: int = 24,
        warmup: int = 0,
    ):
        super().__init__(env, limits, interval, warmup)
        self.max_probability = np.asarray(max_probability, np.float64)
        if self.max_probability.shape not in ((), (self.num_costs,)):
            expected = f"a number or {self.num_costs}, one for each cost"
            raise ValueError(f"max_probability must be {expected}; got {max_probability!r}")
        if not (min_probability > 0.0 and (self.max_probability >= min_probability).all()):
            given = f"{min_probability!r} and {max_probability!r}"
            raise ValueError(
                f"min_probability must be positive and max_probability at least that; got {given}"
            )
        check_number("rate", rate, 0.0)
        check_number("gain", gain, 0.0)
        check_number("tau", tau, 0.0, below=1.0)
        check_choice("combine", combine, ("max", "product"))
        check_choice("terminate", terminate, ("none", "sample"))
        if terminate == "sample" and self._over.mode is AutoresetMode.NEXT_STEP:
            order = "AutoReset(ConstraintsAsTerminations(env, terminate='sample'), 'NextStep')"
            why = "an autoreset in the next step would not reset what is sampled above it"
            raise ValueError(f"{why}: go below it, {order}, or use SAME_STEP")
        self.min_probability, self.rate, self.gain = min_probability, rate, gain
        self.tau, self.combine, self.terminate = tau, combine, terminate
        zeros = np.zeros(self.num_costs)
        self._bounds = zeros + min_probability, zeros + self.max_probability
        self._base: Any = self._bounds[0 if rate > 0.0 else 1]  # b
        self.probabilities: Any = (
            self._base
        )  # p: greatest probability that each cost ends an episode, (K,)
        self.cost_maxima: Any = (
            None  # m: running means of the greatest cost in the batch, (K,); None at first
        )
        self._draws: Any = (
            None  # where each random stream is, uint64 of NumPy; None before the first reset
        )

    def reset(self, *, seed: Seed = None, options: Options = None) -> tuple[Tree, Info]:
        observation, info = super().reset(seed=seed, options=options)
        if self.terminate == "sample" and (seed is not None or self._draws is None):
            begun = _begin_streams(seed, self.num_envs)
            mask = None if options is None or self._draws is None else options.get("reset_mask")
            self._draws = begun if mask is None else np.where(as_numpy(mask), begun, self._draws)
        return observation, info

    def _shape(self, step: Step, costs: Any) -> Step:
        observation, reward, terminated, truncated, info = step
        delta = info["termination_probability"] = self._termination_probability(costs)
        reward = self._xp.clip(reward * (1.0 - delta), min=0.0)
        if self.terminate == "sample":
            sampled = self._sample(delta) & ~(terminated | truncated)
            if any_row(sampled):
                terminated = terminated | sampled
                if self._over.mode is AutoresetMode.SAME_STEP:
                    info = _with_final(info, observation, sampled)
        return observation, reward, terminated, truncated, info

    def _termination_probability(self, costs: Any) -> Any:
        xp = self._xp
        if not (self._over.some_over and xp.all(self._over.over(costs))):
            maxima = xp.clip(xp.astype(xp.max(detached(costs), axis=0), xp.float64), min=1e-6)
            if self.cost_maxima is not None:
                maxima = self.tau * self.cost_maxima + (1.0 - self.tau) * maxima
            self.cost_maxima = maxima
        if self.cost_maxima is None:
            return xp.zeros_like(costs[:, 0])
        slope = xp.astype(self.probabilities / self.cost_maxima, costs.dtype)
        bound = xp.astype(xp.clip(self.probabilities, max=1.0), costs.dtype)
        each = xp.clip(xp.minimum(costs * slope, bound), min=0.0)
        return xp.max(each, axis=1) if self.combine == "max" else 1.0 - xp.prod(1.0 - each, axis=1)

    def _sample(self, delta: Any) -> Any:
        """Whose running episodes end by chance. Shape: (num_envs,), bool."""
        if self._draws is None:
            raise not_reset(self)
        self._draws = self._draws + STREAM_STEP
        uniform = (_splitmix64(self._draws) >> 40).astype(np.float32) * np.float32(2.0**-24)
        sampled = as_kind_of(uniform, delta) < delta
        return sampled & self._over.running(delta) if self._over.some_over else sampled

    def _end_of_interval(self, excess: Any, count: int, adapt: bool) -> None:
        if adapt and self.rate > 0.0:
            self._base = self._bounded(self._base * self._xp.exp(self.rate * excess))
            self.probabilities = self._bounded(self._base * self._xp.exp(self.gain * excess))

    def _bounded(self, probabilities: Any) -> Any:
        return self._xp.clip(probabilities, *map(self._vector, self._bounds))


def _with_final(info: Info, observation: Tree, ended: Any) -> Info:
    """``info`` of a step on which the episodes of ``ended`` (num_envs,) ended too, without a reset."""
    if "final_obs" not in info:
        final = {"final_obs": map_arrays(copied, observation), "final_info": dict(info)}
        return {**info, **final, "_final_obs": copied(ended), "_final_info": copied(ended)}
    # final_obs is a full batch: its rows of environments that went on equal the observation already
    return {
        **info,
        **{key: info[key] | ended for key in ("_final_obs", "_final_info") if key in info},
    }


def _begin_streams(seed: Seed, num_envs: int) -> Any:
    """Where random streams begin, (num_envs,): an int's at (seed, i), a list's at (seed[i], 0), None's by chance."""
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    is_list = isinstance(seed, (list, tuple, np.ndarray))
    seeds: Any = seed if is_list else [seed] * num_envs
    words = np.array([int(x) % (1 << 64) for x in seeds], np.uint64)
    indices = np.zeros_like(words) if is_list else np.arange(num_envs, dtype=np.uint64)
    return _splitmix64(_splitmix64(words) ^ (indices * STREAM_STEP))


def _splitmix64(x: Any) -> Any:
    """Mix the 64 bits of each number (Steele, Lea & Flood 2014). Arrays of uint64, whose products wrap around."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)
