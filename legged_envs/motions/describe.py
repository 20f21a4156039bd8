"""Describes a reference motion in words and numbers, for a person."""

from legged_envs.motions.motion import Motion
from legged_envs.motions.report import foot_contacts, inspect_motion
from legged_envs.robots import RobotCfg


def describe_motion(motion: Motion, robot: RobotCfg) -> dict[str, str]:
    """Return the measures of a motion by their names, as a person reads them.

    Args:
        motion: The motion.
        robot: Its robot.
    """
    report = inspect_motion(motion, robot)
    step = motion.root_pos_w.diff(dim=0)[:, :2]
    path = step.norm(dim=1).sum().item()
    height = motion.root_pos_w[:, 2]
    contacts = foot_contacts(motion, robot).float().mean(0).tolist()
    pairs = zip(robot.foot_names, contacts, strict=True)
    return {
        "frames": f"{motion.num_frames} at {motion.frame_rate:g} Hz, {motion.duration:.2f} s",
        "repeats": "yes" if motion.loop else "no",
        "way of the base": f"{path:.2f} m, {path / motion.duration:.2f} m/s on average",
        "height of the base": f"{height.min():.3f} to {height.max():.3f} m",
        "lowest point": f"{report.lowest:.3f} m",
        "feet on the ground": ", ".join(f"{foot} {share:.0%}" for foot, share in pairs),
        "slip of a standing foot": f"{1e3 * report.foot_slip:.1f} mm in a frame",
        "nearest end of a range": f"{report.joint_margin:.3f} rad, {report.tightest_joint}",
        "fastest joint": f"{report.joint_speed:.0%} of its limit, {report.fastest_joint}",
    }
