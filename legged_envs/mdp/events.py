"""Event terms: functions ``term(env, env_ids, random, **params)`` that change robots at random.

Events randomize physical properties, place robots at a reset, and push robots. ``env_ids`` (n,) are
indices of the environments to change, and ``random`` is the random stream of the event. U(a, b) is
a uniform draw, and U(±a) a uniform draw between −a and a. q0 is the default joint pose, rad.
"""

from math import pi

import torch
from torch import Tensor
from torch.nn.functional import pad

from legged_envs import rotation
from legged_envs.mdp.context import Env
from legged_envs.mdp.scan import turn_points
from legged_envs.rng import Stream

Range = tuple[float, float]
"""Lower and upper bound of a uniform draw."""

FOOTING = ((0.0, 0.0), (0.1, 0.0), (-0.1, 0.0), (0.0, 0.1), (0.0, -0.1))
"""Points around a foot (x, y) at which the ground must not be higher than the foot, m.

The edge of a step next to the foot would otherwise push the leg away in the first physics step.
"""


def randomize_friction(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    range: Range,
) -> None:
    """Set the sliding friction of each robot on the ground to a drawn coefficient.

    Args:
        range: Bounds of the friction coefficient.
    """
    low, high = range
    friction = random.uniform(low, high, 1, env_ids).squeeze(1)
    env.sim.set_parameter("friction", friction, env_ids)


def fit_mass_range(range: Range, most_share: float | None, base_mass: float) -> Range:
    """Return the bounds of the mass, kg, that :func:`randomize_base_mass` adds to a base.

    Args:
        range: Bounds of the event.
        most_share: Largest part of the base's mass by which it changes. None: any.
        base_mass: Mass of the base, kg.
    """
    low, high = range
    if most_share is not None and high > most_share * base_mass:
        scale = most_share * base_mass / high
        low = low * scale
        high = high * scale
    return low, high


def randomize_base_mass(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    range: Range,
    most_share: float | None = None,
) -> None:
    """Add a drawn mass to the base of each robot. The inertia of the base stays as it is.

    Args:
        range: Bounds of the added mass, kg. Negative values make the base lighter.
        most_share: Largest part of the base's mass by which a light robot changes: if the upper
            bound is more, both bounds are scaled down until it is as much. None: the bounds are
            ``range`` for any robot.

    Raises:
        ValueError: The lower bound leaves a base without mass.
    """
    # The base is body 0.
    base_mass = float(env.sim.default_parameter("body_mass")[0, 0])
    low, high = fit_mass_range(range, most_share, base_mass)
    if low <= -base_mass:
        raise ValueError(
            f"randomize_base_mass: range {range} takes {-low:g} kg from the base of robot "
            f"{env.sim.robot.name!r}, {env.sim.robot.base_body!r}, which weighs {base_mass:g} kg: "
            "write a smaller range, or most_share=0.3"
        )
    masses = env.sim.get_parameter("body_mass")[env_ids]
    # From the model's mass, so that several draws do not add up.
    masses[:, 0] = base_mass + random.uniform(low, high, 1, env_ids).squeeze(1)
    env.sim.set_parameter("body_mass", masses, env_ids)


def randomize_base_com(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    range: Range,
) -> None:
    """Shift the centre of mass of each robot's base by a drawn distance along each of its axes.

    Args:
        range: Bounds of the distance, m.
    """
    low, high = range
    centres = env.sim.get_parameter("com")[env_ids]
    # From the model's centre, so that several draws do not add up.
    default = env.sim.default_parameter("com")[env_ids, 0]
    centres[:, 0] = default + random.uniform(low, high, 3, env_ids)
    env.sim.set_parameter("com", centres, env_ids)


def randomize_gains(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    range: Range,
) -> None:
    """Multiply the PD gains of each robot's joints by drawn factors, one for kp and one for kd.

    Args:
        range: Bounds of both factors.
    """
    low, high = range
    kp_factor, kd_factor = random.uniform(low, high, 2, env_ids).split(1, dim=1)
    kp = env.sim.default_parameter("kp")[env_ids] * kp_factor
    kd = env.sim.default_parameter("kd")[env_ids] * kd_factor
    env.sim.set_parameter("kp", kp, env_ids)
    env.sim.set_parameter("kd", kd, env_ids)


def randomize_joint_parameter(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    parameter: str,
    range: Range,
) -> None:
    """Set a parameter of the joints to a drawn value, which is the same for all joints of a robot.

    Args:
        parameter: ``"armature"``, kg·m², or in the engine ``"mujoco"`` ``"joint_damping"``,
            N·m·s/rad, or ``"joint_friction"``, N·m.
        range: Bounds of the value.

    Raises:
        ValueError: If the engine does not have the parameter.
    """
    if parameter not in env.sim.parameter_names:
        raise ValueError(
            f"this engine has no parameter {parameter!r}: use sim='mujoco', or leave the event out"
        )
    low, high = range
    num_joints = env.sim.default_parameter(parameter).shape[1]
    values = random.uniform(low, high, 1, env_ids)
    env.sim.set_parameter(parameter, values.expand(-1, num_joints), env_ids)


def reset_root(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    yaw: Range = (-pi, pi),
    height: Range = (0.0, 0.0),
    velocity: float = 0.0,
    position: float = 0.0,
) -> None:
    """Place the base of each robot upright, near the start of its environment.

    The start is the centre of the environment's tile on rough ground, and the world's origin on a
    plane. ``SceneCfg.start`` shifts this start and turns its heading. On rough ground, the base is
    higher where the ground near a foot is higher than in the middle of the tile.

    Args:
        yaw: Bounds of the drawn turn about the vertical, relative to the start's heading, rad.
        height: Bounds of the drawn height above the height in which the robot stands, m.
        velocity: Bound of each component of the base's drawn linear (m/s) and angular (rad/s)
            velocity: U(±velocity).
        position: Bound of the drawn distance from the start along world x and y, m: U(±position).
    """
    # The order of the eight draws is part of the random stream: yaw, height, velocities.
    bounds = (yaw, height, *((-velocity, velocity),) * 6)
    low, high = torch.tensor(bounds, dtype=torch.float32, device=env.device).unbind(1)
    draw = random.uniform(low, high, 8, env_ids)
    start_x, start_y, start_yaw = env.sim.start
    above_ground = draw[:, 1:2] + env.sim.robot.base_height
    start = draw.new_tensor((start_x, start_y, 0.0))
    # Columns of 0 for x and y.
    pos = pad(above_ground, (2, 0)) + start
    # A draw only for tasks with this option: other tasks keep their random numbers.
    if position > 0.0:
        pos[:, :2] += random.uniform(-position, position, 2, env_ids)
    heading = draw[:, 0] + start_yaw
    if env.sim.ground is not None:
        origins = env.sim.ground.origins[env_ids]
        pos += origins
        # The ground of the tile's middle may be lower than that below the feet.
        footing = _highest_footing(env, _standing_feet(env, pos, heading))
        pos[:, 2] += (footing - origins[:, 2]).clamp(min=0.0)
    quat = rotation.from_yaw(heading)
    lin_vel = draw[:, 2:5]
    ang_vel = draw[:, 5:]
    env.sim.write_root_state(env_ids, pos, quat, lin_vel, ang_vel)


def reset_joints(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    range: float,
    velocity: float = 0.0,
) -> None:
    """Set each joint to a drawn position near the default pose, within its limits: q0 + U(±range).

    Args:
        range: Bound of the distance from the default pose, rad.
        velocity: Bound of the joint velocities, rad/s: U(±velocity).
    """
    num_joints = env.sim.robot.num_joints
    draw = random.uniform(-1.0, 1.0, 2 * num_joints, env_ids)
    # Positions first, then velocities: the order is part of the random stream.
    offset, speed = draw.chunk(2, dim=1)
    joint_pos = torch.add(env.robot.default_joint_pos, offset, alpha=range)
    low, high = env.robot.soft_joint_pos_limits(1.0)
    # Outside of its range a joint would be thrown back by the first physics step.
    joint_pos = joint_pos.clamp_(low, high)
    env.sim.write_joint_state(env_ids, joint_pos, speed * velocity)


def crouch(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    fraction: float,
    joint_pos: dict[str, float],
    depth: float,
) -> None:
    """Start a random part of the robots in another pose, for example in a crouch.

    This event follows the events that place robots in the default pose. The event adds
    ``joint_pos`` − q0 to the joint positions and lowers the base by ``depth``. Source: LeggedGym-Ex
    ``sit_init_percent``.

    Args:
        fraction: Probability that a robot starts in this pose, 0 to 1.
        joint_pos: Name of a joint → its position in this pose, rad.
        depth: Height of the base in the default pose minus its height in this pose, m.
    """
    sim = env.sim
    share = random.uniform(0.0, 1.0, 1, env_ids).squeeze(1)
    chosen = env_ids[share < fraction]
    down = sim.root_pos_w.new_tensor((0.0, 0.0, depth))
    sim.write_root_state(
        chosen,
        sim.root_pos_w[chosen] - down,
        sim.root_quat_w[chosen],
        sim.root_lin_vel_w[chosen],
        sim.root_ang_vel_b[chosen],
    )
    # A difference, so that offsets of other events remain.
    change = torch.zeros_like(env.robot.default_joint_pos)
    for name, angle in joint_pos.items():
        joint = sim.robot.joint_names.index(name)
        change[joint] = angle - sim.robot.default_joint_pos[joint]
    low, high = env.robot.soft_joint_pos_limits(1.0)
    joints = (sim.joint_pos[chosen] + change).clamp_(low, high)
    sim.write_joint_state(chosen, joints, sim.joint_vel[chosen])


def drop(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    fraction: float,
    distance: float,
    height: Range = (0.0, 0.05),
    command: str = "velocity",
) -> None:
    """Start a random part of the robots anywhere on their tile, with the command to stand still.

    This event follows the events that place robots. The robot keeps its heading, its joint
    positions and its velocities. The robot's lowest foot is ``height`` above the highest ground
    near any of its feet.

    Args:
        fraction: Probability that a robot starts in this way, 0 to 1.
        distance: Bound of the distance from the start along world x and y, m: U(±distance).
        height: Bounds of the drawn height of the feet above the ground, m.
        command: Name of the velocity command, which is zero until the next command is due.
    """
    sim = env.sim
    bounds = ((0.0, 1.0), (-distance, distance), (-distance, distance), height)
    low, high = torch.tensor(bounds, dtype=torch.float32, device=env.device).unbind(1)
    draw = random.uniform(low, high, 4, env_ids)
    is_dropped = draw[:, 0] < fraction
    chosen = env_ids[is_dropped]
    if len(chosen) == 0:
        return
    draw = draw[is_dropped]
    start_x, start_y, _ = sim.start
    place = draw[:, 1:3] + draw.new_tensor((start_x, start_y))
    if sim.ground is not None:
        place = place + sim.ground.origins[chosen, :2]
    # The feet are where the pose of the other events has put them.
    sim.forward(chosen)
    feet = sim.foot_pos_w[chosen] - sim.root_pos_w[chosen].unsqueeze(1)
    sole = feet[..., 2].amin(1) - sim.robot.foot_radius
    footing = _highest_footing(env, place.unsqueeze(1) + feet[..., :2])
    base_height = footing - sole + draw[:, 3]
    sim.write_root_state(
        chosen,
        torch.cat((place, base_height.unsqueeze(1)), dim=1),
        sim.root_quat_w[chosen],
        sim.root_lin_vel_w[chosen],
        sim.root_ang_vel_b[chosen],
    )
    env.commands.terms[command].stand(chosen)


def _standing_feet(env: Env, base_pos: Tensor, heading: Tensor) -> Tensor:
    """Return the places of the feet of robots in the default pose, in the world (x, y), m.

    Args:
        base_pos: Positions of the bases, m. Shape: (n, 3).
        heading: Headings of the robots, rad. Shape: (n,).

    Returns:
        Places, shape (n, num_feet, 2).
    """
    # Made once: compiling the robot takes some milliseconds.
    feet = env.robot.table(("foot_places",), lambda: _foot_table(env))
    ahead, left = feet.unbind(1)
    return torch.stack(turn_points(heading.unsqueeze(1), base_pos, ahead, left), dim=2)


def _foot_table(env: Env) -> Tensor:
    # Not above: this imports MuJoCo, which a task that is only described does not need.
    from legged_envs.sim.gains import foot_places

    return torch.tensor(foot_places(env.sim.robot), dtype=torch.float32, device=env.device)


def _highest_footing(env: Env, feet: Tensor) -> Tensor:
    """Return the height of the highest ground near any foot of a robot, m. Shape: (n,).

    Args:
        feet: Places of the feet in the world (x, y), m. Shape: (n, num_feet, 2).
    """
    ground = env.sim.ground
    if ground is None:
        return feet.new_zeros(len(feet))
    points = feet.unsqueeze(2) + feet.new_tensor(FOOTING)
    heights = ground.height(points[..., 0], points[..., 1])
    return heights.flatten(1).amax(1)


def push(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    velocity: float,
) -> None:
    """Push robots: add U(±velocity) to the base's velocity along world x and along world y.

    Args:
        velocity: Bound of the change along each axis, m/s.
    """
    horizontal = random.uniform(-velocity, velocity, 2, env_ids)
    # A third, vertical component of 0.
    env.robot.push(env_ids, pad(horizontal, (0, 1)))


def reset_to_reference(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    joint_pos: float = 0.0,
    velocity: float = 0.0,
    motion: str = "motion",
) -> None:
    """Place robots that imitate a motion clip in the clip's pose at its present time.

    Robots without a clip in this episode are not changed. Source: reference state initialization,
    Peng et al. 2018.

    Args:
        joint_pos: Bound of the drawn offset of each joint from the clip, rad: U(±joint_pos).
        velocity: Bound of the drawn offset of each component of the base's linear (m/s) and angular
            (rad/s) velocity from the clip: U(±velocity).
        motion: Name of the motion command, which chooses clip and time.
    """
    # Drawn for every robot, so that the stream does not depend on who has a reference.
    draw = random.uniform(-1.0, 1.0, 6 + env.sim.robot.num_joints, env_ids)
    followers, pose = env.commands.terms[motion].start_pose(env_ids)
    draw = draw[torch.isin(env_ids, followers)]
    lin_vel = torch.add(pose.root_lin_vel_w, draw[:, :3], alpha=velocity)
    ang_vel = torch.add(pose.root_ang_vel_b, draw[:, 3:6], alpha=velocity)
    env.sim.write_root_state(followers, pose.root_pos_w, pose.root_quat_w, lin_vel, ang_vel)
    joints = torch.add(pose.joint_pos, draw[:, 6:], alpha=joint_pos)
    low, high = env.robot.soft_joint_pos_limits(1.0)
    joints = joints.clamp_(low, high)
    env.sim.write_joint_state(followers, joints, pose.joint_vel)
