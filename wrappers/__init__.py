"""Vector-environment wrappers and library adapters. Import them from ``legged_envs.wrappers``.

Adapters import their library only when their own module is imported: ``legged_envs.wrappers.rsl_rl``.
"""

from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.episode_statistics import EpisodeStatistics
from legged_envs.wrappers.time_limit import TimeLimit

__all__ = ["AutoReset", "EpisodeStatistics", "TimeLimit"]
