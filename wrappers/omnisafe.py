"""Short import path of the adapter for OmniSafe, which is in ``adapters/omnisafe.py``."""

from legged_envs.wrappers.adapters.omnisafe import (
    LeggedCMDP,
    episode_cost_limit,
    make,
    register,
)

__all__ = ["LeggedCMDP", "episode_cost_limit", "make", "register"]
