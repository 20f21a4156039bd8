"""One manager per kind of term: each evaluates a dict of named terms and keeps what they accumulate."""

from legged_envs.managers.action import ActionManager
from legged_envs.managers.command import CommandManager
from legged_envs.managers.curriculum import CurriculumManager, CurriculumTermCfg
from legged_envs.managers.event import EventManager, EventTermCfg
from legged_envs.managers.manager import Manager
from legged_envs.managers.observation import (
    ObservationGroupCfg,
    ObservationManager,
    ObservationTermCfg,
)
from legged_envs.managers.recorded import Piece, Program
from legged_envs.managers.reward import CostManager, CostTermCfg, RewardManager, RewardTermCfg
from legged_envs.managers.termination import TerminationManager, TerminationTermCfg

__all__ = [
    "ActionManager",
    "CommandManager",
    "CostManager",
    "CurriculumManager",
    "EventManager",
    "Manager",
]
__all__ += ["ObservationManager", "Piece", "Program", "RewardManager", "TerminationManager"]
__all__ += [
    "CostTermCfg",
    "CurriculumTermCfg",
    "EventTermCfg",
    "ObservationGroupCfg",
    "ObservationTermCfg",
]
__all__ += ["RewardTermCfg", "TerminationTermCfg"]
