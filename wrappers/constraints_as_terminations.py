"""The wrapper that treats costs as probabilities that the episode ends."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from legged_envs.checks import check_choice, check_number
from legged_envs.wrappers.plumbing.arrays import (
    Array,
    Info,
    NumPyArray,
    Tree,
    any_row,
    as_kind_of,
    as_numpy,
    copied,
    map_arrays,
)
from legged_envs.wrappers.plumbing.base import Options, Seed, Shape, not_reset
from legged_envs.wrappers.plumbing.constraint import PER_COST, PER_ENV, ConstraintWrapper
from legged_envs.wrappers.plumbing.layers import AnyEnv, Step
from legged_envs.wrappers.plumbing.terminations import running_maxima, termination_probability

STREAM_STEP = 0x9E3779B97F4A7C15
"""Increment of the 64 bits of a random stream for each number that is drawn."""


class ConstraintsAsTerminations(ConstraintWrapper):
    """Makes the end of an episode likelier the worse a cost is, which discounts the reward.

    A policy keeps its rewards by keeping its constraints. From Chane-Sane et al. 2024, "CaT:
    Constraints as Terminations for Legged Locomotion Reinforcement Learning". On every step, with
    costs c that are 0 when satisfied::

        m_i ← τ m_i + (1 - τ) max over the batch of c_i      at first the maximum itself
        δ_i = min(p_i · clip(c_i / m_i, 0, 1), 1)            of constraint i alone
        δ = max_i δ_i                                        info["termination_probability"]
        r ← max(r (1 - δ), 0)

    Rewards should not be negative: then the end of an episode is a loss. With ``combine="product"``
    δ is 1 - Π_i (1 - δ_i), as for independent causes of an end. Where two constraints are broken
    both count, while the maximum of CaT hides the lesser δ_i.

    In CaT the learner takes ``maximum(done, δ)`` for ``done``, so that all later rewards are
    discounted by 1 - δ too. ``terminate`` is for learners that cannot do that:

    - ``"none"``: δ discounts only the reward of the same step. A discount of one step weighs about
        1 / (1 - γ) times less, so p has to be larger.
    - ``"sample"``: ``terminated`` becomes true with probability δ, drawn only from the seed of
      ``reset`` and the row. Sampling gives CaT's returns in expectation, with more noise. Above
      ``AutoReset`` in mode SAME_STEP sampling ends only the learner's episode: the learner's next
      episode starts where the robot is, and ``final_obs`` of its row is the observation itself.

    In CaT a schedule raises p_i. Here p_i follows the mean c̄_i of ``interval`` steps towards its
    limit d_i, with e_i = min(c̄_i / d_i - 1, 1)::

        b_i ← b_i exp(rate · e_i)        at first min_probability
        p_i = b_i exp(gain · e_i)        gain damps swings about d_i

    b_i and p_i stay between ``min_probability`` and ``max_probability``. With ``rate=0`` p_i stays
    at ``max_probability``, as in CaT after its schedule (0.25 for most constraints, 1 for what must
    never happen).

    ``info`` also holds ``original_reward`` (num_envs,) and ``max_probabilities`` (K,), the p_i of
    this step, and ``info["log"]``, where there is one, ``max_probability/<cost>``. The wrapper goes
    above or below ``AutoReset`` and ``CostNormalize``; it reads raw costs.

    Args:
        env: The environment.
        limits: Limits d_i of the mean costs per step. Shape: (K,). None: ``cost_limits`` of
            ``env``.
        min_probability: Smallest b_i and p_i.
        max_probability: Largest b_i and p_i, a number or one for each cost.
        rate: Rate of b_i.
        gain: Gain of p_i.
        tau: τ, the share of the running maxima that a step keeps.
        combine: ``"max"`` or ``"product"``.
        terminate: ``"none"`` or ``"sample"``.
        interval: Number of steps between two adaptations.
        warmup: Number of steps before the first adaptation.

    Raises:
        ValueError: An argument is out of its range, or ``terminate="sample"`` is used above an
            autoreset in mode NEXT_STEP.

    Examples:
        >>> import gymnasium as gym, numpy as np, legged_envs
        >>> env = gym.make_vec("Legged/Go2-Flat-v0", num_envs=2)
        >>> env = ConstraintsAsTerminations(env, rate=0.0, max_probability=0.25)
        >>> observation, info = env.reset(seed=0)
        >>> action = np.full((2, 12), 0.5, np.float32)
        >>> observation, reward, terminated, truncated, info = env.step(action)
        >>> delta = info["termination_probability"]
        >>> float(delta.max())
        0.25
        >>> discounted = info["original_reward"] * (1.0 - delta)
        >>> bool(np.allclose(reward, np.maximum(discounted, 0.0)))
        True
    """

    log_name = "max_probability"
    whole_keys = frozenset({"max_probabilities"})
    STATE: ClassVar[dict[str, Shape | None]] = {
        **ConstraintWrapper.STATE,
        "draws": PER_ENV,
        "probabilities": PER_COST,
        "base": PER_COST,
        "cost_maxima": PER_COST,
    }
    REQUIRED: ClassVar[frozenset[str]] = frozenset({"cost_sums", "probabilities", "base"})

    def __init__(
        self,
        env: AnyEnv,
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
        check_number("rate", rate, 0.0)
        check_number("gain", gain, 0.0)
        check_number("tau", tau, 0.0, below=1.0)
        check_choice("combine", combine, ("max", "product"))
        check_choice("terminate", terminate, ("none", "sample"))
        if terminate == "sample" and self._over.mode is AutoresetMode.NEXT_STEP:
            raise ValueError(
                "an autoreset in the next step would not reset what is sampled above it. Go below "
                "it, AutoReset(ConstraintsAsTerminations(env, terminate='sample'), 'NextStep'), "
                "or use SAME_STEP."
            )
        self.min_probability = min_probability
        """Smallest probability that a cost at its maximum ends an episode."""
        self.max_probability = self._check_max_probability(min_probability, max_probability)
        """Largest probability that a cost at its maximum ends an episode. Shape: () or (K,)."""
        self.rate = rate
        """Rate at which the probabilities follow the excess of the costs."""
        self.gain = gain
        """Gain of the present excess in the probabilities."""
        self.tau = tau
        """Share of the running maxima that a step keeps."""
        self.combine = combine
        """``"max"`` or ``"product"``."""
        self.terminate = terminate
        """``"none"`` or ``"sample"``."""
        zeros = np.zeros(self.num_costs)
        self._low = zeros + min_probability
        self._high = zeros + self.max_probability
        # b of the class docstring.
        self._base: Array = self._low if rate > 0.0 else self._high

        self.probabilities: Array = self._base
        """Largest probability p that each cost ends an episode. Shape: (K,)."""
        self.cost_maxima: Array | None = None
        """Running mean m of the largest cost in the batch, None before a step. Shape: (K,)."""
        # Positions of the random streams, None before the first reset.
        self._draws: NDArray[np.uint64] | None = None

    def _check_max_probability(
        self, min_probability: float, max_probability: float | Sequence[float]
    ) -> NumPyArray:
        highest = np.asarray(max_probability, np.float64)
        if highest.shape not in ((), (self.num_costs,)):
            raise ValueError(
                f"max_probability must be a number or {self.num_costs}, one for each cost; "
                f"got {max_probability!r}"
            )
        if not (min_probability > 0.0 and (highest >= min_probability).all()):
            raise ValueError(
                "min_probability must be positive and max_probability at least that; "
                f"got {min_probability!r} and {max_probability!r}"
            )
        return highest

    @property
    def adapted(self) -> Array:
        return self.probabilities

    def reset(self, *, seed: Seed = None, options: Options = None) -> tuple[Tree, Info]:
        observation, info = super().reset(seed=seed, options=options)
        if self.terminate == "sample" and (seed is not None or self._draws is None):
            mask = None if options is None else options.get("reset_mask")
            # Where several processes share a batch, each continues the numbers of the others.
            first_env = getattr(getattr(self.env.unwrapped, "random", None), "first_env", 0)
            begun = _begin_streams(seed, self.num_envs, first_env)
            # A partial reset must not change the random numbers of the other environments.
            if mask is None or self._draws is None:
                self._draws = begun
            else:
                self._draws = np.where(as_numpy(mask), begun, self._draws)
        return observation, info

    def _shape(self, step: Step, costs: Array) -> Step:
        observation, reward, terminated, truncated, info = step
        xp = self._xp
        # In float64: float32 loses most digits of 1 - δ where δ is close to 1.
        exact = self._termination_probability(costs)
        delta = xp.astype(exact, costs.dtype)
        info["termination_probability"] = delta
        discounted = xp.clip(xp.astype(reward, xp.float64) * (1.0 - exact), min=0.0)
        reward = xp.astype(discounted, reward.dtype)
        if self.terminate == "sample":
            # An episode that has ended anyway keeps its own reason.
            sampled = self._sample(delta) & ~(terminated | truncated)
            if any_row(sampled):
                terminated = terminated | sampled
                # Nothing below resets these rows: their last observation is the present one.
                if self._over.mode is AutoresetMode.SAME_STEP:
                    info = _with_final(info, observation, sampled)
        return observation, reward, terminated, truncated, info

    def _termination_probability(self, costs: Array) -> Array:
        """Return δ of each environment. Shape: (num_envs,), float64."""
        xp = self._xp
        if not self._all_over(costs):
            self.cost_maxima = running_maxima(self.cost_maxima, costs, self.tau)
        if self.cost_maxima is None:
            nothing: Array = xp.zeros_like(xp.astype(costs[:, 0], xp.float64))
            return nothing
        delta: Array = termination_probability(
            costs, self.cost_maxima, self.probabilities, self.combine
        )
        return delta

    def _sample(self, delta: Array) -> Array:
        """Return the running episodes that end by chance. Shape: (num_envs,), bool."""
        if self._draws is None:
            raise not_reset(self)
        self._draws = self._draws + np.uint64(STREAM_STEP)
        # The upper 24 bits are as many as a float32 in [0, 1) holds.
        uniform = (_mix_bits(self._draws) >> 40).astype(np.float32) * np.float32(2.0**-24)
        sampled = as_kind_of(uniform, delta) < delta
        return sampled & self._over.running(delta) if self._over.some_over else sampled

    def _end_of_interval(self, excess: Array, count: int, adapt: bool) -> None:
        if adapt and self.rate > 0.0:
            xp = self._xp
            self._base = self._bounded(self._base * xp.exp(self.rate * excess))
            self.probabilities = self._bounded(self._base * xp.exp(self.gain * excess))

    def _bounded(self, probabilities: Array) -> Array:
        low = self._like_costs(self._low)
        high = self._like_costs(self._high)
        bounded: Array = self._xp.clip(probabilities, low, high)
        return bounded


def _with_final(info: Info, observation: Tree, ended: Array) -> Info:
    """Return the ``info`` of a step that ended more episodes, without resetting them.

    Args:
        info: Info of the step.
        observation: Observation of the step. It is the last one of the ended episodes.
        ended: Environments with an ended episode. Shape: (num_envs,), bool.
    """
    if "final_obs" not in info:
        return {
            **info,
            "final_obs": map_arrays(copied, observation),
            "final_info": dict(info),
            "_final_obs": copied(ended),
            "_final_info": copied(ended),
        }
    # final_obs stays: its rows of running episodes equal the observation already.
    final = dict(info)
    for key in ("_final_obs", "_final_info"):
        if key in info:
            final[key] = info[key] | ended
    return final


# --- random numbers -------------------------------------------------------------------------------


def _begin_streams(seed: Seed, num_envs: int, first_env: int) -> NDArray[np.uint64]:
    """Return the positions at which the random streams of a seed start. Shape: (num_envs,).

    That of environment i follows from (seed, first_env + i), or from (seed[i], 0) for a list of
    seeds. None draws a seed.
    """
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(seed, (list, tuple, np.ndarray)):
        seeds: Sequence[Any] = seed
        indices = np.zeros(len(seed), np.uint64)
    else:
        seeds = [seed] * num_envs
        indices = np.arange(first_env, first_env + num_envs, dtype=np.uint64)
    words = np.array([int(each) % (1 << 64) for each in seeds], np.uint64)
    return _mix_bits(_mix_bits(words) ^ (indices * np.uint64(STREAM_STEP)))


def _mix_bits(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the 64 bits of each number by splitmix64 (Steele, Lea & Flood 2014).

    Products wrap around.
    """
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
