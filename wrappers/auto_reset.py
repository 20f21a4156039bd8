"""Turn an environment that does not reset by itself into one that does."""

from __future__ import annotations

import copy
from typing import Any

from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs.wrappers.base import StatefulWrapper, end_episodes, zeros_like_batch


class AutoReset(StatefulWrapper):
    """Resets environments whose episode ended, as Gymnasium defines its two autoreset modes.

    ``SAME_STEP``: the step that ends an episode returns the next episode's first observation; ``info["final_obs"]`` is
    the true last observation, equal to the observation in rows that go on, so it serves as next observation for all;
    ``info["_final_obs"]`` marks the rows that ended and ``info["final_info"]`` is what that step reported. Costs and
    all else stay at the top level of ``info`` on the step they belong to.

    ``NEXT_STEP``: the step after the one that ended an episode ignores that environment's action and returns the next
    episode's first observation with reward 0, cost 0 and both flags False.

    Args:
        env: A vector environment with ``metadata["autoreset_mode"]`` DISABLED and partial resets.
        mode: An :class:`~gymnasium.vector.AutoresetMode` or its value.

    Raises:
        ValueError: If ``mode`` is DISABLED or ``env`` already resets by itself.
    """

    def __init__(self, env: VectorEnv, mode: AutoresetMode | str = AutoresetMode.SAME_STEP):
        super().__init__(env)
        self.mode = AutoresetMode(mode)
        if self.mode is AutoresetMode.DISABLED:
            raise ValueError("AutoReset's mode must be SAME_STEP or NEXT_STEP; leave the wrapper out for DISABLED")
        if env.metadata.get("autoreset_mode") is not AutoresetMode.DISABLED:
            raise ValueError(
                f"AutoReset needs an environment with autoreset DISABLED, got {env.metadata.get('autoreset_mode')}"
            )
        self.metadata = {**env.metadata, "autoreset_mode": self.mode}
        self._ended: Any = None

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        mask = None if options is None else options.get("reset_mask")
        if mask is None or self._ended is None:
            self._ended = zeros_like_batch(observation, self.num_envs, "bool")
        else:
            self._ended = self._ended & ~mask
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        if self.mode is AutoresetMode.SAME_STEP:
            return self._same_step(actions)
        return self._next_step(actions)

    def _same_step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        ended = terminated | truncated
        if ended.any():
            final_info = info
            final_observation = observation
            observation, reset_info = self.env.reset(options={"reset_mask": ended})
            info = {
                **info,
                **reset_info,
                "final_obs": final_observation,
                "_final_obs": ended,
                "final_info": final_info,
                "_final_info": copy.deepcopy(ended),
            }
        return observation, reward, terminated, truncated, info

    def _next_step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        resetting = self._ended
        observation, reward, terminated, truncated, info = self.env.step(actions)
        if resetting.any():
            observation, reset_info = self.env.reset(options={"reset_mask": resetting})
            going = ~resetting
            reward = reward * going
            terminated, truncated = terminated & going, truncated & going
            info = {**info, **reset_info}
            for key in ("cost", "costs"):
                if key in info:
                    info[key] = info[key] * (going if info[key].ndim == 1 else going[:, None])
        self._ended = terminated | truncated
        if self._ended.any():
            end_episodes(self.env, self._ended)
        return observation, reward, terminated, truncated, info

    def state_dict(self) -> dict[str, Any]:
        return {"ended": copy.deepcopy(self._ended)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._ended = copy.deepcopy(state["ended"])
