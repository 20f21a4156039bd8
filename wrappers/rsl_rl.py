"""Short import path of the adapter for rsl_rl, which is in ``adapters/rsl_rl.py``."""

from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO, RslRlVecEnv

__all__ = ["BootstrapPPO", "RslRlVecEnv"]
