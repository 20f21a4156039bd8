"""Torch tensors from an environment of any other kind of arrays."""

from typing import TYPE_CHECKING, Any

from legged_envs.wrappers.arrays import Array, as_numpy, shareable
from legged_envs.wrappers.to_numpy import ArrayConversion

if TYPE_CHECKING:
    import torch


class ToTorch(ArrayConversion):
    """Observations, rewards, flags and all arrays within ``info`` as tensors of their own dtype on ``device``.

    On the CPU they share the memory of NumPy arrays.

    Example:
        >>> import gymnasium as gym, torch
        >>> env = gym.make_vec("CartPole-v1", num_envs=2)
        >>> type(env.reset(seed=0)[0])
        <class 'numpy.ndarray'>
        >>> env = ToTorch(env)
        >>> _ = env.reset(seed=0)
        >>> env.step(torch.zeros(2, dtype=torch.int64))[1]
        tensor([1., 1.])
    """

    def __init__(self, env: Any, device: "torch.device | str" = "cpu"):
        import torch  # here, so that the other wrappers can be imported without it

        super().__init__(env)
        self.device = torch.device(device)

    def convert(self, array: Array) -> "torch.Tensor":
        import torch

        given = array if isinstance(array, torch.Tensor) else shareable(as_numpy(array))
        return torch.as_tensor(given, device=self.device)
