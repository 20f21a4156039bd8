"""The environment classes."""

from legged_envs.envs.core import CoreVectorEnv
from legged_envs.envs.manager_task import LeggedVectorEnv, unwrap
from legged_envs.envs.single import EpisodeLimit, LeggedEnv
from legged_envs.envs.task import Evaluation, TaskHooks

__all__ = [
    "CoreVectorEnv",
    "EpisodeLimit",
    "Evaluation",
    "LeggedEnv",
    "LeggedVectorEnv",
    "TaskHooks",
    "unwrap",
]
