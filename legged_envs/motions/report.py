from dataclasses import dataclass

import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import lowest_point, robot_model
from legged_envs.motions.motion import Motion
from legged_envs.robots import RobotCfg

STANDING_HEIGHT = 0.002  # a foot this close above its height in stance stands, m
TOLERANCE = 1e-3  # most that a standing foot moves in a frame, a part is below ground, a loop's ends differ, m and rad


@dataclass(frozen=True)
class MotionReport:
    """How well a motion suits a robot, from :func:`inspect_motion`."""

    foot_slip: float
    """Largest way of a standing foot over the ground from one frame to the next, m."""
    joint_margin: float
    """Least distance of a joint, the ``tightest_joint``, to the end of its range, rad; negative outside."""
    joint_speed: float
    """Largest joint speed, that of the ``fastest_joint``, as a part of its limit."""
    lowest: float
    """Height of the lowest point of the collision shapes, m."""
    seam: float
    """How far the last frame is from the first in joints [rad], height [m] and tilt [rad]; 0 where it does not loop."""
    tightest_joint: str
    fastest_joint: str

    def problems(self) -> list[str]:
        """What a robot could not do; empty for a good motion."""
        found = (
            (
                self.foot_slip > TOLERANCE,
                f"a standing foot slips {1e3 * self.foot_slip:.2f} mm in a frame",
            ),
            (
                self.joint_margin < 0.0,
                f"{self.tightest_joint} is {-self.joint_margin:.3f} rad outside of its range",
            ),
            (
                self.joint_speed > 1.0,
                f"{self.fastest_joint} moves at {self.joint_speed:.2f} times its speed limit",
            ),
            (self.lowest < -TOLERANCE, f"a part is {-1e3 * self.lowest:.1f} mm below the ground"),
            (self.seam > TOLERANCE, f"the loop does not close: its ends differ by {self.seam:.4f}"),
        )
        return [problem for there, problem in found if there]


def inspect_motion(motion: Motion, robot: RobotCfg) -> MotionReport:
    """Measure whether ``robot`` can make ``motion`` on flat ground. Invalid frames count too."""
    model, joint_pos = robot_model(robot), motion.joint_pos.double()
    low, high = torch.from_numpy(model.jnt_range[1:]).unbind(1)
    unlimited = torch.from_numpy(model.jnt_limited[1:]) == 0
    margin = (
        torch.minimum(joint_pos - low, high - joint_pos).amin(0).masked_fill(unlimited, torch.inf)
    )
    speed = motion.joint_vel.abs().amax(0) / torch.tensor(robot.velocity_limits)
    way = torch.linalg.vector_norm(_foot_pos(motion, robot).diff(dim=0)[..., :2], dim=-1)
    stands = foot_contacts(motion, robot)
    lowest = lowest_point(
        robot, torch.cat((motion.root_pos_w, motion.root_quat_w, motion.joint_pos), dim=1)
    )
    return MotionReport(
        foot_slip=(way * (stands[1:] & stands[:-1])).max().item(),
        joint_margin=margin.min().item(),
        joint_speed=speed.max().item(),
        lowest=lowest.min().item(),
        seam=_seam(motion) if motion.loop else 0.0,
        tightest_joint=robot.joint_names[int(margin.argmin())],
        fastest_joint=robot.joint_names[int(speed.argmax())],
    )


def foot_contacts(motion: Motion, robot: RobotCfg) -> torch.Tensor:
    """Whether each foot stands, by its height. Shape: (T, num_feet), bool."""
    return _foot_pos(motion, robot)[..., 2] < robot.foot_radius + STANDING_HEIGHT


def _foot_pos(motion: Motion, robot: RobotCfg) -> torch.Tensor:
    return motion.body_pos_w[:, [motion.body_names.index(foot) for foot in robot.foot_names]]


def _seam(motion: Motion) -> float:
    """Difference of last and first frame that a displacement and a turn on the ground do not explain."""
    joints = (motion.joint_pos[-1] - motion.joint_pos[0]).abs().max()
    height = (motion.root_pos_w[-1, 2] - motion.root_pos_w[0, 2]).abs()
    tilt = rotation.rotate(
        rotation.conjugate(motion.root_quat_w[[0, -1]]), torch.tensor([0.0, 0.0, -1.0])
    )
    return max(joints.item(), height.item(), (tilt[1] - tilt[0]).abs().max().item())
