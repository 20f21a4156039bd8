"""From generalised coordinates over time to a :class:`Motion`: bodies by MuJoCo's kinematics, speeds by differences.
``qpos`` (T, 7 + num_joints) are base position, base orientation (w, x, y, z) and joint positions, ``qvel``
(T, 6 + num_joints) base velocity in the world, angular velocity in the base frame and joint velocities."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from legged_envs import rotation
from legged_envs.motions.motion import (
    FIELDS,
    Motion,
    MotionError,
    check_frame_rate,
    check_frames,
    require,
)
from legged_envs.robots import RobotCfg

if TYPE_CHECKING:
    import mujoco  # at run time it is imported where a robot is compiled: terms and managers do without


def motion_from_coordinates(
    robot: RobotCfg,
    name: str,
    frame_rate: float,
    root_pos_w: torch.Tensor,
    root_quat_w: torch.Tensor,
    joint_pos: torch.Tensor,
    *,
    root_lin_vel_w: torch.Tensor | None = None,
    root_ang_vel_b: torch.Tensor | None = None,
    joint_vel: torch.Tensor | None = None,
    joint_names: Sequence[str] | None = None,
    ignore_extra_joints: bool = False,
    valid: torch.Tensor | None = None,
    loop: bool = False,
    weight: float = 1.0,
    source: str = "",
) -> Motion:
    """A motion with the robot's own body poses; fields are those of a :class:`Motion`. Velocities that are not given
    are finite differences of the frames, across the seam where the clip loops. Quaternions are made exactly unit and
    continuous in sign. Computed in float64, kept in float32. ``joint_names`` are the joints of the columns, default the
    robot's in its order; ``ignore_extra_joints`` leaves out those that it lacks. MotionError for what a :class:`Motion`
    refuses, and for joints that do not match the robot."""
    origin = source or f"motion {name!r}"
    check_frame_rate(frame_rate, origin)
    joint_names = robot.joint_names if joint_names is None else joint_names
    joints = _joint_columns(robot, joint_names, origin, ignore_extra_joints)
    poses = {"root_pos_w": root_pos_w, "root_quat_w": root_quat_w, "joint_pos": joint_pos}
    velocities = {
        "root_lin_vel_w": root_lin_vel_w,
        "root_ang_vel_b": root_ang_vel_b,
        "joint_vel": joint_vel,
    }
    frames = {
        field: values.double()
        for field, values in (poses | velocities).items()
        if values is not None
    }
    check_frames(frames, joint_names, (), origin)
    frames |= {field: frames[field][:, joints] for field in FIELDS["joint"] if field in frames}
    frames["root_quat_w"] = quat = continuous(frames["root_quat_w"])
    frames.setdefault(
        "root_lin_vel_w", linear_velocity(frames["root_pos_w"], frame_rate, loop, quat)
    )
    frames.setdefault("root_ang_vel_b", angular_velocity_b(quat, frame_rate, loop))
    frames.setdefault("joint_vel", linear_velocity(frames["joint_pos"], frame_rate, loop))
    qpos = torch.cat([frames[field] for field in ("root_pos_w", "root_quat_w", "joint_pos")], dim=1)
    qvel = torch.cat(
        [frames[field] for field in ("root_lin_vel_w", "root_ang_vel_b", "joint_vel")], dim=1
    )
    frames |= forward_kinematics(robot, qpos, qvel)
    fields: dict[str, Any] = {field: values.float() for field, values in frames.items()}
    fields["valid"] = torch.ones(len(qpos), dtype=torch.bool) if valid is None else valid
    names = (name, robot.name, frame_rate, robot.joint_names, body_names(robot))
    return Motion(*names, **fields, loop=loop, weight=weight, source=source)


def _joint_columns(
    robot: RobotCfg, columns: Sequence[str], origin: str, ignore_extra: bool
) -> list[int]:
    """Which of ``columns``, the joints of a file, each of the robot's is; raises MotionError if they do not match."""
    for joint in columns:
        require(
            list(columns).count(joint) == 1, origin, "joint_names", "unique", f"{joint!r} twice"
        )
    for joint in robot.joint_names:
        expected = f"in the file, as robot {robot.name!r} has it"
        require(
            joint in columns, origin, f"joint {joint!r}", expected, f"only {', '.join(columns)}"
        )
    extra = [joint for joint in columns if joint not in robot.joint_names]
    if extra and not ignore_extra:
        advice = "load it for a robot that has them, or pass ignore_extra_joints=True"
        number = f"{len(extra)} such columns"
        raise MotionError(
            f"{origin}: robot {robot.name!r} has no joint {extra[0]!r} ({number}); {advice}"
        )
    return [list(columns).index(joint) for joint in robot.joint_names]


def continuous(quat: torch.Tensor) -> torch.Tensor:
    """The rotations ``quat`` (T, …, 4) with length 1 and each in the half space of the one before."""
    quat = quat / torch.linalg.vector_norm(quat, dim=-1, keepdim=True)
    turns_over = (quat[1:] * quat[:-1]).sum(-1) < 0.0
    sign = torch.where(turns_over.cumsum(0) % 2 == 1, -1.0, 1.0)
    return torch.cat((quat[:1], quat[1:] * sign.unsqueeze(-1)))


def linear_velocity(
    values: torch.Tensor, frame_rate: float, loop: bool = False, quat: torch.Tensor | None = None
) -> torch.Tensor:
    """Central differences of ``values`` (T, n), one-sided at both ends; those two are averaged in a loop. Where a loop
    turns about z, by the orientations ``quat`` (T, 4) of a base, its end is turned back before that."""
    velocity = torch.gradient(values, spacing=1.0 / frame_rate, dim=0)[0]
    if loop and quat is not None:
        turn = rotation.twist_about_z(rotation.multiply(quat[-1], rotation.conjugate(quat[0])))
        velocity[0] = (velocity[0] + rotation.rotate(rotation.from_yaw(-turn), velocity[-1])) / 2.0
        velocity[-1] = rotation.rotate(rotation.from_yaw(turn), velocity[0])
    elif loop:
        velocity[[0, -1]] = (velocity[0] + velocity[-1]) / 2.0
    return velocity


def angular_velocity_b(quat: torch.Tensor, frame_rate: float, loop: bool = False) -> torch.Tensor:
    """Angular velocity in the turning frame: log(q₋⁻¹ q₊) / (t₊ − t₋), one-sided at open ends. (T, 4) → (T, 3)."""
    before, after = torch.cat((quat[:1], quat[:-1])), torch.cat((quat[1:], quat[-1:]))
    turned = rotation.multiply(rotation.conjugate(before), after)
    spacing = torch.full((len(quat), 1), 2.0 / frame_rate, dtype=quat.dtype)
    if loop:
        turned[[0, -1]] = rotation.multiply(turned[-1], turned[0])
    else:
        spacing[[0, -1]] = 1.0 / frame_rate
    return rotation.to_rotation_vector(turned) / spacing


@lru_cache
def robot_model(robot: RobotCfg) -> "mujoco.MjModel":
    import mujoco

    model = mujoco.MjSpec.from_file(str(robot.path)).compile()
    names = tuple(model.joint(i).name for i in range(1, model.njnt))
    if names != robot.joint_names:
        raise ValueError(
            f"{robot.xml} has joints {names}, but RobotCfg {robot.name!r} names {robot.joint_names}"
        )
    return model


def body_names(robot: RobotCfg) -> tuple[str, ...]:
    """All bodies of the robot, the base first, in the order of :attr:`legged_envs.sim.Simulation.body_names`."""
    model = robot_model(robot)
    return tuple(model.body(i).name for i in range(1, model.nbody))


def posed(
    robot: RobotCfg, qpos: torch.Tensor, qvel: torch.Tensor | None = None
) -> "Iterator[mujoco.MjData]":
    """The robot in each of the poses ``qpos`` (T, 7 + num_joints), at rest or with ``qvel``, its bodies computed."""
    import mujoco

    model = robot_model(robot)
    data = mujoco.MjData(model)
    speeds = torch.zeros(len(qpos), model.nv) if qvel is None else qvel
    for pose, speed in zip(qpos.double().numpy(), speeds.double().numpy(), strict=True):
        data.qpos[:], data.qvel[:] = pose, speed
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        yield data


def forward_kinematics(
    robot: RobotCfg, qpos: torch.Tensor, qvel: torch.Tensor
) -> dict[str, torch.Tensor]:
    fields = ("xpos", "xquat", "cvel", "subtree_com")
    states = [
        [getattr(data, field)[1:].copy() for field in fields] for data in posed(robot, qpos, qvel)
    ]
    pos, quat, twist, com = map(np.array, zip(*states, strict=True))
    ang_vel = twist[..., :3]
    # MuJoCo keeps the linear velocity of the body-fixed point that coincides with the robot's centre of mass.
    lin_vel = twist[..., 3:] + np.cross(ang_vel, pos - com[:, :1])
    return dict(
        zip(FIELDS["body"], map(torch.from_numpy, (pos, quat, lin_vel, ang_vel)), strict=True)
    )


def lowest_point(robot: RobotCfg, qpos: torch.Tensor) -> torch.Tensor:
    """Height of the lowest point of the collision shapes in the poses ``qpos``, m, float64. Shape: (T,)."""
    import mujoco

    model = robot_model(robot)
    shapes = np.flatnonzero(model.geom_contype | model.geom_conaffinity)
    capsule = model.geom_type[shapes] == mujoco.mjtGeom.mjGEOM_CAPSULE
    sphere = model.geom_type[shapes] == mujoco.mjtGeom.mjGEOM_SPHERE
    if not (capsule | sphere).all():
        raise ValueError(f"{robot.xml}: only spheres and capsules are known as collision shapes")
    radius, half = model.geom_size[shapes, 0], np.where(capsule, model.geom_size[shapes, 1], 0.0)
    lowest = [
        data.geom_xpos[shapes, 2] - half * abs(data.geom_xmat[shapes, 8]) - radius
        for data in posed(robot, qpos)
    ]
    return torch.from_numpy(np.min(lowest, axis=1))
