"""The wrapper that converts the arrays of an environment to NumPy, and the base of its siblings."""

from abc import ABC, abstractmethod

from legged_envs.wrappers.plumbing.arrays import (
    Array,
    Info,
    NumPyArray,
    Tree,
    TreeType,
    as_kind_of,
    as_numpy,
    first_array,
    map_arrays,
)
from legged_envs.wrappers.plumbing.base import Options, Seed, StatefulWrapper
from legged_envs.wrappers.plumbing.layers import AnyEnv, State, Step


class ArrayConversion(StatefulWrapper, ABC):
    """A wrapper that converts the arrays of an environment.

    Observations, rewards, flags and all arrays within ``info`` are converted on the way up, actions
    and masks on the way down.

    Args:
        env: The environment.
    """

    STATE = {"example": None}  # noqa: RUF012

    def __init__(self, env: AnyEnv):
        super().__init__(env)
        # An empty array of the environment's kind, None before the first reset.
        self._example: Array | None = None

    @abstractmethod
    def convert(self, array: Array) -> Array:
        """Return an array of the environment, of any shape, in the kind of this wrapper."""

    def reset(self, *, seed: Seed = None, options: Options = None) -> tuple[Tree, Info]:
        return super().reset(seed=seed, options=self._for_env(options))

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        # Without rows, so that it is cheap to keep and to save.
        self._example = first_array(observation)[:0, ...]
        return map_arrays(self.convert, observation), map_arrays(self.convert, info)

    def load_state_dict(self, state: State) -> None:
        own = self._example
        super().load_state_dict(state)
        # The state may come from a stack over an environment with arrays of another kind.
        if own is not None:
            self._example = own

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(self._for_env(actions))
        return (
            map_arrays(self.convert, observation),
            self.convert(reward),
            self.convert(terminated),
            self.convert(truncated),
            map_arrays(self.convert, info),
        )

    def _for_env(self, tree: TreeType) -> TreeType:
        """Return a tree with arrays of the environment's kind.

        Before the first observation has shown the kind, the tree stays as it is.
        """
        example = self._example
        if example is None:
            return tree
        return map_arrays(lambda array: as_kind_of(array, example), tree)


class ToNumpy(ArrayConversion):
    """Gives observations, rewards, flags and all arrays within ``info`` as NumPy arrays.

    The NumPy arrays share memory with tensors on the CPU.

    Args:
        env: The environment.

    Examples:
        >>> import gymnasium as gym
        >>> from legged_envs.wrappers.to_torch import ToTorch
        >>> env = ToTorch(gym.make_vec("CartPole-v1", num_envs=2))
        >>> type(env.reset(seed=0)[0]), type(ToNumpy(env).reset(seed=0)[0])
        (<class 'torch.Tensor'>, <class 'numpy.ndarray'>)
    """

    def convert(self, array: Array) -> NumPyArray:
        return as_numpy(array)
