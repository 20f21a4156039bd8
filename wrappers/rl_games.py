"""The adapter for rl_games, imported from here: see ``adapters/rl_games.py``."""

from legged_envs.wrappers.adapters.rl_games import (
    BootstrapPPO as BootstrapPPO,
)
from legged_envs.wrappers.adapters.rl_games import (
    BootstrapRunner as BootstrapRunner,
)
from legged_envs.wrappers.adapters.rl_games import (
    RlGamesVecEnv as RlGamesVecEnv,
)
from legged_envs.wrappers.adapters.rl_games import (
    register as register,
)
