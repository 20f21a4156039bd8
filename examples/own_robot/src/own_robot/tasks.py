"""The tasks: functions that make a fresh configuration; pyproject.toml gives them ids."""

from typing import Any

import torch
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import CostTermCfg, RewardTermCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.tasks.velocity import quadruped_flat

from own_robot.own_robot import OWN_ROBOT


def power(env: Any) -> torch.Tensor:
    """Σ |τ q̇|, W. Shape: (num_envs,)."""
    return (env.robot.joint_torque * env.robot.joint_vel).abs().sum(1)


def flat() -> TaskCfg:
    """Trot after vx ±0.7 m/s, vy ±0.3 m/s, ωz ±1 rad/s on flat ground, on little power."""
    cfg = quadruped_flat(OWN_ROBOT)  # biped_flat, quadruped_rough, … take a RobotCfg too; velocity_task any robot
    cfg.commands["velocity"] = VelocityCommandCfg((-0.7, 0.7), (-0.3, 0.3), (-1.0, 1.0), standing_fraction=0.15)
    cfg.events["base_mass"].params["range"] = (-0.4, 0.8)  # kg; a Go2, 2.4 times as heavy, has -1 to 2
    cfg.rewards["power"] = RewardTermCfg(power, weight=-0.002)
    cfg.costs["power"] = CostTermCfg(power, limit=40.0)
    return cfg
