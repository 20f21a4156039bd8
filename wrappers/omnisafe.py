"""Door of the adapter for OmniSafe, which lives in ``adapters/omnisafe.py``."""

from legged_envs.wrappers.adapters.omnisafe import (
    LeggedCMDP,
    episode_cost_limit,
    make,
    register,
)

__all__ = ["LeggedCMDP", "episode_cost_limit", "make", "register"]
