"""Short import path of the adapter for PettingZoo, which is in ``adapters/pettingzoo.py``."""

from legged_envs.wrappers.adapters.pettingzoo import PettingZooEnv

__all__ = ["PettingZooEnv"]
