"""Vector-environment wrappers, and adapters in modules that each import their library."""

from legged_envs.wrappers.action_repeat import ActionRepeat as ActionRepeat
from legged_envs.wrappers.action_scale import ActionScale as ActionScale
from legged_envs.wrappers.auto_reset import AutoReset as AutoReset
from legged_envs.wrappers.constraints_as_terminations import (
    ConstraintsAsTerminations as ConstraintsAsTerminations,
)
from legged_envs.wrappers.cost_normalize import CostNormalize as CostNormalize
from legged_envs.wrappers.cost_reduce import CostReduce as CostReduce
from legged_envs.wrappers.episode_statistics import EpisodeStatistics as EpisodeStatistics
from legged_envs.wrappers.from_cmdp import FromCMDP as FromCMDP
from legged_envs.wrappers.lagrangian_reward import LagrangianReward as LagrangianReward
from legged_envs.wrappers.obs_normalize import ObsNormalize as ObsNormalize
from legged_envs.wrappers.plumbing.cmdp import CMDP as CMDP
from legged_envs.wrappers.plumbing.cmdp import VectorCMDP as VectorCMDP
from legged_envs.wrappers.plumbing.normalizer import Normalizer as Normalizer
from legged_envs.wrappers.reward_normalize import RewardNormalize as RewardNormalize
from legged_envs.wrappers.saute_budget import SauteBudget as SauteBudget
from legged_envs.wrappers.time_limit import TimeLimit as TimeLimit
from legged_envs.wrappers.to_numpy import ToNumpy as ToNumpy
from legged_envs.wrappers.to_torch import ToTorch as ToTorch
from legged_envs.wrappers.unsqueeze import Unsqueeze as Unsqueeze
