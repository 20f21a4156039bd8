"""What the robots of the conformance tests do, and what is compared of it."""

import math

import torch
from torch import Tensor

from legged_envs.robots import RobotCfg
from legged_envs.sim import Simulation
from legged_envs.sim.quantities import ROBOT_QUANTITIES, Quantities

ROOT_TOLERANCE, SPEED_TOLERANCE, JOINT_TOLERANCE = 0.02, 0.1, 0.05
"""How far an engine may be from the CPU engine after half a second: the base, m and m/s, joints, mean, rad."""


def trot(sim: Simulation, seconds: float) -> Simulation:
    """Half a second of trot on the spot, and on, without feedback: diagonal feet lift in turn, 2.5 times a second."""
    dt = sim.cfg.step_dt
    for step in range(round(seconds / dt)):
        sim.set_joint_targets(
            trot_targets(sim.robot, step * dt).to(sim.device).expand(sim.num_envs, -1)
        )
        sim.step(sim.cfg.decimation)
    return sim


def trot_targets(robot: RobotCfg, time: float) -> Tensor:
    """rad. Shape: (num_joints,)."""
    targets, wave = torch.tensor(robot.default_joint_pos), math.sin(2.0 * math.pi * 2.5 * time)
    for pair, sign in zip(robot.diagonals, (1.0, -1.0), strict=True):
        for foot in pair:
            leg = foot.removesuffix("_foot")
            for joint, turn in (("thigh", 0.25), ("calf", -0.5)):
                targets[robot.joint_names.index(f"{leg}_{joint}_joint")] += turn * max(
                    0.0, sign * wave
                )
    return targets


def seen(sim: Simulation) -> dict[str, Tensor]:
    """Every quantity, copied to the CPU."""
    names = (*ROBOT_QUANTITIES, *Quantities.__annotations__)
    return {name: getattr(sim, name).cpu().clone() for name in names}


def distance(sim: Simulation, other: Simulation) -> Tensor:
    """How far apart two simulations are, in parts of what they may be. Shape: (num_envs,)."""
    one, two = seen(sim), seen(other)
    root = (one["root_pos_w"] - two["root_pos_w"]).norm(dim=1) / ROOT_TOLERANCE
    speed = (one["root_lin_vel_w"] - two["root_lin_vel_w"]).norm(dim=1) / SPEED_TOLERANCE
    joints = (one["joint_pos"] - two["joint_pos"]).abs().mean(1) / JOINT_TOLERANCE
    return torch.stack((root, speed, joints)).amax(0)
