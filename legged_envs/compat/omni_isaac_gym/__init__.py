"""OmniIsaacGymEnvs' way to write a task: ``RLTask``, and the vector environments that step it."""

from legged_envs.compat.omni_isaac_gym.rl_task import RLTask, SimConfig
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
