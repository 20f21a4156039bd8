"""One manager per kind of term: each evaluates a dict of named terms and keeps what they accumulate."""

from legged_envs.managers.action import ActionCfg, ActionManager
from legged_envs.managers.command import CommandManager
from legged_envs.managers.cost import CostManager, CostTermCfg
from legged_envs.managers.event import EventManager, EventTermCfg
from legged_envs.managers.observation import ObservationGroupCfg, ObservationManager, ObservationTermCfg
from legged_envs.managers.recorded import Part, Place, Recorded
from legged_envs.managers.reward import RewardManager, RewardTermCfg
from legged_envs.managers.termination import TerminationManager, TerminationTermCfg

__all__ = [
    "ActionCfg",
    "ActionManager",
    "CommandManager",
    "CostManager",
    "CostTermCfg",
    "EventManager",
    "EventTermCfg",
    "ObservationGroupCfg",
    "ObservationManager",
    "ObservationTermCfg",
    "Part",
    "Place",
    "Recorded",
    "RewardManager",
    "RewardTermCfg",
    "TerminationManager",
    "TerminationTermCfg",
]
