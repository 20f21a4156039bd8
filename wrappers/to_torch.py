"""Torch tensors from an environment of any other kind of arrays."""

from typing import TYPE_CHECKING, Any

from legged_envs.wrappers.plumbing.arrays import Array, as_numpy, shareable
from legged_envs.wrappers.to_numpy import ArrayConversion

if TYPE_CHECKING:
    import torch


class ToTorch(ArrayConversion):
    """All arrays of a reset or step as tensors of their own dtype on ``device``; CPU ones share the arrays' memory.

    >>> import gymnasium as gym
    >>> env = gym.make_vec("CartPole-v1", num_envs=2)
    >>> type(env.reset(seed=0)[0]), type(ToTorch(env).reset(seed=0)[0])
    (<class 'numpy.ndarray'>, <class 'torch.Tensor'>)
    """

    def __init__(self, env: Any, device: "torch.device | str" = "cpu"):
        import torch  # here, so that the other wrappers can be imported without it

        super().__init__(env)
        self.device = torch.device(device)

    def convert(self, array: Array) -> "torch.Tensor":
        import torch

        given = array if isinstance(array, torch.Tensor) else shareable(as_numpy(array))
        return torch.as_tensor(given, device=self.device)
