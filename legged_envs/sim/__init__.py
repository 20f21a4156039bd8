"""Simulation of many copies of a scene with legged robots, on one of several physics engines."""

from legged_envs.sim.cfg import ObjectCfg, PlacedRobot, SceneCfg, SimCfg, ViewerCfg
from legged_envs.sim.engines.find import make_simulation
from legged_envs.sim.robot_state import RobotState
from legged_envs.sim.simulation import Simulation

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
