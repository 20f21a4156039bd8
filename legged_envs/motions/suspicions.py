"""Names what is wrong with a clip as a whole: its pose, its height, its joints, its speed.

These are the mistakes of files that are right in every single number: another order of the
quaternion, another height of the ground, degrees, another frame rate.
"""

import math

import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import linear_velocity, robot_model
from legged_envs.motions.lowest import lowest_point
from legged_envs.motions.motion import Motion
from legged_envs.robots import RobotCfg

GRAVITY = 9.81
"""Acceleration of free fall, m/s²."""
UPRIGHT = 0.5
"""Vertical component of the base's z axis below which the base lies: 60° of tilt."""
USUAL = 0.9
"""Share of the frames from which on a fault is of the whole clip."""
SINKING = 0.05
"""Depth of the lowest point below the ground that is named, m. Retargeted feet sink 2 to 4 cm."""
FLYING = 0.05
"""Height of the lowest point over the ground above which a robot flies, m."""
LONGEST_FLIGHT = 0.8
"""Longest time in the air that is not named, s: a jump of 0.8 m."""
SHORTEST_FLIGHT = 6
"""Frames of a flight that are enough to measure its acceleration."""
CLOSE = 0.15
"""Relative error of a frame rate that is not named."""
LEAST_CORRELATION = 0.5
"""Correlation with velocities between frames from which on velocities belong to the positions."""
WALK_RATIO = 2.3
"""Step length over step rate, scaled by leg length and gravity, above which steps are too slow.

People have 1.4 at any speed, 0.0065 m per step/min with legs of 0.9 m (Sekiya et al. 1996), and
robots that trot less. At half the speed it doubles.
"""
STANDING_SPEED = 0.15
"""Speed below which a foot stands, as a fraction of its largest one."""


TILT = 0.35
"""Tilt of the base, rad, that may come from another order of the quaternion: 20°."""
BACKWARDS = 0.3
"""Mean speed of a base, m/s, that decides between ahead and backwards."""


class MotionWarning(UserWarning):
    """Warning about a motion that can be used, but is probably not what its maker meant."""


def suspicions(motion: Motion, robot: RobotCfg) -> list[str]:
    """Return what is probably wrong with a clip, a sentence each with the one thing to do.

    Args:
        motion: The motion.
        robot: Its robot.
    """
    qpos = torch.cat((motion.root_pos_w, motion.root_quat_w, motion.joint_pos), dim=1)
    lowest = lowest_point(robot, qpos)
    found = [
        _lies(motion) or _has_other_order(motion),
        _sinks(lowest),
        _flies(motion, lowest),
        _leaves_ranges(motion, robot),
    ]
    # A clip that floats as a whole has no flights and no steps.
    slow = _velocities_differ(motion)
    if not slow and not found[2]:
        slow = _falls_slowly(motion, lowest) or _steps_slowly(motion, robot)
    return [sentence for sentence in (*found, slow) if sentence]


def _lies(motion: Motion) -> str:
    axis = motion.root_quat_w.new_tensor([0.0, 0.0, 1.0])
    up = rotation.rotate(motion.root_quat_w, axis)[:, 2]
    share = (up < UPRIGHT).float().mean().item()
    if share < USUAL:
        return ""
    tilt = torch.rad2deg(torch.acos(up.median().clamp(-1.0, 1.0))).item()
    return (
        f"the base lies on its side or upside down, tilted by {tilt:.0f}° in {share:.0%} of the "
        "frames: is z up in the file, and is the order of the quaternion right "
        "(--motion.quaternion)?"
    )


def _has_other_order(motion: Motion) -> str:
    """Compare the orientations with those of the other order of the quaternion.

    A file in the order x, y, z, w that is read as w, x, y, z is upright while it faces ahead. It
    tilts as it turns, and moves backwards.
    """
    other = motion.root_quat_w[:, [3, 0, 1, 2]]
    tilt = _largest_tilt(motion.root_quat_w)
    other_tilt = _largest_tilt(other)
    if other_tilt > TILT / 2.0:
        return ""
    advice = "in the order x, y, z, w (--motion.quaternion xyzw)"
    if tilt > TILT:
        return (
            f"the base tilts by up to {math.degrees(tilt):.0f}°, and by "
            f"{math.degrees(other_tilt):.0f}° if the quaternion of the file is {advice}"
        )
    speed = _speed_ahead(motion, motion.root_quat_w)
    if speed < -BACKWARDS and _speed_ahead(motion, other) > BACKWARDS:
        return (
            f"the base moves backwards with {-speed:.1f} m/s, and ahead if the quaternion of the "
            f"file is {advice}"
        )
    return ""


def _largest_tilt(quat: torch.Tensor) -> float:
    """Return the largest angle between the base's z axis and the vertical, rad."""
    up = rotation.rotate(quat, quat.new_tensor([0.0, 0.0, 1.0]))[:, 2]
    return math.acos(up.min().clamp(-1.0, 1.0).item())


def _speed_ahead(motion: Motion, quat: torch.Tensor) -> float:
    """Return the mean velocity along the base's x axis, m/s."""
    in_base = rotation.rotate(rotation.conjugate(quat), motion.root_lin_vel_w)
    return in_base[:, 0].mean().item()


def _sinks(lowest: torch.Tensor) -> str:
    depth = -lowest.min().item()
    share = (lowest < -SINKING).double().mean().item()
    if share == 0.0:
        return ""
    usual = -lowest.median().item()
    remedy = "is the ground of the file flat, at z = 0, and z up?"
    if usual > SINKING:
        remedy = f"--motion.lift {usual:.2f} raises the clip"
    return (
        f"it sinks: the lowest point is {depth:.2f} m below the ground, and more than "
        f"{SINKING:g} m in {share:.0%} of the frames ({remedy})"
    )


def _flies(motion: Motion, lowest: torch.Tensor) -> str:
    height = lowest.min().item()
    if height > FLYING:
        return (
            f"it flies: the lowest point is never less than {height:.2f} m above the ground "
            f"(--motion.lift {-height:.2f} lowers the clip)"
        )
    longest = 0.0
    at = 0.0
    for first, end in _flights(lowest):
        duration = (end - first) / motion.frame_rate
        if duration > longest:
            longest = duration
            at = first / motion.frame_rate
    if longest <= LONGEST_FLIGHT:
        return ""
    return (
        f"it flies for {longest:.1f} s from {at:.1f} s on, longer than a jump: is the ground of "
        "the file flat, at z = 0?"
    )


def _flights(lowest: torch.Tensor) -> list[tuple[int, int]]:
    """Return the first frame and the frame after the last one of each flight."""
    in_air = (lowest > FLYING).long()
    edges = torch.cat((in_air.new_zeros(1), in_air, in_air.new_zeros(1))).diff()
    firsts = (edges == 1).nonzero().squeeze(1).tolist()
    ends = (edges == -1).nonzero().squeeze(1).tolist()
    return list(zip(firsts, ends, strict=True))


def _leaves_ranges(motion: Motion, robot: RobotCfg) -> str:
    model = robot_model(robot)
    low, high = torch.from_numpy(model.jnt_range[1:]).unbind(1)
    is_limited = torch.from_numpy(model.jnt_limited[1:]) != 0
    pos = motion.joint_pos.double()
    beyond = torch.maximum(low - pos, pos - high).amax(0).where(is_limited, low.new_tensor(0.0))
    worst = int(beyond.argmax())
    # Two models of one robot differ by a few degrees.
    if beyond[worst] < 0.2:
        return ""
    return (
        f"{robot.joint_names[worst]} is {beyond[worst]:.2f} rad beyond its range, and "
        f"{int((beyond >= 0.2).sum())} joints are beyond theirs by 0.2 rad and more: is the order "
        "of the joints right (--motion.order)?"
    )


def _velocities_differ(motion: Motion) -> str:
    """Return a warning if the velocities in the file contradict its positions, otherwise ""."""
    of_frames = linear_velocity(motion.joint_pos.double(), motion.frame_rate, motion.loop)
    in_file = motion.joint_vel.double()
    square = (of_frames**2).sum()
    if square < 1e-6:
        return ""
    product = (in_file * of_frames).sum()
    norms = (in_file**2).sum().sqrt() * square.sqrt()
    correlation = (product / norms).item() if norms > 0.0 else 0.0
    if correlation < LEAST_CORRELATION:
        return (
            "the joint velocities in the file do not belong to its joint positions: their "
            f"correlation with the velocities between its frames is {correlation:.2f}, not 1; "
            "leave the velocities out of the file, and they are computed from the positions"
        )
    # Least squares: the factor from one to the other.
    factor = (product / square).item()
    if abs(factor - 1.0) < CLOSE:
        return ""
    rate = motion.frame_rate * factor
    return (
        f"the joint velocities in the file are {factor:.2f} times the velocities between its "
        "frames at "
        f"{motion.frame_rate:g} Hz: the clip probably has {_plain(rate)} Hz "
        f"(--motion.rate {_plain(rate)})"
    )


def _falls_slowly(motion: Motion, lowest: torch.Tensor) -> str:
    """Compare flights with free fall, because its acceleration reveals the frame rate."""
    measured = []
    for first, end in _flights(lowest):
        if end - first < SHORTEST_FLIGHT:
            continue
        height = motion.root_pos_w[first:end, 2].double()
        measured.append(-height.diff(n=2).mean().item() * motion.frame_rate**2)
    if not measured:
        return ""
    acceleration = sum(measured) / len(measured)
    # Without a sign of falling, the flight is no jump: somebody carries the robot.
    if acceleration < 0.05 * GRAVITY:
        return ""
    factor = (GRAVITY / acceleration) ** 0.5
    # Legs that stretch move the base relative to the centre of mass.
    if 0.7 < factor < 1.4:
        return ""
    return _at_another_rate(motion, factor, f"it falls with {acceleration:.1f} m/s² in its jumps")


def _steps_slowly(motion: Motion, robot: RobotCfg) -> str:
    """Compare the length of steps with their rate."""
    feet = [motion.body_names.index(foot) for foot in robot.foot_names]
    speed = motion.body_lin_vel_w[:, feet].norm(dim=-1)
    # Speeds relative to the fastest do not depend on the frame rate.
    stands = speed < STANDING_SPEED * speed.amax()
    landings = int((stands[1:] & ~stands[:-1]).sum())
    # Steps of a biped: the landings of any foot. Feet of a quadruped land two at a time.
    steps = landings * 2 / len(feet)
    travelled = (motion.root_pos_w[-1, :2] - motion.root_pos_w[0, :2]).norm().item()
    if steps < 3 or travelled < 0.5:
        return ""
    leg = robot.base_height
    length = travelled / steps
    rate = steps / motion.duration
    ratio = (length / leg) / (rate * (leg / GRAVITY) ** 0.5)
    if ratio < WALK_RATIO:
        return ""
    what = f"it takes steps of {length:.2f} m, only {rate:.1f} per s"
    return _at_another_rate(motion, 2.0, what)


def _at_another_rate(motion: Motion, factor: float, what: str) -> str:
    rate = motion.frame_rate * factor
    return (
        f"{what}: at {motion.frame_rate:g} Hz it moves at about {1.0 / factor:.1f} of the speed "
        f"that it was made for (--motion.rate {_plain(rate)})"
    )


def _plain(rate: float) -> str:
    """Return a frame rate with the digits that a person would type."""
    return f"{rate:.0f}" if rate >= 1.0 else f"{rate:.2g}"
