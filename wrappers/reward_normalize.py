"""Scale rewards by running statistics."""

from typing import Any

from legged_envs.wrappers.plumbing.arrays import Tree, either
from legged_envs.wrappers.plumbing.layers import Step
from legged_envs.wrappers.plumbing.normalizer import (
    Normalizer,
    NormalizingWrapper,
    ReturnScale,
    check_normalizer,
)


class RewardNormalize(NormalizingWrapper):
    """Rewards are divided by the standard deviation of the discounted return, and clipped.

    ``scale="step"`` standardises each step's reward instead, ``(r − mean) / std``, as OmniSafe does. That changes the
    signs of rewards, and with them what the length of an episode is worth. ``info["original_reward"]`` is the raw one.
    The step of an autoreset in the next step has reward 0 and enters no statistics. ``norm``, of shape (), are
    statistics of the return (of the reward with ``scale="step"``) to go on from, used, not copied, with its own
    ``clip``, 5 in a new one unless given. Something else is a ``TypeError``, another shape a ``ValueError``.

    >>> import gymnasium as gym, numpy as np
    >>> env = gym.make_vec("Pendulum-v1", num_envs=8, vectorization_mode="sync")
    >>> def rewards(env):
    ...     env.reset(seed=0)
    ...     return np.array([env.step(np.zeros((8, 1), np.float32))[1] for _ in range(100)])
    >>> raw, scaled = rewards(env), rewards(RewardNormalize(env))
    >>> bool(raw.min() < -10.0), bool(scaled[50:].min() > -1.0), bool(((scaled < 0.0) == (raw < 0.0)).all())
    (True, True, True)
    """

    saved_as = "reward_normalizer"

    def __init__(
        self,
        env: Any,
        norm: Normalizer | None = None,
        *,
        scale: str = "return",
        gamma: float = 0.99,
        clip: float | None = None,
    ):
        super().__init__(env)
        self.normalizer = check_normalizer("RewardNormalize", norm, (), clip)
        self._scales["reward"] = ReturnScale(self.normalizer, self.num_envs, scale, gamma)

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        ended = either(terminated, truncated)
        scaled = self._scales["reward"](reward, ended, self._over, self.frozen)
        self._over.step(ended)
        return observation, scaled, terminated, truncated, {**info, "original_reward": reward}
