"""Rollout buffers. They need nothing but torch and serve any training loop."""

from legged_envs.storage.fields import MiniBatch, Transition
from legged_envs.storage.rollout_storage_mm import RolloutStorageMM

__all__ = ["MiniBatch", "RolloutStorageMM", "Transition"]
