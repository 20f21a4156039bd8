"""Measures how well a robot can perform a reference motion."""

from dataclasses import dataclass

import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import robot_model
from legged_envs.motions.lowest import lowest_point
from legged_envs.motions.motion import Motion
from legged_envs.robots import RobotCfg

STANDING_HEIGHT = 0.002
"""Height above ``RobotCfg.foot_radius`` below which the origin of a foot counts as standing, m."""
TOLERANCE = 1e-3
"""Largest error of a motion that is not a problem, m and rad.

It applies to the slip of a standing foot from one frame to the next, the depth of a body below the
ground, the distance of a joint beyond its range, and the difference between the first and the last
frame of a loop.
"""


@dataclass(frozen=True)
class MotionReport:
    """Measures of how well a robot can perform a motion, from :func:`inspect_motion`.

    Each number is the worst one over all frames, joints and feet.
    """

    foot_slip: float
    """Largest distance that a standing foot moves over the ground from one frame to the next, m."""
    joint_margin: float
    """Smallest distance of a joint to the end of its range, rad. Negative outside of the range."""
    joint_speed: float
    """Largest joint speed, as a fraction of the joint's velocity limit. Above 1 it is too fast."""
    lowest: float
    """Height of the lowest point of the robot above flat ground, m. Negative below the ground."""
    seam: float
    """Largest difference between the first and the last frame of a loop.

    Joint positions in rad, height of the base in m, and direction of gravity in the base frame are
    compared. 0 if the motion does not loop.
    """
    tightest_joint: str
    """Name of the joint with the smallest distance to the end of its range (``joint_margin``)."""
    fastest_joint: str
    """Name of the joint with the largest fraction of its speed limit."""

    def problems(self) -> list[str]:
        """Return the reasons why the robot cannot perform the motion, a sentence each.

        The list is empty if it can.
        """
        problems = []
        if self.foot_slip > TOLERANCE:
            problems.append(f"a standing foot slips {1e3 * self.foot_slip:.2f} mm in a frame")
        if self.joint_margin < -TOLERANCE:
            problems.append(
                f"{self.tightest_joint} is {-self.joint_margin:.3f} rad outside of its range"
            )
        if self.joint_speed > 1.0:
            problems.append(
                f"{self.fastest_joint} moves at {self.joint_speed:.2f} times its speed limit"
            )
        if self.lowest < -TOLERANCE:
            problems.append(f"a part is {-1e3 * self.lowest:.1f} mm below the ground")
        if self.seam > TOLERANCE:
            problems.append(f"the loop does not close: its ends differ by {self.seam:.4f}")
        return problems


def inspect_motion(motion: Motion, robot: RobotCfg) -> MotionReport:
    """Measure how well a robot can perform a motion on flat ground.

    All frames are measured, including invalid frames.

    Args:
        motion: The motion. Its names must be the names of ``robot``.
        robot: The robot.
    """
    margin = _joint_margins(motion, robot)
    speed = motion.joint_vel.abs().amax(0) / torch.tensor(robot.velocity_limits)
    foot_steps = _foot_pos(motion, robot).diff(dim=0)
    slip = torch.linalg.vector_norm(foot_steps[..., :2], dim=-1)
    stands = foot_contacts(motion, robot)
    # A foot that has just landed, or is about to lift off, may still move.
    stays = stands[1:] & stands[:-1]
    qpos = torch.cat((motion.root_pos_w, motion.root_quat_w, motion.joint_pos), dim=1)
    return MotionReport(
        foot_slip=(slip * stays).max().item(),
        joint_margin=margin.min().item(),
        joint_speed=speed.max().item(),
        lowest=lowest_point(robot, qpos).min().item(),
        seam=_seam(motion) if motion.loop else 0.0,
        tightest_joint=robot.joint_names[int(margin.argmin())],
        fastest_joint=robot.joint_names[int(speed.argmax())],
    )


def foot_contacts(motion: Motion, robot: RobotCfg) -> torch.Tensor:
    """Return True for each foot that stands on flat ground, in each frame of a motion.

    A foot stands if its origin is at most 2 mm above ``RobotCfg.foot_radius``.

    Args:
        motion: The motion, of T frames.
        robot: Its robot.

    Returns:
        Contacts, feet in the order of ``RobotCfg.foot_names``. Shape: (T, num_feet), bool.
    """
    # Only by height: a foot that slides over the ground also stands, so that its slip is measured.
    return _foot_pos(motion, robot)[..., 2] < robot.foot_radius + STANDING_HEIGHT


def _joint_margins(motion: Motion, robot: RobotCfg) -> torch.Tensor:
    """Return the smallest distance of each joint to the end of its range, rad. Shape: (J,)."""
    model = robot_model(robot)
    joint_pos = motion.joint_pos.double()
    # Joint 0 is the free joint of the base.
    low, high = torch.from_numpy(model.jnt_range[1:]).unbind(1)
    is_unlimited = torch.from_numpy(model.jnt_limited[1:]) == 0
    margin = torch.minimum(joint_pos - low, high - joint_pos).amin(0)
    # MuJoCo's range of a joint without limits is (0, 0).
    return margin.masked_fill(is_unlimited, torch.inf)


def _foot_pos(motion: Motion, robot: RobotCfg) -> torch.Tensor:
    feet = [motion.body_names.index(foot) for foot in robot.foot_names]
    return motion.body_pos_w[:, feet]


def _seam(motion: Motion) -> float:
    """Return the difference of the last from the first frame, apart from a move on the ground."""
    # A loop may move over the ground and turn about z: only the other coordinates are compared.
    joints = (motion.joint_pos[-1] - motion.joint_pos[0]).abs().max()
    height = (motion.root_pos_w[-1, 2] - motion.root_pos_w[0, 2]).abs()
    # The direction of gravity in the base frame does not change when the base turns about z.
    to_base = rotation.conjugate(motion.root_quat_w[[0, -1]])
    gravity = rotation.rotate(to_base, torch.tensor([0.0, 0.0, -1.0]))
    tilt = (gravity[1] - gravity[0]).abs().max()
    return max(joints.item(), height.item(), tilt.item())
