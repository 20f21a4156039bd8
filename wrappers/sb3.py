"""The adapter for Stable-Baselines3, imported from here: see ``adapters/sb3.py``."""

from legged_envs.wrappers.adapters.sb3 import (
    Sb3VecEnv as Sb3VecEnv,
)
