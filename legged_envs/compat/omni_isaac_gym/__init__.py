"""OmniIsaacGymEnvs' way to write a task: ``RLTask``, and the vector environments that step it."""

from legged_envs.compat.omni_isaac_gym.rl_task import RLTask
from legged_envs.compat.omni_isaac_gym.sim_config import SimConfig
from legged_envs.compat.omni_isaac_gym.vec_env import (
    TrainerMT,
    VecEnvBase,
    VecEnvMT,
    VecEnvRLGames,
    VecEnvRLGamesMT,
)

__all__ = [
    "RLTask",
    "SimConfig",
    "TrainerMT",
    "VecEnvBase",
    "VecEnvMT",
    "VecEnvRLGames",
    "VecEnvRLGamesMT",
]
