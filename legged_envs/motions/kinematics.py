"""Where the bodies of a robot are, by MuJoCo's kinematics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import mujoco
import numpy as np
import torch

from legged_envs.robots import RobotCfg


@dataclass(frozen=True, eq=False)
class BodyStates:
    """Poses and velocities of every body of a robot, float64. Shapes: (T, B, 3 or 4)."""

    pos_w: torch.Tensor
    quat_w: torch.Tensor
    lin_vel_w: torch.Tensor
    """Velocities of the body origins."""
    ang_vel_w: torch.Tensor


@lru_cache
def robot_model(robot: RobotCfg) -> mujoco.MjModel:
    """The robot alone, compiled. Its generalised coordinates are the base pose and then the joints in their order."""
    model = mujoco.MjSpec.from_file(str(robot.path)).compile()
    names = tuple(model.joint(i).name for i in range(1, model.njnt))
    if names != robot.joint_names:
        raise ValueError(f"{robot.xml} has joints {names}, but RobotCfg {robot.name!r} names {robot.joint_names}")
    return model


def body_names(robot: RobotCfg) -> tuple[str, ...]:
    """All bodies of the robot, the base first, in the order of :attr:`legged_envs.sim.Simulation.body_names`."""
    model = robot_model(robot)
    return tuple(model.body(i).name for i in range(1, model.nbody))


def joint_pos_limits(robot: RobotCfg) -> torch.Tensor:
    """Joint ranges, rad, float64. Shape: (num_joints, 2)."""
    return torch.from_numpy(robot_model(robot).jnt_range[1:].copy())


def forward_kinematics(
    robot: RobotCfg,
    root_pos_w: torch.Tensor,
    root_quat_w: torch.Tensor,
    joint_pos: torch.Tensor,
    root_lin_vel_w: torch.Tensor,
    root_ang_vel_b: torch.Tensor,
    joint_vel: torch.Tensor,
) -> BodyStates:
    """Body poses and velocities. Shapes: (T, 3), (T, 4), (T, J), (T, 3), (T, 3), (T, J)."""
    qvel = torch.cat((root_lin_vel_w, root_ang_vel_b, joint_vel), dim=1).double().numpy()
    num_frames, num_bodies = len(qvel), len(body_names(robot))
    pos, lin, ang = (np.zeros((num_frames, num_bodies, 3)) for _ in range(3))
    quat = np.zeros((num_frames, num_bodies, 4))
    for i, (model, data) in enumerate(_posed(robot, root_pos_w, root_quat_w, joint_pos)):
        data.qvel[:] = qvel[i]
        mujoco.mj_comVel(model, data)
        pos[i], quat[i], ang[i] = data.xpos[1:], data.xquat[1:], data.cvel[1:, :3]
        # MuJoCo keeps the linear velocity of the body-fixed point that coincides with the robot's centre of mass.
        lin[i] = data.cvel[1:, 3:] + np.cross(ang[i], pos[i] - data.subtree_com[1])
    return BodyStates(*(torch.from_numpy(array) for array in (pos, quat, lin, ang)))


def centre_of_mass(
    robot: RobotCfg, root_pos_w: torch.Tensor, root_quat_w: torch.Tensor, joint_pos: torch.Tensor
) -> torch.Tensor:
    """Centre of mass of the robot, m, float64. Shape: (T, 3)."""
    frames = _posed(robot, root_pos_w, root_quat_w, joint_pos)
    return torch.from_numpy(np.array([data.subtree_com[1].copy() for _, data in frames]))


def lowest_point(
    robot: RobotCfg, root_pos_w: torch.Tensor, root_quat_w: torch.Tensor, joint_pos: torch.Tensor
) -> torch.Tensor:
    """Height of the lowest point of the collision shapes, m, float64. Shape: (T,)."""
    model = robot_model(robot)
    shapes = np.flatnonzero(model.geom_contype | model.geom_conaffinity)
    capsule = model.geom_type[shapes] == mujoco.mjtGeom.mjGEOM_CAPSULE
    sphere = model.geom_type[shapes] == mujoco.mjtGeom.mjGEOM_SPHERE
    if not (capsule | sphere).all():
        raise ValueError(f"{robot.xml}: only spheres and capsules are known as collision shapes")
    radius, half_length = model.geom_size[shapes, 0], np.where(capsule, model.geom_size[shapes, 1], 0.0)
    frames = _posed(robot, root_pos_w, root_quat_w, joint_pos)
    heights = [
        (data.geom_xpos[shapes, 2] - half_length * abs(data.geom_xmat[shapes, 8]) - radius).min() for _, data in frames
    ]
    return torch.from_numpy(np.array(heights))


def _posed(
    robot: RobotCfg, root_pos_w: torch.Tensor, root_quat_w: torch.Tensor, joint_pos: torch.Tensor
) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
    """The robot in one pose after the other, positions and centres of mass computed."""
    model = robot_model(robot)
    data = mujoco.MjData(model)
    for qpos in torch.cat((root_pos_w, root_quat_w, joint_pos), dim=1).double().numpy():
        data.qpos[:] = qpos
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        yield model, data
