"""Scale rewards by running statistics."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import VectorEnv

from legged_envs.wrappers.array_kinds import any_row
from legged_envs.wrappers.base import kept
from legged_envs.wrappers.normalizer import Normalizer, check_normalizer
from legged_envs.wrappers.normalizing_wrapper import NormalizingWrapper
from legged_envs.wrappers.return_scale import ReturnScale


class RewardNormalize(NormalizingWrapper):
    """Rewards are divided by the standard deviation of the discounted return, and clipped.

    ``scale="step"`` standardises each step's reward instead, ``(r − mean) / std``, as OmniSafe does. That changes the
    signs of rewards, and with them what the length of an episode is worth. ``info["original_reward"]`` is the raw one.
    The step of an autoreset in the next step has reward 0 and enters no statistics.

    Args:
        env: A vector environment.
        norm: Statistics to go on from, of shape (): of the return, or with ``scale="step"`` of the reward. It is used,
            not copied. None begins anew.
        scale: ``"return"`` or ``"step"``.
        gamma: Discount factor of the return.
        clip: Bound of the scaled rewards, 5 unless given. A ``norm`` has its own.

    Raises:
        TypeError: If ``norm`` is no ``Normalizer``.
        ValueError: If its shape does not fit, or another argument is not valid.
    """

    saved_as = "reward_normalizer"

    def __init__(
        self,
        env: VectorEnv,
        norm: Normalizer | None = None,
        *,
        scale: str = "return",
        gamma: float = 0.99,
        clip: float | None = None,
    ):
        super().__init__(env)
        self.normalizer = check_normalizer("RewardNormalize", norm, (), clip)
        self._scale = ReturnScale(self.normalizer, scale, gamma)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=kept(options))
        self._scale.begin_episodes(self._begin_episodes(options))
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        ended = terminated | truncated
        if not any_row(ended):
            ended = None
        counted = None if self._over is None else self._counted(reward)
        scaled = self._scale(reward, ended, counted, self.frozen)
        if ended is not None or counted is not None:
            self._end_of_step(ended)
        return observation, scaled, terminated, truncated, {**info, "original_reward": reward}

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "scale": self._scale.state_dict()}

    def _check_statistics(self, state: dict[str, Any]) -> None:
        super()._check_statistics(state)
        self._scale.check_state(state["scale"], self.num_envs)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._scale.load_state_dict(state["scale"])
