"""Batched physics behind one small interface."""

from legged_envs.sim.robot_state import RobotState
from legged_envs.sim.simulation import SimCfg, Simulation, make_simulation

__all__ = ["RobotState", "SimCfg", "Simulation", "make_simulation"]
