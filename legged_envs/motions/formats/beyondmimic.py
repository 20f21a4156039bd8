"""Reads motions of BeyondMimic, mjlab and holosoma, and of Isaac Lab's AMP (.npz).

``fps``, ``joint_pos`` and ``joint_vel`` (T, J), ``body_pos_w`` (T, B, 3), ``body_quat_w`` (T, B, 4)
(w, x, y, z), ``body_lin_vel_w``, ``body_ang_vel_w``. Newer programs add ``joint_names`` and
``body_names``; holosoma puts the base before the joints, and the world before the bodies. Without
names, body 0 is the base, and the bodies show the order of the joints: mjlab numbers them limb by
limb as MuJoCo does, Isaac Lab level by level.
"""

from dataclasses import replace
from pathlib import Path

from legged_envs import rotation
from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.body_archives import read_bodies
from legged_envs.motions.formats.body_fit import check_bodies, fitting_order
from legged_envs.motions.motion import Motion
from legged_envs.motions.orders import usual_joints
from legged_envs.motions.recording import Recording, motion_of
from legged_envs.robots import RobotCfg


def read_beyondmimic(path: Path, robot: RobotCfg, reading: MotionReading) -> Motion:
    """Read a motion with bodies, which are compared with the bodies of the robot's model.

    Raises:
        MotionError: The keys, numbers, shapes, joints or bodies of the file are wrong.
    """
    content, joints, bodies = read_bodies(path)
    base = bodies.index(robot.base_body) if robot.base_body in bodies else 0
    pos = content["body_pos_w"]
    quat = content["body_quat_w"]
    if reading.quaternion == "xyzw":
        # From here on, all quaternions are (w, x, y, z).
        quat = quat[..., [3, 0, 1, 2]]
        reading = replace(reading, quaternion="wxyz")
    ang_vel_b = rotation.rotate(
        rotation.conjugate(quat[:, base]), content["body_ang_vel_w"][:, base]
    )
    width = content["joint_pos"].shape[1]
    recording = Recording(
        path=path,
        frame_rate=content["fps"].item(),
        root_pos_w=pos[:, base],
        root_quat=quat[:, base],
        quaternion="wxyz",
        joint_pos=content["joint_pos"],
        # Isaac Lab writes the velocity of the centre of mass: it is computed from positions.
        root_ang_vel_b=ang_vel_b,
        joint_vel=content["joint_vel"],
        joint_names=joints or usual_joints((width,), robot),
    )
    if not joints and not reading.order and set(robot.joint_names) == set(recording.joint_names):
        recording = replace(recording, joint_names=fitting_order(recording, pos, robot))
    motion = motion_of(recording, robot, reading)
    if reading.frames is not None:
        pos = pos[reading.frames[0] - 1 : reading.frames[1]]
    lift = pos.new_tensor([0.0, 0.0, reading.lift])
    check_bodies(motion, pos + lift, robot)
    return motion
