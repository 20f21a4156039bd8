"""Isaac Lab's ways to write a task: direct, multi-agent and manager-based."""

from legged_envs.compat.isaac_lab.cfg import InteractiveSceneCfg, SimulationCfg
from legged_envs.compat.isaac_lab.direct import DirectRLEnv, DirectRLEnvCfg
from legged_envs.compat.isaac_lab.manager_based import (
    ManagerBasedEnv,
    ManagerBasedEnvCfg,
    ManagerBasedRLEnv,
    ManagerBasedRLEnvCfg,
)
from legged_envs.compat.isaac_lab.multi_agent import DirectMARLEnv, DirectMARLEnvCfg
from legged_envs.compat.isaac_lab.scene_entity import SceneEntityCfg
from legged_envs.compat.isaac_lab.single_agent import (
    multi_agent_to_single_agent,
    multi_agent_with_one_agent,
)
from legged_envs.configuration import configclass

__all__ = [
    "DirectMARLEnv",
    "DirectMARLEnvCfg",
    "DirectRLEnv",
    "DirectRLEnvCfg",
    "InteractiveSceneCfg",
    "ManagerBasedEnv",
    "ManagerBasedEnvCfg",
    "ManagerBasedRLEnv",
    "ManagerBasedRLEnvCfg",
    "SceneEntityCfg",
    "SimulationCfg",
    "configclass",
    "multi_agent_to_single_agent",
    "multi_agent_with_one_agent",
]
