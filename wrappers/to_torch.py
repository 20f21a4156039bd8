"""The wrapper that converts the arrays of an environment to torch tensors."""

from typing import TYPE_CHECKING

from legged_envs.wrappers.plumbing.arrays import Array, as_numpy, shareable
from legged_envs.wrappers.plumbing.device import Device
from legged_envs.wrappers.plumbing.layers import AnyEnv
from legged_envs.wrappers.to_numpy import ArrayConversion

if TYPE_CHECKING:
    import torch


class ToTorch(ArrayConversion):
    """Gives observations, rewards, flags and all arrays within ``info`` as torch tensors.

    Tensors have the dtype of the environment's arrays, and share memory with them on the CPU.

    Args:
        env: The environment.
        device: Device of the tensors.

    Examples:
        >>> import gymnasium as gym
        >>> env = gym.make_vec("CartPole-v1", num_envs=2)
        >>> type(env.reset(seed=0)[0]), type(ToTorch(env).reset(seed=0)[0])
        (<class 'numpy.ndarray'>, <class 'torch.Tensor'>)
    """

    def __init__(self, env: AnyEnv, device: Device = "cpu"):
        # Imported here, so that the other wrappers work without torch.
        import torch

        super().__init__(env)
        self.device = torch.device(device)
        """Device of the tensors."""

    def convert(self, array: Array) -> "torch.Tensor":
        import torch

        given = array if isinstance(array, torch.Tensor) else shareable(as_numpy(array))
        return torch.as_tensor(given, device=self.device)
