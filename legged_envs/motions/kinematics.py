"""Makes a :class:`Motion` from the base and the joints of a robot over time.

MuJoCo's kinematics give the poses and velocities of the bodies. Missing velocities are computed
from differences of positions.

Functions here use MuJoCo's generalized coordinates for T frames. ``qpos`` (T, 7 + J) has base
position, base orientation (w, x, y, z) and joint positions. ``qvel`` (T, 6 + J) has base velocity
in the world frame, angular velocity in the base frame and joint velocities.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from legged_envs import rotation
from legged_envs.motions.motion import (
    Motion,
    MotionError,
    check_frame_rate,
    check_frames,
    require,
)
from legged_envs.robots import RobotCfg

if TYPE_CHECKING:
    # At run time it is imported where a robot is compiled, so that terms and managers can be used
    # without MuJoCo.
    import mujoco


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
    """Make a reference clip from the base and the joints of a robot in T frames.

    The robot's model gives the poses and velocities of the bodies. Velocities that are None are
    computed as finite differences of the frames. If the clip loops, the first and the last frame
    use differences across the loop. Quaternions are scaled to length 1, and their signs are made
    continuous over time. The computation is in float64, the result in float32.

    Args:
        robot: Robot of the clip.
        name: Name of the clip.
        frame_rate: Frames per second.
        root_pos_w: Position of the base in the world frame, m. Shape: (T, 3).
        root_quat_w: Orientation of the base in the world frame, (w, x, y, z). Shape: (T, 4).
        joint_pos: Joint positions, rad. Shape: (T, number of ``joint_names``).
        root_lin_vel_w: Velocity of the base's origin in the world frame, m/s. Shape: (T, 3). None:
            computed.
        root_ang_vel_b: Angular velocity of the base in the base frame, rad/s. Shape: (T, 3). None:
            computed.
        joint_vel: Joint velocities, rad/s, with the shape of ``joint_pos``. None: computed.
        joint_names: Names of the columns of ``joint_pos`` and ``joint_vel``. None:
            ``RobotCfg.joint_names``.
        ignore_extra_joints: True to leave out columns of joints that the robot does not have.
        valid: True for frames that a robot may imitate. Shape: (T,), bool. None: all frames.
        loop: True if the clip can be repeated (:attr:`Motion.loop`).
        weight: Relative probability with which the clip is drawn (:attr:`Motion.weight`).
        source: File or function from which the clip was made, for error messages.

    Raises:
        MotionError: The numbers cannot be a :class:`Motion`, or the joints do not match the robot.
    """
    origin = source or f"motion {name!r}"
    check_frame_rate(frame_rate, origin)
    # Checked before any arithmetic, so that errors show the numbers that the caller gave.
    columns = robot.joint_names if joint_names is None else joint_names
    joint_columns = _find_joint_columns(robot, columns, origin, ignore_extra_joints)
    given = {
        "root_pos_w": root_pos_w,
        "root_quat_w": root_quat_w,
        "joint_pos": joint_pos,
        "root_lin_vel_w": root_lin_vel_w,
        "root_ang_vel_b": root_ang_vel_b,
        "joint_vel": joint_vel,
    }
    exact = {field: values.double() for field, values in given.items() if values is not None}
    check_frames(exact, columns, (), origin)
    exact["joint_pos"] = exact["joint_pos"][:, joint_columns]
    if "joint_vel" in exact:
        exact["joint_vel"] = exact["joint_vel"][:, joint_columns]
    # Differences of orientations need quaternions with the same sign in neighbouring frames.
    exact["root_quat_w"] = continuous(exact["root_quat_w"])
    frames = _with_velocities(exact, frame_rate, loop)
    qpos = torch.cat((frames["root_pos_w"], frames["root_quat_w"], frames["joint_pos"]), dim=1)
    qvel = torch.cat(
        (frames["root_lin_vel_w"], frames["root_ang_vel_b"], frames["joint_vel"]), dim=1
    )
    # The same robot gives the same bodies, whatever file the motion comes from.
    frames.update(forward_kinematics(robot, qpos, qvel))
    if valid is None:
        valid = torch.ones(len(qpos), dtype=torch.bool)
    return Motion(
        name=name,
        robot=robot.name,
        frame_rate=frame_rate,
        joint_names=robot.joint_names,
        body_names=body_names(robot),
        valid=valid,
        loop=loop,
        weight=weight,
        source=source,
        **{field: values.float() for field, values in frames.items()},
    )


def _with_velocities(
    frames: Mapping[str, torch.Tensor], frame_rate: float, loop: bool
) -> dict[str, torch.Tensor]:
    """Return a copy of ``frames`` in which missing velocities have been computed."""
    complete = dict(frames)
    quat = frames["root_quat_w"]
    if "root_lin_vel_w" not in frames:
        root_pos_w = frames["root_pos_w"]
        complete["root_lin_vel_w"] = linear_velocity(root_pos_w, frame_rate, loop, quat)
    if "root_ang_vel_b" not in frames:
        complete["root_ang_vel_b"] = angular_velocity_b(quat, frame_rate, loop)
    if "joint_vel" not in frames:
        complete["joint_vel"] = linear_velocity(frames["joint_pos"], frame_rate, loop)
    return complete


def _find_joint_columns(
    robot: RobotCfg, columns: Sequence[str], origin: str, ignore_extra: bool
) -> list[int]:
    """Return the column of each of the robot's joints, or raise a MotionError if they do not
    match."""
    columns = list(columns)
    # If a name is repeated, it is not known which column is right.
    for joint in columns:
        is_unique = columns.count(joint) == 1
        require(is_unique, origin, "joint_names", "unique", f"{joint!r} twice")
    missing = [joint for joint in robot.joint_names if joint not in columns]
    if len(missing) == robot.num_joints:
        raise MotionError(
            f"{origin}: has no joint of robot {robot.name!r}, only {', '.join(columns[:3])}, …: "
            "give a file of this robot, or carry it over with `legged-envs motion … --source …`"
        )
    if missing:
        raise MotionError(
            f"{origin}: joint {missing[0]!r} of robot {robot.name!r} must be in the file "
            f"({len(missing)} joints are not), got {', '.join(columns)}; hold them in the default "
            "pose with --motion.hold-missing-joints (hold_missing_joints=True)"
        )
    extra = [joint for joint in columns if joint not in robot.joint_names]
    if extra and not ignore_extra:
        raise MotionError(
            f"{origin}: robot {robot.name!r} has no joint {extra[0]!r} "
            f"({len(extra)} columns are of joints that it lacks); load it for a robot that has "
            "them, or leave them out with --motion.ignore-extra-joints (ignore_extra_joints=True)"
        )
    return [columns.index(joint) for joint in robot.joint_names]


def continuous(quat: torch.Tensor) -> torch.Tensor:
    """Return quaternions over time with length 1 and continuous signs.

    q and −q are the same rotation. The sign of each frame is chosen so that its scalar product with
    the frame before is not negative.

    Args:
        quat: Rotations over time, (w, x, y, z). Shape: (T, …, 4).

    Returns:
        The same rotations. Shape: (T, …, 4).
    """
    quat = quat / torch.linalg.vector_norm(quat, dim=-1, keepdim=True)
    turns_over = (quat[1:] * quat[:-1]).sum(-1) < 0.0
    # A frame that changes its sign also changes the signs of all later frames.
    sign = torch.where(turns_over.cumsum(0) % 2 == 1, -1.0, 1.0)
    return torch.cat((quat[:1], quat[1:] * sign.unsqueeze(-1)))


def linear_velocity(
    values: torch.Tensor, frame_rate: float, loop: bool = False, quat: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the velocities of values over time, from central differences.

    At the first and the last frame the differences are one-sided. In a loop these two frames have
    the mean of the two one-sided differences, because they are the same moment.

    Args:
        values: Values at each frame, such as joint positions. Shape: (T, n).
        frame_rate: Frames per second.
        loop: True if the last frame is the first frame of the next repetition.
        quat: Orientations of the base (w, x, y, z), if the values are vectors in the world frame.
            In a loop that turns about z, the velocity at the end is turned back before the mean.
            Shape: (T, 4). None: the values are not vectors.

    Returns:
        Velocities, in units of the values per s. Shape: (T, n).
    """
    # Not diff: a central difference has no delay of half a frame.
    velocity = torch.gradient(values, spacing=1.0 / frame_rate, dim=0)[0]
    if loop and quat is not None:
        whole_turn = rotation.multiply(quat[-1], rotation.conjugate(quat[0]))
        turn = rotation.twist_about_z(whole_turn)
        last = rotation.rotate(rotation.from_yaw(-turn), velocity[-1])
        velocity[0] = (velocity[0] + last) / 2.0
        # The last frame is the first one of the next repetition, turned.
        velocity[-1] = rotation.rotate(rotation.from_yaw(turn), velocity[0])
    elif loop:
        velocity[[0, -1]] = (velocity[0] + velocity[-1]) / 2.0
    return velocity


def angular_velocity_b(quat: torch.Tensor, frame_rate: float, loop: bool = False) -> torch.Tensor:
    """Return the angular velocity of a body in the frame of the body: log(q₋⁻¹ q₊) / (t₊ − t₋).

    q₋ and q₊ are the orientations in the frame before and the frame after. At the first and the
    last frame of a clip that does not loop, the difference is one-sided.

    Args:
        quat: Orientations over time, (w, x, y, z). Shape: (T, 4).
        frame_rate: Frames per second.
        loop: True if the last frame is the first frame of the next repetition.

    Returns:
        Angular velocities, rad/s. Shape: (T, 3).
    """
    before = torch.cat((quat[:1], quat[:-1]))
    after = torch.cat((quat[1:], quat[-1:]))
    turned = rotation.multiply(rotation.conjugate(before), after)
    spacing = torch.full((len(quat), 1), 2.0 / frame_rate, dtype=quat.dtype)
    if loop:
        # Across the loop: the rotation into the last frame, then the rotation out of the first.
        turned[[0, -1]] = rotation.multiply(turned[-1], turned[0])
    else:
        spacing[[0, -1]] = 1.0 / frame_rate
    return rotation.to_rotation_vector(turned) / spacing


@lru_cache
def robot_model(robot: RobotCfg) -> "mujoco.MjModel":
    """Return the compiled MuJoCo model of a robot, without a ground.

    Equal configurations share one model: do not change it.

    Raises:
        ValueError: The joints of the model differ from the configuration.
    """
    import mujoco

    model = mujoco.MjSpec.from_file(str(robot.path)).compile()
    # Joint 0 is the free joint of the base.
    names = tuple(model.joint(i).name for i in range(1, model.njnt))
    if names != robot.joint_names:
        raise ValueError(
            f"{robot.xml} has joints {names}, but RobotCfg {robot.name!r} names {robot.joint_names}"
        )
    return model


def body_names(robot: RobotCfg) -> tuple[str, ...]:
    """Return the names of all bodies of a robot, the base first.

    The order is the same as in the MJCF file and in :attr:`Simulation.body_names`.
    """
    model = robot_model(robot)
    # Body 0 is the world.
    return tuple(model.body(i).name for i in range(1, model.nbody))


def posed(
    robot: RobotCfg, qpos: torch.Tensor, qvel: torch.Tensor | None = None
) -> "Iterator[mujoco.MjData]":
    """Yield MuJoCo's data of a robot in each of T poses, with poses and velocities of its bodies.

    The same object is yielded each time: copy what is needed before the next pose.

    Args:
        robot: The robot.
        qpos: Base position, base orientation (w, x, y, z) and joint positions. Shape: (T, 7 + J).
        qvel: Base velocity in the world frame, angular velocity in the base frame and joint
            velocities. Shape: (T, 6 + J). None: all are 0.
    """
    import mujoco

    model = robot_model(robot)
    data = mujoco.MjData(model)
    if qvel is None:
        qvel = torch.zeros(len(qpos), model.nv)
    for pose, velocity in zip(qpos.double().numpy(), qvel.double().numpy(), strict=True):
        data.qpos[:] = pose
        data.qvel[:] = velocity
        # The three stages that positions and velocities of bodies need; mj_forward takes much
        # longer.
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        yield data


def forward_kinematics(
    robot: RobotCfg, qpos: torch.Tensor, qvel: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the poses and velocities of all bodies of a robot in T frames.

    Args:
        robot: The robot.
        qpos: Base position, base orientation (w, x, y, z) and joint positions. Shape: (T, 7 + J).
        qvel: Base velocity in the world frame, angular velocity in the base frame and joint
            velocities. Shape: (T, 6 + J).

    Returns:
        ``body_pos_w``, ``body_quat_w``, ``body_lin_vel_w`` and ``body_ang_vel_w``, as in a
        :class:`Motion`, but float64.
    """
    pos_frames = []
    quat_frames = []
    twist_frames = []
    com_frames = []
    for data in posed(robot, qpos, qvel):
        pos_frames.append(data.xpos[1:].copy())
        quat_frames.append(data.xquat[1:].copy())
        twist_frames.append(data.cvel[1:].copy())
        com_frames.append(data.subtree_com[1].copy())
    pos = np.array(pos_frames)
    twist = np.array(twist_frames)
    com = np.array(com_frames)[:, None]
    ang_vel = twist[..., :3]
    # MuJoCo's cvel has the velocity of the body at the robot's centre of mass, not at the origin
    # of the body.
    lin_vel = twist[..., 3:] + np.cross(ang_vel, pos - com)
    return {
        "body_pos_w": torch.from_numpy(pos),
        "body_quat_w": torch.from_numpy(np.array(quat_frames)),
        "body_lin_vel_w": torch.from_numpy(lin_vel),
        "body_ang_vel_w": torch.from_numpy(ang_vel),
    }
