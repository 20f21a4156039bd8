"""One manager per kind of term: each evaluates a dict of named terms and keeps their sums."""

from legged_envs.managers.action import ActionManager
from legged_envs.managers.command import CommandManager
from legged_envs.managers.curriculum import CurriculumManager, CurriculumTermCfg
from legged_envs.managers.event import EventManager, EventTermCfg
from legged_envs.managers.manager import Manager
from legged_envs.managers.observation import ObservationManager
from legged_envs.managers.observation_cfg import ObservationGroupCfg, ObservationTermCfg
from legged_envs.managers.observation_group import ObservationGroup
from legged_envs.managers.reward import CostManager, CostTermCfg, RewardManager, RewardTermCfg
from legged_envs.managers.termination import TerminationManager, TerminationTermCfg

__all__ = [
    "ActionManager",
    "CommandManager",
    "CostManager",
    "CostTermCfg",
    "CurriculumManager",
    "CurriculumTermCfg",
    "EventManager",
    "EventTermCfg",
    "Manager",
    "ObservationGroup",
    "ObservationGroupCfg",
    "ObservationManager",
    "ObservationTermCfg",
    "RewardManager",
    "RewardTermCfg",
    "TerminationManager",
    "TerminationTermCfg",
]
