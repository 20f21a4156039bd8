"""Observation terms: ``term(env, **params)`` → (num_envs, size) float32."""

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.mdp.context import Env
from legged_envs.mdp.scan import SCAN_X, SCAN_Y, around, scanned


def command(env: Env, name: str = "velocity") -> Tensor:
    """The present command, of its own size: (vx m/s, vy m/s, ωz rad/s) for a velocity command."""
    return env.commands[name]


def projected_gravity(env: Env) -> Tensor:
    """Direction of gravity in the base frame, size 3; (0, 0, −1) when upright."""
    return env.robot.projected_gravity


def base_ang_vel(env: Env) -> Tensor:
    """Angular velocity in the base frame, size 3, rad/s."""
    return env.robot.ang_vel_b


def base_lin_vel(env: Env) -> Tensor:
    """Velocity of the base in the base frame, size 3, m/s."""
    return env.robot.lin_vel_b


def joint_pos(env: Env) -> Tensor:
    """Joint positions relative to the default pose, size num_joints, rad."""
    return env.robot.joint_offset


def joint_vel(env: Env) -> Tensor:
    """Joint velocities, size num_joints, rad/s."""
    return env.robot.joint_vel


def last_action(env: Env) -> Tensor:
    """The action of the last step, size num_actions, within ±``action_limit`` of the task; 0 after a reset."""
    return env.actions.current


def before_previous_action(env: Env) -> Tensor:
    """The action two steps before that of :func:`last_action`, of its size; 0 where the episode had none."""
    return env.actions.before_previous


def last_push_velocity(env: Env) -> Tensor:
    """What the last push of the episode added to the base's velocity, size 3, m/s; 0 before the first."""
    return env.robot.last_push_velocity


def base_height(env: Env) -> Tensor:
    """Height of the base above the ground, size 1, m."""
    return env.robot.base_height.unsqueeze(1)


def foot_contact(env: Env) -> Tensor:
    """1 for each foot that stands, else 0, size num_feet."""
    return env.robot.foot_contact.float()


def foot_height(env: Env) -> Tensor:
    """Height of each foot's origin above the ground, size num_feet, m."""
    return env.robot.foot_height


def foot_air_time(env: Env) -> Tensor:
    """Duration of each foot's swing, size num_feet, s."""
    return env.robot.foot_air_time


def friction(env: Env) -> Tensor:
    """Coefficient of sliding friction of the feet on the ground, size 1."""
    return env.sim.get_parameter("friction").unsqueeze(1)


def base_mass_offset(env: Env) -> Tensor:
    """What randomisation added to the base's mass, size 1, kg."""
    return env.sim.get_parameter("body_mass")[:, :1] - env.sim.default_parameter("body_mass")[:, :1]


def base_com_offset(env: Env) -> Tensor:
    """How far randomisation moved the base's centre of mass, size 3, m."""
    return env.sim.get_parameter("com")[:, 0] - env.sim.default_parameter("com")[:, 0]


def gain_scale(env: Env) -> Tensor:
    """kp and kd of the first joint that has both, relative to the robot's own; ValueError if none has. Shape:
    (num_envs, 2)."""
    robot = env.sim.robot
    i = next(
        (i for i, gains in enumerate(zip(robot.kp, robot.kd, strict=True)) if all(gains)), None
    )
    if i is None:
        raise ValueError(
            f"gain_scale needs a joint with a kp and a kd, and robot {robot.name!r} has none"
        )
    kp, kd = env.sim.get_parameter("kp")[:, i : i + 1], env.sim.get_parameter("kd")[:, i : i + 1]
    return torch.cat((kp * (1.0 / robot.kp[i]), kd * (1.0 / robot.kd[i])), dim=1)


def reference_window(env: Env, motion: str = "motion") -> Tensor:
    """The reference of the steps to come, 0 where there is none; its size, units and order are those of
    :class:`~legged_envs.mdp.MotionCommand`."""
    return env.commands[motion]


def reference_available(env: Env, motion: str = "motion") -> Tensor:
    """1 where there is a reference to imitate, else 0, size 1."""
    return env.commands.terms[motion].available.unsqueeze(1)


def command_or_reference_velocity(
    env: Env, command: str = "velocity", motion: str = "motion"
) -> Tensor:
    """(vx, vy, ωz) in the base frame, size 3: of the reference where there is one, else as commanded, m/s and rad/s."""
    reference = env.commands.terms[motion]
    velocity = torch.cat(
        (reference.target_lin_vel_b[:, :2], reference.target_ang_vel_b[:, 2:]), dim=1
    )
    return torch.where(reference.available.unsqueeze(1) > 0.0, velocity, env.commands[command])


def reference_window_and_root(env: Env, motion: str = "motion") -> Tensor:
    """Each frame of :func:`reference_window`, then where the base is to be from where it is: the way there in the base
    frame [m] and twice the (x, y, z) of the turn's quaternion [rad where small]: its size and 6 for each frame."""
    reference, robot = env.commands.terms[motion], env.robot
    to_base = rotation.conjugate(robot.root_quat_w).unsqueeze(1)
    way = rotation.rotate(to_base, reference.window_root_pos_w - robot.root_pos_w.unsqueeze(1))
    turn = rotation.multiply(to_base, reference.window_root_quat_w)
    turn = 2.0 * torch.where(turn[..., :1] < 0.0, -turn[..., 1:], turn[..., 1:])
    frames = reference.value.unflatten(1, (way.shape[1], -1))
    return torch.cat(
        (frames, torch.cat((way, turn), dim=2) * reference.available[:, None, None]), dim=2
    ).flatten(1)


def reference_key_error(env: Env, motion: str = "motion") -> Tensor:
    """From the key bodies to where the reference has them next, in the base frame, m; 0 without a reference. Size:
    3 for each key body."""
    reference = env.commands.terms[motion]
    error = reference.target_key_pos_b - env.robot.bodies(reference.key_bodies).pos_b
    return error.flatten(1) * reference.available.unsqueeze(1)


def height_scan(
    env: Env,
    x: tuple[float, ...] = SCAN_X,
    y: tuple[float, ...] = SCAN_Y,
    offset: float = 0.5,
    limit: float = 1.0,
    lookup: str = "lowest",
) -> Tensor:
    """How far the ground at each (x, y) ahead and to the left of the base, m, is below it, less ``offset``, clipped to
    ±``limit``, m (legged_gym ``heights``). Size len(x) · len(y): the points turn with the heading, those of one x stand
    together. ``lookup`` is a method of :class:`~legged_envs.sim.ground.Ground`: ``"lowest"``, ``"bilinear"`` or
    ``"height"``."""
    below = env.robot.root_pos_w[:, 2:] - scanned(env, x, y, lookup)[2]
    return (below - offset).clamp(-limit, limit)


def foot_scan(env: Env, reach: float = 0.1, lookup: str = "lowest", limit: float = 1.0) -> Tensor:
    """Height of each foot's origin above nine points of the ground, ``reach`` m apart around it and turned with the
    heading, clipped to ±``limit``, m (LeggedGym-Ex ``height_around_feet``). Shape: (num_envs, num_feet · 9)."""
    foot_pos = env.robot.foot_pos_w
    steps = (-reach, 0.0, reach)
    if env.sim.ground is None:
        return foot_pos[..., 2:].clamp(-limit, limit).expand(-1, -1, 9).flatten(1)
    ground = getattr(env.sim.ground, lookup)(*around(env, foot_pos[..., :2], steps, steps))
    return (foot_pos[..., 2:] - ground).clamp(-limit, limit).flatten(1)


def foot_ground_normal(env: Env) -> Tensor:
    """Unit normal of the ground under each foot in the frame of the heading. Shape: (num_envs, num_feet · 3)."""
    foot_pos = env.robot.foot_pos_w
    if env.sim.ground is None:
        return (
            torch.zeros_like(foot_pos)
            .index_fill(2, torch.tensor(2, device=env.device), 1.0)
            .flatten(1)
        )
    turn = rotation.from_yaw(-env.robot.heading()).unsqueeze(1)
    return rotation.rotate(turn, env.sim.ground.normal(*foot_pos[..., :2].unbind(-1))).flatten(1)


def foot_edge_distance(env: Env, limit: float = 0.5) -> Tensor:
    """How far each foot is from an edge, steeper than the terrain's ``slope_threshold``, at most ``limit``, m. Size
    num_feet."""
    x, y, _ = env.robot.foot_pos_w.unbind(-1)
    if env.sim.ground is None:
        return torch.full_like(x, limit)
    return env.sim.ground.edge_distance(x, y).clamp(max=limit)
