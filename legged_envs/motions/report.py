"""Measures of how well a robot can make a motion."""

from dataclasses import dataclass

import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import lowest_point, robot_model
from legged_envs.motions.motion import Motion
from legged_envs.robots import RobotCfg

STANDING_HEIGHT = 0.002
"""Largest height of a standing foot above its height in stance, m."""
TOLERANCE = 1e-3
"""Largest slip of a standing foot in one frame, depth below the ground and difference between the
ends of a loop, m and rad."""


@dataclass(frozen=True)
class MotionReport:
    """How well a motion suits a robot, measured by :func:`inspect_motion`."""

    foot_slip: float
    """Largest distance that a standing foot moves over the ground from one frame to the next, m."""
    joint_margin: float
    """Smallest distance of a joint to the end of its range, rad. It is negative outside."""
    joint_speed: float
    """Largest joint speed, as a part of the joint's limit."""
    lowest: float
    """Height of the lowest point of the collision shapes, m."""
    seam: float
    """Difference of the last frame from the first in joints [rad], height [m] and tilt [rad]. It is
    0 if the motion does not loop."""
    tightest_joint: str
    """Joint of the ``joint_margin``."""
    fastest_joint: str
    """Joint of the ``joint_speed``."""

    def problems(self) -> list[str]:
        """Return what the robot could not do, a sentence each. The list is empty for a good
        motion."""
        problems = []
        if self.foot_slip > TOLERANCE:
            problems.append(f"a standing foot slips {1e3 * self.foot_slip:.2f} mm in a frame")
        if self.joint_margin < 0.0:
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
    """Measure whether ``robot`` can make ``motion`` on flat ground. Invalid frames count too."""
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
    """Return True for feet that stand, by their height. Shape: (T, num_feet), bool."""
    # By height alone: a foot that slides at the height of stance also counts, so that slip is
    # found.
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
    # A displacement and a turn about z are what a loop may have.
    joints = (motion.joint_pos[-1] - motion.joint_pos[0]).abs().max()
    height = (motion.root_pos_w[-1, 2] - motion.root_pos_w[0, 2]).abs()
    # The direction of gravity in the base frame does not change when the base turns about z.
    to_base = rotation.conjugate(motion.root_quat_w[[0, -1]])
    gravity = rotation.rotate(to_base, torch.tensor([0.0, 0.0, -1.0]))
    tilt = (gravity[1] - gravity[0]).abs().max()
    return max(joints.item(), height.item(), tilt.item())
