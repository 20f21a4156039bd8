"""Rollout buffers. The buffers need only torch, and serve any training loop."""

from legged_envs.storage.rollout_storage_mm import RolloutStorageMM
from legged_envs.storage.transition import MiniBatch, Transition

__all__ = ["MiniBatch", "RolloutStorageMM", "Transition"]
