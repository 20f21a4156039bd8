"""The environment classes."""

from legged_envs.envs.core import CoreVectorEnv
from legged_envs.envs.hooks import Evaluation, TaskHooks
from legged_envs.envs.legged_env import EpisodeLimit, LeggedEnv
from legged_envs.envs.manager_env import LeggedVectorEnv, unwrap

__all__ = [
    "CoreVectorEnv",
    "EpisodeLimit",
    "Evaluation",
    "LeggedEnv",
    "LeggedVectorEnv",
    "TaskHooks",
    "unwrap",
]
