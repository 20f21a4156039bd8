"""LeggedGym-Ex's way to write a task: ``LeggedRobot``, its configuration and the registry."""

from legged_envs.compat.legged_gym.base_task import Action, BaseTask, EnvIds, ObsBuf, Reward
from legged_envs.compat.legged_gym.cfg import LeggedRobotCfg
from legged_envs.compat.legged_gym.cfg_ppo import (
    LeggedRobotCfgPPO,
    LeggedRobotCTSCfgPPO,
    LeggedRobotDreamwaqCfgPPO,
    LeggedRobotEECfgPPO,
    LeggedRobotTSCfgPPO,
)
from legged_envs.compat.legged_gym.legged_robot import LeggedRobot
from legged_envs.compat.legged_gym.task_registry import TaskRegistry, task_registry
from legged_envs.compat.legged_gym.variants.amp import LeggedRobotAMP
from legged_envs.compat.legged_gym.variants.cfg import (
    LeggedRobotAMPCfg,
    LeggedRobotCTSCfg,
    LeggedRobotDreamWaQCfg,
    LeggedRobotDreamwaqCfg,
    LeggedRobotEECfg,
    LeggedRobotTSCfg,
)
from legged_envs.compat.legged_gym.variants.dreamwaq import (
    LeggedRobotDreamWaQ,
    LeggedRobotDreamwaq,
)
from legged_envs.compat.legged_gym.variants.explicit_estimator import LeggedRobotEE
from legged_envs.compat.legged_gym.variants.teacher_student import LeggedRobotCTS, LeggedRobotTS

__all__ = [
    "Action",
    "BaseTask",
    "EnvIds",
    "LeggedRobot",
    "LeggedRobotAMP",
    "LeggedRobotAMPCfg",
    "LeggedRobotCTS",
    "LeggedRobotCTSCfg",
    "LeggedRobotCTSCfgPPO",
    "LeggedRobotCfg",
    "LeggedRobotCfgPPO",
    "LeggedRobotDreamWaQ",
    "LeggedRobotDreamWaQCfg",
    "LeggedRobotDreamwaq",
    "LeggedRobotDreamwaqCfg",
    "LeggedRobotDreamwaqCfgPPO",
    "LeggedRobotEE",
    "LeggedRobotEECfg",
    "LeggedRobotEECfgPPO",
    "LeggedRobotTS",
    "LeggedRobotTSCfg",
    "LeggedRobotTSCfgPPO",
    "ObsBuf",
    "Reward",
    "TaskRegistry",
    "task_registry",
]
