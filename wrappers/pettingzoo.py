"""Door of the adapter for PettingZoo, which lives in ``adapters/pettingzoo.py``."""

from legged_envs.wrappers.adapters.pettingzoo import PettingZooEnv

__all__ = ["PettingZooEnv"]
