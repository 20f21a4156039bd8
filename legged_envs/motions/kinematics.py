"""Where the bodies of a robot are, by MuJoCo's kinematics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from legged_envs.robots import RobotCfg

if TYPE_CHECKING:
    import mujoco  # at run time it is imported where a robot is compiled: terms and managers do without


@lru_cache
def robot_model(robot: RobotCfg) -> mujoco.MjModel:
    """The robot alone, compiled. Its generalised coordinates are the base pose and then the joints in their order."""
    import mujoco

    model = mujoco.MjSpec.from_file(str(robot.path)).compile()
    names = tuple(model.joint(i).name for i in range(1, model.njnt))
    if names != robot.joint_names:
        raise ValueError(f"{robot.xml} has joints {names}, but RobotCfg {robot.name!r} names {robot.joint_names}")
    return model


def body_names(robot: RobotCfg) -> tuple[str, ...]:
    """All bodies of the robot, the base first, in the order of :attr:`legged_envs.sim.Simulation.body_names`."""
    model = robot_model(robot)
    return tuple(model.body(i).name for i in range(1, model.nbody))


def posed(robot: RobotCfg, qpos: torch.Tensor) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
    """The robot in poses ``qpos`` (T, 7 + num_joints): base position, orientation, joints; bodies are computed."""
    import mujoco

    model = robot_model(robot)
    data = mujoco.MjData(model)
    for pose in qpos.double().numpy():
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        yield model, data


def forward_kinematics(robot: RobotCfg, qpos: torch.Tensor, qvel: torch.Tensor) -> dict[str, torch.Tensor]:
    """The fields of a :class:`~legged_envs.motions.Motion` that say where its bodies are, float64.

    ``qpos`` (T, 7 + num_joints) is base position and orientation, joint positions; ``qvel`` (T, 6 + num_joints) is base
    velocity in the world, angular velocity in the base frame, joint velocities.
    """
    import mujoco

    frames = []
    for speeds, (model, data) in zip(qvel.double().numpy(), posed(robot, qpos), strict=True):
        data.qvel[:] = speeds
        mujoco.mj_comVel(model, data)
        pos, ang_vel = data.xpos[1:], data.cvel[1:, :3]
        # MuJoCo keeps the linear velocity of the body-fixed point that coincides with the robot's centre of mass.
        lin_vel = data.cvel[1:, 3:] + np.cross(ang_vel, pos - data.subtree_com[1])
        frames.append(np.hstack((pos, data.xquat[1:], lin_vel, ang_vel)))
    fields = torch.from_numpy(np.array(frames)).split((3, 4, 3, 3), dim=-1)
    return dict(zip(("body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w"), fields, strict=True))


def lowest_point(robot: RobotCfg, qpos: torch.Tensor) -> torch.Tensor:
    """Height of the lowest point of the collision shapes in poses as of :func:`posed`, m, float64. Shape: (T,)."""
    import mujoco

    model = robot_model(robot)
    shapes = np.flatnonzero(model.geom_contype | model.geom_conaffinity)
    capsule = model.geom_type[shapes] == mujoco.mjtGeom.mjGEOM_CAPSULE
    sphere = model.geom_type[shapes] == mujoco.mjtGeom.mjGEOM_SPHERE
    if not (capsule | sphere).all():
        raise ValueError(f"{robot.xml}: only spheres and capsules are known as collision shapes")
    radius, half_length = model.geom_size[shapes, 0], np.where(capsule, model.geom_size[shapes, 1], 0.0)
    heights = [
        (data.geom_xpos[shapes, 2] - half_length * abs(data.geom_xmat[shapes, 8]) - radius).min()
        for _, data in posed(robot, qpos)
    ]
    return torch.from_numpy(np.array(heights))
