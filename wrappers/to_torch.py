"""Torch tensors from an environment of any other kind of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv

from legged_envs.wrappers.array_kinds import as_numpy
from legged_envs.wrappers.to_numpy import ArrayConversion


class ToTorch(ArrayConversion):
    """Gives observations, rewards, flags and all arrays within ``info`` as tensors, and takes such actions.

    On the CPU the tensors share the memory of NumPy arrays. Types of numbers stay what they are.

    Args:
        env: A vector environment of any kind of arrays.
        device: Where the tensors are to be.
    """

    def __init__(self, env: VectorEnv, device: torch.device | str = "cpu"):
        super().__init__(env)
        self.device = torch.device(device)

    def convert(self, array: Any) -> torch.Tensor:
        if not isinstance(array, torch.Tensor):
            array = as_numpy(array)
            # Torch shares memory only with arrays that may be written and whose strides are positive.
            if not array.flags.writeable or min(array.strides, default=0) < 0:
                array = np.array(array, order="C")
        return torch.as_tensor(array, device=self.device)
