"""Motions of the robots in the conformance tests, and the comparison of two simulations."""

import math

import torch
from torch import Tensor

from legged_envs.robots import RobotCfg
from legged_envs.sim import Simulation
from legged_envs.sim.quantities import QUANTITIES

ROOT_TOLERANCE = 0.02
"""Largest distance between the bases on the tested and on the CPU engine after 0.5 s, m."""
SPEED_TOLERANCE = 0.1
"""Largest difference of the base velocities on the tested and the CPU engine after 0.5 s, m/s."""
JOINT_TOLERANCE = 0.05
"""Largest mean difference of the joints on the tested and the CPU engine after 0.5 s, rad."""

STEP_FREQUENCY = 2.5
"""Steps of a pair of feet in a trot, Hz."""
THIGH_LIFT = 0.25
"""Turn of the thigh of a lifted foot, rad."""
CALF_LIFT = -0.5
"""Turn of the calf of a lifted foot, rad."""


def trot(sim: Simulation, seconds: float) -> Simulation:
    """Step a simulation while all robots trot on the spot, by joint targets without feedback.

    Args:
        sim: The simulation.
        seconds: Duration, s. The trot starts again in each call.

    Returns:
        The simulation.
    """
    dt = sim.cfg.step_dt
    num_steps = round(seconds / dt)
    for step in range(num_steps):
        targets = trot_targets(sim.robot, step * dt).to(sim.device)
        # One row for all robots: differences between environments come only from the engine.
        sim.set_joint_targets(targets.expand(sim.num_envs, -1))
        sim.step(sim.cfg.decimation)
    return sim


def trot_targets(robot: RobotCfg, time: float) -> Tensor:
    """Return joint targets of a trot, in which diagonal pairs of feet are lifted in turn.

    Args:
        robot: The robot.
        time: Time since the trot began, s.

    Returns:
        Shape: (num_joints,), rad.
    """
    targets = torch.tensor(robot.default_joint_pos)
    phase = 2.0 * math.pi * STEP_FREQUENCY * time
    wave = math.sin(phase)
    for pair, sign in zip(robot.diagonals, (1.0, -1.0), strict=True):
        lift = max(0.0, sign * wave)
        for foot in pair:
            leg = foot.removesuffix("_foot")
            thigh = robot.joint_names.index(f"{leg}_thigh_joint")
            calf = robot.joint_names.index(f"{leg}_calf_joint")
            targets[thigh] += THIGH_LIFT * lift
            targets[calf] += CALF_LIFT * lift
    return targets


def indices(sim: Simulation, env_ids: list[int] | None = None) -> Tensor:
    """Return indices of environments, by default of all, on the device of a simulation."""
    if env_ids is None:
        env_ids = list(range(sim.num_envs))
    return torch.tensor(env_ids, device=sim.device)


def push_all(sim: Simulation, velocity: tuple[float, float, float]) -> None:
    """Add a velocity, m/s in the world, to the bases of all robots."""
    change = torch.tensor(velocity, device=sim.device)
    sim.push(indices(sim), change.expand(sim.num_envs, 3))


def lift_all(sim: Simulation, height: float) -> None:
    """Put all robots, without velocity, higher by ``height``, m."""
    ids = indices(sim)
    pos = sim.root_pos_w.clone()
    pos[:, 2] += height
    quat = sim.root_quat_w.clone()
    still = torch.zeros_like(pos)
    sim.write_root_state(ids, pos, quat, still, still)
    sim.forward(ids)


def seen(sim: Simulation) -> dict[str, Tensor]:
    """Return copies of all quantities of a simulation on the CPU, by name."""
    return {name: getattr(sim, name).cpu().clone() for name in QUANTITIES}


def distance(sim: Simulation, other: Simulation) -> Tensor:
    """Return the difference of two simulations, relative to the tolerances: 1 is just allowed.

    Returns:
        Largest relative difference of base position, base velocity and joints of each robot.
        Shape: (num_envs,).
    """
    one = seen(sim)
    two = seen(other)
    root = (one["root_pos_w"] - two["root_pos_w"]).norm(dim=1)
    speed = (one["root_lin_vel_w"] - two["root_lin_vel_w"]).norm(dim=1)
    joints = (one["joint_pos"] - two["joint_pos"]).abs().mean(1)
    parts = [
        root / ROOT_TOLERANCE,
        speed / SPEED_TOLERANCE,
        joints / JOINT_TOLERANCE,
    ]
    return torch.stack(parts).amax(0)
