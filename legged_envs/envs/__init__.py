"""The environment classes, and the interface of a task."""

from legged_envs.envs.core import CoreVectorEnv
from legged_envs.envs.make import make_core, unwrap
from legged_envs.envs.single import EpisodeLimit, LeggedEnv
from legged_envs.envs.task import Evaluation, Spaces, Task

__all__ = [
    "CoreVectorEnv",
    "EpisodeLimit",
    "Evaluation",
    "LeggedEnv",
    "Spaces",
    "Task",
    "make_core",
    "unwrap",
]
