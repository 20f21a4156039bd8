"""NumPy arrays from an environment of any other kind of arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from legged_envs.wrappers.array_kinds import as_kind_of, as_numpy, map_arrays
from legged_envs.wrappers.auto_reset import with_final
from legged_envs.wrappers.base import StatefulWrapper, first_array, kept


class ArrayConversion(StatefulWrapper, ABC):
    """What :class:`ToNumpy` and ``ToTorch`` share: arrays that come are converted, arrays that go converted back.

    Actions and a ``reset_mask`` go to the environment as arrays of the kind and on the device of its observations. The
    single last observations that Gymnasium's vector environments give as ``info["final_obs"]`` become a full batch,
    whose rows of environments that go on equal the observation.
    """

    def __init__(self, env: VectorEnv):
        super().__init__(env)
        self._example: Any = None

    @abstractmethod
    def convert(self, array: Any) -> Any:
        """An array of the environment as the kind that this wrapper gives."""

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=self._for_env(kept(options)))
        self._example = first_array(observation)[:0, ...]
        return map_arrays(self.convert, observation), map_arrays(self.convert, info)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(self._for_env(actions))
        final = info.get("final_obs")
        if isinstance(final, np.ndarray) and final.dtype == object:
            ended = info.get("_final_obs", terminated | truncated)
            info = {**info, "final_obs": with_final(ended, final, observation)}
        return (
            map_arrays(self.convert, observation),
            self.convert(reward),
            self.convert(terminated),
            self.convert(truncated),
            map_arrays(self.convert, info),
        )

    def state_dict(self) -> dict[str, Any]:
        return {"example": self._example}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._example = state["example"]

    def _for_env(self, tree: Any) -> Any:
        """Arrays as the environment takes them; as they are until its first observation has told which those are."""
        if self._example is None:
            return tree
        return map_arrays(lambda array: as_kind_of(array, self._example), tree)


class ToNumpy(ArrayConversion):
    """Gives observations, rewards, flags and all arrays within ``info`` as NumPy arrays, and takes such actions.

    Tensors on the CPU share their memory with the arrays.

    Args:
        env: A vector environment of any kind of arrays.
    """

    def convert(self, array: Any) -> np.ndarray:
        return as_numpy(array)
