"""Rollout buffers. They need nothing but torch and serve any training loop."""

from legged_envs.storage.mini_batch import MiniBatch
from legged_envs.storage.rollout_storage_mm import RolloutStorageMM
from legged_envs.storage.transition import Transition

__all__ = ["MiniBatch", "RolloutStorageMM", "Transition"]
