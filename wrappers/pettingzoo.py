"""The adapter for PettingZoo, imported from here: see ``adapters/pettingzoo.py``."""

from legged_envs.wrappers.adapters.pettingzoo import (
    PettingZooEnv as PettingZooEnv,
)
