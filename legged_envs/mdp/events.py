"""Event terms: ``term(env, env_ids, random, **params)`` changes the robots of ``env_ids``."""

from math import pi

import torch
from torch import Tensor
from torch.nn.functional import pad

from legged_envs import rotation
from legged_envs.mdp.context import Env
from legged_envs.rng import Stream

Range = tuple[float, float]


def randomize_friction(env: Env, env_ids: Tensor, random: Stream, range: Range) -> None:
    """Draw the sliding friction of the robot on the ground."""
    env.sim.set_parameter("friction", random.uniform(*range, 1, env_ids).squeeze(1), env_ids)


def randomize_base_mass(env: Env, env_ids: Tensor, random: Stream, range: Range) -> None:
    """Add a drawn mass to the base, kg."""
    masses = env.sim.default_parameter("body_mass")[env_ids]
    masses[:, :1] += random.uniform(*range, 1, env_ids)
    env.sim.set_parameter("body_mass", masses, env_ids)


def randomize_base_com(env: Env, env_ids: Tensor, random: Stream, range: Range) -> None:
    """Move the base's centre of mass by a drawn amount along each axis, m."""
    centres = env.sim.default_parameter("com")[env_ids]
    centres[:, 0] += random.uniform(*range, 3, env_ids)
    env.sim.set_parameter("com", centres, env_ids)


def randomize_gains(env: Env, env_ids: Tensor, random: Stream, range: Range) -> None:
    """Multiply the gains by drawn factors, one for kp and one for kd, the same for all joints."""
    for name, factor in zip(
        ("kp", "kd"), random.uniform(*range, 2, env_ids).split(1, dim=1), strict=True
    ):
        env.sim.set_parameter(name, env.sim.default_parameter(name)[env_ids] * factor, env_ids)


def reset_root(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    yaw: Range = (-pi, pi),
    height: Range = (0.0, 0.0),
    velocity: float = 0.0,
    position: float = 0.0,
) -> None:
    """Place the base upright over its start, the origin of its tile or of the world unless the scene has another, with
    the start's heading plus one of the range ``yaw`` rad, ``height`` m above the standing height, U(±position) m off in
    x and y, and U(±velocity) for each component of its linear (m/s) and angular (rad/s) velocity."""
    bounds = torch.tensor(
        (yaw, height, *((-velocity, velocity),) * 6), dtype=torch.float32, device=env.device
    )
    low, high = bounds.unbind(1)
    draw = random.uniform(low, high, 8, env_ids)
    x, y, heading = env.sim.start
    pos = pad(draw[:, 1:2] + env.sim.robot.base_height, (2, 0)) + draw.new_tensor((x, y, 0.0))
    if position > 0.0:
        pos[:, :2] += random.uniform(-position, position, 2, env_ids)
    if env.sim.ground is not None:
        pos += env.sim.ground.origins[env_ids]
    env.sim.write_root_state(
        env_ids, pos, rotation.from_yaw(draw[:, 0] + heading), draw[:, 2:5], draw[:, 5:]
    )


def reset_joints(
    env: Env, env_ids: Tensor, random: Stream, range: float, velocity: float = 0.0
) -> None:
    """Place the joints at q0 + U(±range) rad, within their limits, with velocities U(±velocity) rad/s."""
    offset, speed = random.uniform(-1.0, 1.0, 2 * env.sim.robot.num_joints, env_ids).chunk(2, dim=1)
    joint_pos = torch.add(env.robot.default_joint_pos, offset, alpha=range)
    env.sim.write_joint_state(
        env_ids, joint_pos.clamp_(*env.robot.soft_joint_pos_limits(1.0)), speed * velocity
    )


def crouch(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    fraction: float,
    joint_pos: dict[str, float],
    depth: float,
) -> None:
    """Let a ``fraction`` of the robots, which stand as other events placed them, begin in another pose: joints moved
    from q0 to ``joint_pos``, name → rad, and the base ``depth`` m lower (LeggedGym-Ex ``sit_init_percent``)."""
    sim, low = env.sim, env_ids[random.uniform(0.0, 1.0, 1, env_ids).squeeze(1) < fraction]
    down = sim.root_pos_w.new_tensor((0.0, 0.0, depth))
    velocity = sim.root_lin_vel_w[low], sim.root_ang_vel_b[low]
    sim.write_root_state(low, sim.root_pos_w[low] - down, sim.root_quat_w[low], *velocity)
    moved = torch.zeros_like(env.robot.default_joint_pos)
    for name, angle in joint_pos.items():
        joint = sim.robot.joint_names.index(name)
        moved[joint] = angle - sim.robot.default_joint_pos[joint]
    joints = (sim.joint_pos[low] + moved).clamp_(*env.robot.soft_joint_pos_limits(1.0))
    sim.write_joint_state(low, joints, sim.joint_vel[low])


def push(env: Env, env_ids: Tensor, random: Stream, velocity: float) -> None:
    """Add U(±velocity) m/s to each horizontal component of the base's velocity."""
    env.robot.push(env_ids, pad(random.uniform(-velocity, velocity, 2, env_ids), (0, 1)))


def reset_to_reference(
    env: Env,
    env_ids: Tensor,
    random: Stream,
    joint_pos: float = 0.0,
    velocity: float = 0.0,
    motion: str = "motion",
) -> None:
    """Place the robots that have a reference where it is (reference state initialisation, Peng et al. 2018), joint
    positions + U(±joint_pos) rad and the base's velocities + U(±velocity) m/s or rad/s. The other robots stay."""
    draw = random.uniform(-1.0, 1.0, 6 + env.sim.robot.num_joints, env_ids)
    followers, pose = env.commands.terms[motion].start_pose(env_ids)
    draw = draw[torch.isin(env_ids, followers)]
    lin_vel = torch.add(pose.root_lin_vel_w, draw[:, :3], alpha=velocity)
    ang_vel = torch.add(pose.root_ang_vel_b, draw[:, 3:6], alpha=velocity)
    env.sim.write_root_state(followers, pose.root_pos_w, pose.root_quat_w, lin_vel, ang_vel)
    joints = torch.add(pose.joint_pos, draw[:, 6:], alpha=joint_pos)
    env.sim.write_joint_state(
        followers, joints.clamp_(*env.robot.soft_joint_pos_limits(1.0)), pose.joint_vel
    )
