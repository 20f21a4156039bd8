"""Batched physics behind one small interface."""

from legged_envs.sim.cfg import ObjectCfg, PlacedRobot, SceneCfg, ViewerCfg
from legged_envs.sim.engines import make_simulation
from legged_envs.sim.robot_state import RobotState
from legged_envs.sim.simulation import SimCfg, Simulation

__all__ = [
    "ObjectCfg",
    "PlacedRobot",
    "RobotState",
    "SceneCfg",
    "SimCfg",
    "Simulation",
    "ViewerCfg",
    "make_simulation",
]
