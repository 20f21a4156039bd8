"""Short import path of the adapter for skrl, which is in ``adapters/skrl.py``."""

from legged_envs.wrappers.adapters.skrl import (
    BootstrapIPPO,
    BootstrapMAPPO,
    BootstrapPPO,
    BootstrapRunner,
    FinalObservations,
    SkrlMultiAgentEnv,
    SkrlVecEnv,
)

__all__ = [
    "BootstrapIPPO",
    "BootstrapMAPPO",
    "BootstrapPPO",
    "BootstrapRunner",
    "FinalObservations",
    "SkrlMultiAgentEnv",
    "SkrlVecEnv",
]
