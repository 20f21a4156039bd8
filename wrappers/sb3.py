"""Short import path of the adapter for Stable-Baselines3, which is in ``adapters/sb3.py``."""

from legged_envs.wrappers.adapters.sb3 import Sb3VecEnv

__all__ = ["Sb3VecEnv"]
