"""Other frameworks' ways to write a task, each a translation to the hooks of the core."""

from legged_envs.configuration import configclass
from legged_envs.mdp.scene_entity import SceneEntityCfg
from legged_envs.workflows.direct import DirectRLEnv, DirectRLEnvCfg
from legged_envs.workflows.isaac_cfg import InteractiveSceneCfg, SimulationCfg
from legged_envs.workflows.legged_robot import BaseTask, LeggedRobot
from legged_envs.workflows.legged_robot_cfg import LeggedRobotCfg
from legged_envs.workflows.manager_based import (
    ManagerBasedEnv,
    ManagerBasedEnvCfg,
    ManagerBasedRLEnv,
    ManagerBasedRLEnvCfg,
)
from legged_envs.workflows.multi_agent import DirectMARLEnv, DirectMARLEnvCfg
from legged_envs.workflows.rl_task import RLTask, SimConfig
from legged_envs.workflows.vec_env import (
    TrainerMT,
    VecEnvBase,
    VecEnvMT,
    VecEnvRLGames,
    VecEnvRLGamesMT,
)

__all__ = [
    "BaseTask",
    "DirectMARLEnv",
    "DirectMARLEnvCfg",
    "DirectRLEnv",
    "DirectRLEnvCfg",
    "InteractiveSceneCfg",
]
__all__ += [
    "LeggedRobot",
    "LeggedRobotCfg",
    "ManagerBasedEnv",
    "ManagerBasedEnvCfg",
    "ManagerBasedRLEnv",
    "RLTask",
]
__all__ += [
    "ManagerBasedRLEnvCfg",
    "SceneEntityCfg",
    "SimConfig",
    "SimulationCfg",
    "TrainerMT",
    "VecEnvBase",
]
__all__ += ["VecEnvMT", "VecEnvRLGames", "VecEnvRLGamesMT", "configclass"]
