"""The environment classes."""

from legged_envs.envs.legged_env import LeggedEnv
from legged_envs.envs.legged_vector_env import LeggedVectorEnv, unwrap

__all__ = ["LeggedEnv", "LeggedVectorEnv", "unwrap"]
