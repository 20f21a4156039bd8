"""NumPy arrays from an environment of any other kind of arrays."""

from abc import abstractmethod
from typing import Any

from legged_envs.wrappers.plumbing.arrays import (
    Array,
    Info,
    NumPyArray,
    Tree,
    as_kind_of,
    as_numpy,
    first_array,
    map_arrays,
)
from legged_envs.wrappers.plumbing.base import Options, Seed, StatefulWrapper
from legged_envs.wrappers.plumbing.layers import Step


class ArrayConversion(StatefulWrapper):
    """What ``ToNumpy`` and ``ToTorch`` share: arrays that come are converted, and actions and masks on the way down."""

    STATE = {"example": None}  # noqa: RUF012

    def __init__(self, env: Any):
        super().__init__(env)
        self._example: Any = None  # an empty array of the kind that the environment gives and takes

    @abstractmethod
    def convert(self, array: Array) -> Array:
        """An array of the environment, of any shape, as the kind that this wrapper gives."""

    def reset(self, *, seed: Seed = None, options: Options = None) -> tuple[Tree, Info]:
        return super().reset(seed=seed, options=self._for_env(options))

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        self._example = first_array(observation)[:0, ...]
        return map_arrays(self.convert, observation), map_arrays(self.convert, info)

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(self._for_env(actions))
        reward, terminated, truncated = (
            self.convert(array) for array in (reward, terminated, truncated)
        )
        return (
            map_arrays(self.convert, observation),
            reward,
            terminated,
            truncated,
            map_arrays(self.convert, info),
        )

    def _for_env(self, tree: Any) -> Any:
        """Arrays as the environment takes them; as they are until its first observation has told which those are."""
        if self._example is None:
            return tree
        return map_arrays(lambda array: as_kind_of(array, self._example), tree)


class ToNumpy(ArrayConversion):
    """Observations, rewards, flags and all arrays within ``info`` as NumPy arrays that share memory with CPU tensors.

    >>> import gymnasium as gym
    >>> from legged_envs.wrappers.to_torch import ToTorch
    >>> env = ToTorch(gym.make_vec("CartPole-v1", num_envs=2))
    >>> type(env.reset(seed=0)[0]), type(ToNumpy(env).reset(seed=0)[0])
    (<class 'torch.Tensor'>, <class 'numpy.ndarray'>)
    """

    def convert(self, array: Array) -> NumPyArray:
        return as_numpy(array)
