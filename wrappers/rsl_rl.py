"""The adapter for rsl_rl, imported from here: see ``adapters/rsl_rl.py``."""

from legged_envs.wrappers.adapters.rsl_rl import (
    BootstrapPPO as BootstrapPPO,
)
from legged_envs.wrappers.adapters.rsl_rl import (
    RslRlVecEnv as RslRlVecEnv,
)
