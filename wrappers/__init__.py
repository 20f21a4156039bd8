"""Vector-environment wrappers and library adapters. Import them from ``legged_envs.wrappers``.

Adapters import their library, so each is imported by its own module: ``legged_envs.wrappers.sb3``, ``rsl_rl``,
``skrl``, ``rl_games`` and ``omnisafe``.
"""

from legged_envs.wrappers.action_repeat import ActionRepeat
from legged_envs.wrappers.action_scale import ActionScale
from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.cmdp import CMDP, VectorCMDP
from legged_envs.wrappers.constraints_as_terminations import ConstraintsAsTerminations
from legged_envs.wrappers.cost_normalize import CostNormalize
from legged_envs.wrappers.cost_reduce import CostReduce
from legged_envs.wrappers.episode_statistics import EpisodeStatistics
from legged_envs.wrappers.from_cmdp import FromCMDP
from legged_envs.wrappers.lagrangian_reward import LagrangianReward
from legged_envs.wrappers.normalizer import Normalizer
from legged_envs.wrappers.obs_normalize import ObsNormalize
from legged_envs.wrappers.reward_normalize import RewardNormalize
from legged_envs.wrappers.time_limit import TimeLimit
from legged_envs.wrappers.to_numpy import ToNumpy
from legged_envs.wrappers.to_torch import ToTorch
from legged_envs.wrappers.unsqueeze import Unsqueeze

__all__ = [
    "CMDP",
    "ActionRepeat",
    "ActionScale",
    "AutoReset",
    "ConstraintsAsTerminations",
    "CostNormalize",
    "CostReduce",
    "EpisodeStatistics",
    "FromCMDP",
    "LagrangianReward",
    "Normalizer",
    "ObsNormalize",
    "RewardNormalize",
    "TimeLimit",
    "ToNumpy",
    "ToTorch",
    "Unsqueeze",
    "VectorCMDP",
]
