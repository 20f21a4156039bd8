"""Short import path of the adapter for rl_games, which is in ``adapters/rl_games.py``."""

from legged_envs.wrappers.adapters.rl_games import (
    BootstrapPPO,
    BootstrapRunner,
    RlGamesVecEnv,
    register,
)

__all__ = ["BootstrapPPO", "BootstrapRunner", "RlGamesVecEnv", "register"]
