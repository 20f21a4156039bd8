"""One manager per kind of term: each evaluates a dict of named terms and keeps what they accumulate."""

from legged_envs.managers.action import ActionManager as ActionManager
from legged_envs.managers.command import CommandManager as CommandManager
from legged_envs.managers.cost import CostManager as CostManager
from legged_envs.managers.cost import CostTermCfg as CostTermCfg
from legged_envs.managers.curriculum import CurriculumManager as CurriculumManager
from legged_envs.managers.curriculum import CurriculumTermCfg as CurriculumTermCfg
from legged_envs.managers.event import EventManager as EventManager
from legged_envs.managers.event import EventTermCfg as EventTermCfg
from legged_envs.managers.manager import Manager as Manager
from legged_envs.managers.observation import ObservationGroupCfg as ObservationGroupCfg
from legged_envs.managers.observation import ObservationManager as ObservationManager
from legged_envs.managers.observation import ObservationTermCfg as ObservationTermCfg
from legged_envs.managers.recorded import Piece as Piece
from legged_envs.managers.recorded import Program as Program
from legged_envs.managers.reward import RewardManager as RewardManager
from legged_envs.managers.reward import RewardTermCfg as RewardTermCfg
from legged_envs.managers.termination import TerminationManager as TerminationManager
from legged_envs.managers.termination import TerminationTermCfg as TerminationTermCfg
