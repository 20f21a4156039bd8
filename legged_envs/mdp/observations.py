"""Observation terms: functions ``term(env, **params)`` → (num_envs, size) float32.

"Size" in a docstring is the number of columns. The base frame has x ahead, y to the left, z up.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.checks import check_choice, check_number
from legged_envs.mdp.context import Env
from legged_envs.mdp.scan import LOOKUPS, SCAN_X, SCAN_Y, points_around, scan_heights
from legged_envs.robots import RobotCfg
from legged_envs.sim.ground import FARTHEST_EDGE


def command(env: Env, name: str = "velocity") -> Tensor:
    """Return the present command, for example (vx m/s, vy m/s, ωz rad/s) of a velocity command.

    Size: the size of the command.

    Args:
        name: Name of the command.
    """
    return env.commands[name]


def projected_gravity(env: Env) -> Tensor:
    """Return the direction of gravity in the base frame, (0, 0, −1) when upright. Size: 3."""
    return env.robot.projected_gravity


def base_ang_vel(env: Env) -> Tensor:
    """Return the angular velocity of the base in the base frame, rad/s. Size: 3."""
    return env.robot.ang_vel_b


def base_lin_vel(env: Env) -> Tensor:
    """Return the linear velocity of the base in the base frame, m/s. Size: 3."""
    return env.robot.lin_vel_b


def joint_pos(env: Env) -> Tensor:
    """Return the joint positions relative to the default pose, rad. Size: num_joints."""
    return env.robot.joint_offset


def joint_vel(env: Env) -> Tensor:
    """Return the joint velocities, rad/s. Size: num_joints."""
    return env.robot.joint_vel


def last_action(env: Env) -> Tensor:
    """Return the action of the last control step, clipped to ±``action_limit``. Size: num_actions.

    The observation is 0 after a reset.
    """
    return env.actions.current


def before_previous_action(env: Env) -> Tensor:
    """Return the action two control steps earlier than :func:`last_action`. Size: num_actions.

    The observation is 0 in the first two steps of an episode.
    """
    return env.actions.before_previous


def last_push_velocity(env: Env) -> Tensor:
    """Return the velocity that the last push of the episode added to the base, m/s. Size: 3.

    The observation is 0 before the first push.
    """
    return env.robot.last_push_velocity


def base_height(env: Env) -> Tensor:
    """Return the height of the base above the ground, m. Size: 1."""
    return env.robot.base_height.unsqueeze(1)


def foot_contact(env: Env) -> Tensor:
    """Return 1 for each foot on the ground, 0 for each foot in the air. Size: num_feet."""
    # Networks take numbers, not bools.
    return env.robot.foot_contact.float()


def foot_height(env: Env) -> Tensor:
    """Return the height of each foot's origin above the ground, m. Size: num_feet."""
    return env.robot.foot_height


def foot_air_time(env: Env) -> Tensor:
    """Return the time for which each foot has been in the air, s. Size: num_feet."""
    return env.robot.foot_air_time


def friction(env: Env) -> Tensor:
    """Return the coefficient of sliding friction of the feet on the ground. Size: 1."""
    return env.sim.get_parameter("friction").unsqueeze(1)


def base_mass_offset(env: Env) -> Tensor:
    """Return the mass that domain randomization added to the base, kg. Size: 1."""
    # The base is body 0.
    mass = env.sim.get_parameter("body_mass")[:, :1]
    return mass - env.sim.default_parameter("body_mass")[:, :1]


def base_com_offset(env: Env) -> Tensor:
    """Return the shift of the base's centre of mass by domain randomization, m. Size: 3."""
    # The base is body 0.
    com = env.sim.get_parameter("com")[:, 0]
    return com - env.sim.default_parameter("com")[:, 0]


def gain_scale(env: Env) -> Tensor:
    """Return the factors by which domain randomization multiplied kp and kd. Size: 2.

    The factors are measured at the first joint with both gains.

    Raises:
        ValueError: No joint has both gains.
    """
    robot = env.sim.robot
    joint = _first_joint_with_gains(robot)
    # Randomization multiplies the gains of all joints alike, so one joint is enough.
    kp = env.sim.get_parameter("kp")[:, joint : joint + 1]
    kd = env.sim.get_parameter("kd")[:, joint : joint + 1]
    kp_scale = kp * (1.0 / robot.kp[joint])
    kd_scale = kd * (1.0 / robot.kd[joint])
    return torch.cat((kp_scale, kd_scale), dim=1)


def _first_joint_with_gains(robot: RobotCfg) -> int:
    for joint, (kp, kd) in enumerate(zip(robot.kp, robot.kd, strict=True)):
        if kp and kd:
            return joint
    raise ValueError(
        f"gain_scale needs a joint with a kp and a kd, and robot {robot.name!r} has none"
    )


def reference_window(env: Env, motion: str = "motion") -> Tensor:
    """Return the clip to imitate at some control steps ahead, 0 for robots without a clip.

    The observation is ``value`` of :class:`~legged_envs.mdp.motion_command.MotionCommand`, which
    documents size, units and order.

    Args:
        motion: Name of the motion command.
    """
    return env.commands[motion]


def reference_available(env: Env, motion: str = "motion") -> Tensor:
    """Return 1 for robots with a motion clip to imitate at present, 0 for all other robots. Size:
    1.

    Args:
        motion: Name of the motion command.
    """
    return env.commands.terms[motion].available.unsqueeze(1)


def command_or_reference_velocity(
    env: Env,
    command: str = "velocity",
    motion: str = "motion",
) -> Tensor:
    """Return the target velocity (vx, vy, ωz) in the base frame, m/s and rad/s. Size: 3.

    The observation is the clip's velocity for robots that imitate a motion clip, and the velocity
    command for all other robots.

    Args:
        command: Name of the velocity command.
        motion: Name of the motion command.
    """
    reference = env.commands.terms[motion]
    linear = reference.target_lin_vel_b[:, :2]
    turn = reference.target_ang_vel_b[:, 2:]
    velocity = torch.cat((linear, turn), dim=1)
    is_available = reference.available.unsqueeze(1) > 0.0
    return torch.where(is_available, velocity, env.commands[command])


def reference_window_and_root(env: Env, motion: str = "motion") -> Tensor:
    """Return the clip at some control steps ahead, with its base pose relative to the robot.

    The observation is :func:`reference_window` with 6 more numbers after each frame: the vector
    from the robot's base to the reference's base in the base frame, m, and 2 (x, y, z) of the
    quaternion of the rotation between both, which is the rotation vector, rad, for small angles. It
    is 0 for robots without a clip. Size: the size of ``reference_window`` plus 6 for each frame.

    Args:
        motion: Name of the motion command.
    """
    robot = env.robot
    reference = env.commands.terms[motion]
    to_base = rotation.conjugate(robot.root_quat_w).unsqueeze(1)
    # In the base frame, so that the observation does not depend on the place in the world.
    way_w = reference.window_root_pos_w - robot.root_pos_w.unsqueeze(1)
    way = rotation.rotate(to_base, way_w)
    quat = rotation.multiply(to_base, reference.window_root_quat_w)
    # q and −q are the same rotation: that with w ≥ 0 is the shorter turn.
    w = quat[..., :1]
    xyz = quat[..., 1:]
    turn = 2.0 * torch.where(w < 0.0, -xyz, xyz)
    available = reference.available[:, None, None]
    to_reference = torch.cat((way, turn), dim=2) * available
    num_frames = way.shape[1]
    frames = reference.value.unflatten(1, (num_frames, -1))
    return torch.cat((frames, to_reference), dim=2).flatten(1)


def reference_key_error(env: Env, motion: str = "motion") -> Tensor:
    """Return the vector from each key body to its target in the motion clip, base frame, m.

    The observation is 0 for robots without a clip. Size: 3 for each key body.

    Args:
        motion: Name of the motion command.
    """
    reference = env.commands.terms[motion]
    bodies = env.robot.bodies(reference.key_bodies)
    error = reference.target_key_pos_b - bodies.pos_b
    return error.flatten(1) * reference.available.unsqueeze(1)


def height_scan(
    env: Env,
    x: Sequence[float] = SCAN_X,
    y: Sequence[float] = SCAN_Y,
    offset: float = 0.5,
    limit: float = 1.0,
    lookup: str = "lowest",
) -> Tensor:
    """Return the height of the base above the ground at a grid of points, minus ``offset``, m.

    The grid is centred on the base and turns with its heading. Points with the same x are
    neighbours in the result. Source: legged_gym ``heights``. Size: len(x) · len(y).

    Args:
        x: Distances of the points ahead of the base, m.
        y: Distances of the points to the left of the base, m.
        offset: Height of the base above the ground for which the value is 0, m.
        limit: Values are clipped to ±``limit``, m.
        lookup: Method of :class:`~legged_envs.sim.ground.Ground` that gives heights: ``"lowest"``,
            ``"bilinear"`` or ``"height"``.
    """
    _, _, ground_height = scan_heights(env, x, y, lookup)
    below = env.robot.root_pos_w[:, 2:] - ground_height
    # The offset is about the standing height, so that values on flat ground are near 0.
    return (below - offset).clamp(-limit, limit)


def foot_scan(
    env: Env,
    reach: float = 0.1,
    lookup: str = "lowest",
    limit: float = 1.0,
) -> Tensor:
    """Return the height of each foot above nine points of the ground around it, m.

    The points are a 3 × 3 grid around the origin of the foot, turned with the base's heading.
    Source: LeggedGym-Ex ``height_around_feet``. Size: num_feet · 9.

    Args:
        reach: Distance between neighbouring points, m.
        lookup: Method of :class:`~legged_envs.sim.ground.Ground` that gives heights: ``"lowest"``,
            ``"bilinear"`` or ``"height"``.
        limit: Values are clipped to ±``limit``, m.

    Raises:
        ValueError: ``lookup`` is another one.
    """
    check_choice("foot_scan: lookup", lookup, LOOKUPS)
    foot_pos = env.robot.foot_pos_w
    foot_z = foot_pos[..., 2:]
    if env.sim.ground is None:
        # The ground is at 0 under all nine points.
        clipped = foot_z.clamp(-limit, limit)
        return clipped.expand(-1, -1, 9).flatten(1)
    steps = (-reach, 0.0, reach)
    x, y = points_around(env, foot_pos[..., :2], steps, steps)
    ground_height = getattr(env.sim.ground, lookup)(x, y)
    above_ground = (foot_z - ground_height).clamp(-limit, limit)
    return above_ground.flatten(1)


def foot_ground_normal(env: Env) -> Tensor:
    """Return the ground's unit normal under each foot, in a frame that turns with the heading only.

    Size: num_feet · 3.
    """
    foot_pos = env.robot.foot_pos_w
    if env.sim.ground is None:
        normal = torch.zeros_like(foot_pos)
        normal[..., 2] = 1.0
        return normal.flatten(1)
    to_heading = rotation.from_yaw(-env.robot.heading()).unsqueeze(1)
    x, y = foot_pos[..., :2].unbind(-1)
    normal_w = env.sim.ground.normal(x, y)
    return rotation.rotate(to_heading, normal_w).flatten(1)


def foot_edge_distance(env: Env, limit: float = 0.5) -> Tensor:
    """Return the horizontal distance of each foot from the nearest edge of the terrain, m.

    An edge is a place that is steeper than the terrain's ``slope_threshold``. Size: num_feet.

    Args:
        limit: Largest value, m, which is the value on a plane, because a plane has no edges. At
            most 1 m.

    Raises:
        ValueError: ``limit`` is not from 0 to 1 m.
    """
    check_number("foot_edge_distance: limit", limit, 0.0, FARTHEST_EDGE)
    x, y, _ = env.robot.foot_pos_w.unbind(-1)
    if env.sim.ground is None:
        return torch.full_like(x, limit)
    return env.sim.ground.edge_distance(x, y).clamp(max=limit)
