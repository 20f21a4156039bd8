"""Events with the names and parameters of Isaac Lab's ``mdp``.

All draw from the random stream "event". ``env_ids`` (n,) are the environments with the robots that
an event changes. U(range) is a uniform draw. The ranges of several axes are a dict: axes that it
lacks are 0.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import pad

from legged_envs import rotation
from legged_envs.checks import check_choice
from legged_envs.compat.isaac_lab.scene_entity import ROBOT, SceneEntityCfg

if TYPE_CHECKING:
    from legged_envs.compat.isaac_lab.manager_based import ManagerBasedEnv
    from legged_envs.sim import Simulation

Range = tuple[float, float]
"""Lower and upper bound of a draw."""
AxisRanges = Mapping[str, Range]
"""Range of each axis, by a name of :data:`AXES`."""
AXES = ("x", "y", "z", "roll", "pitch", "yaw")
"""Names of the parts of a pose or velocity."""


def randomize_rigid_body_material(
    env: "ManagerBasedEnv",
    env_ids: Tensor,
    static_friction_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
    **others: object,
) -> None:
    """Draw the sliding friction of a robot.

    Args:
        env: The environment.
        env_ids: Environments, shape (n,).
        static_friction_range: Range of the coefficient of friction.
        asset_cfg: The robot. All of its bodies have the same friction.
        others: Ignored: parameters of contact models that MuJoCo does not have.
    """
    friction = _draw(env, static_friction_range, 1, env_ids)[:, 0]
    _sim_of(env, asset_cfg).set_parameter("friction", friction, env_ids)


def randomize_rigid_body_mass(
    env: "ManagerBasedEnv",
    env_ids: Tensor,
    asset_cfg: SceneEntityCfg,
    mass_distribution_params: Range,
    operation: str,
    distribution: str = "uniform",
    **others: object,
) -> None:
    """Change the masses of bodies, drawn for each body.

    The masses of the model are changed, so that several draws do not add up.

    Args:
        env: The environment.
        env_ids: Environments, shape (n,).
        asset_cfg: The bodies.
        mass_distribution_params: Range of the draw: kg, or a factor for ``"scale"``.
        operation: ``"add"``, ``"scale"`` or ``"abs"``, which replaces the masses.
        distribution: ``"uniform"``.
        others: Ignored.

    Raises:
        ValueError: If ``operation`` or ``distribution`` is another one.
    """
    check_choice("distribution", distribution, ("uniform",))
    check_choice("operation", operation, ("add", "scale", "abs"))
    sim = _sim_of(env, asset_cfg)
    own = sim.default_parameter("body_mass")[env_ids][:, asset_cfg.body_ids]
    masses = sim.get_parameter("body_mass")[env_ids]
    drawn = _draw(env, mass_distribution_params, own.shape[1], env_ids)
    if operation == "add":
        masses[:, asset_cfg.body_ids] = own + drawn
    elif operation == "scale":
        masses[:, asset_cfg.body_ids] = own * drawn
    else:
        masses[:, asset_cfg.body_ids] = drawn
    sim.set_parameter("body_mass", masses, env_ids)


def randomize_rigid_body_com(
    env: "ManagerBasedEnv",
    env_ids: Tensor,
    com_range: Range | AxisRanges,
    asset_cfg: SceneEntityCfg,
) -> None:
    """Move the centres of mass of bodies away from the model's centres, all by the same vector.

    Args:
        env: The environment.
        env_ids: Environments, shape (n,).
        com_range: Range along each axis, m, or one range for a draw that moves along all three.
        asset_cfg: The bodies.
    """
    sim = _sim_of(env, asset_cfg)
    own = sim.default_parameter("com")[env_ids][:, asset_cfg.body_ids]
    centres = sim.get_parameter("com")[env_ids]
    drawn = _draw(env, com_range, 3, env_ids)
    centres[:, asset_cfg.body_ids] = own + drawn.unsqueeze(1)
    sim.set_parameter("com", centres, env_ids)


def apply_external_force_torque(
    env: "ManagerBasedEnv",
    env_ids: Tensor,
    force_range: Range,
    torque_range: Range,
    asset_cfg: SceneEntityCfg,
) -> None:
    """Do nothing: this event is accepted only with forces and torques of 0.

    Use ``push_by_setting_velocity`` to push robots.

    Args:
        env: The environment.
        env_ids: Environments, shape (n,).
        force_range: (0.0, 0.0).
        torque_range: (0.0, 0.0).
        asset_cfg: The bodies.

    Raises:
        ValueError: If a force or torque is not 0.
    """
    bounds = (*force_range, *torque_range)
    check_choice("force_range + torque_range", bounds, ((0.0, 0.0, 0.0, 0.0),))


def push_by_setting_velocity(
    env: "ManagerBasedEnv",
    env_ids: Tensor,
    velocity_range: AxisRanges,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Add a drawn velocity to the base.

    Args:
        env: The environment.
        env_ids: Environments, shape (n,).
        velocity_range: Ranges in the world frame, m/s and rad/s.
        asset_cfg: The robot or object.
    """
    asset = env.scene[asset_cfg.name]
    velocity = asset.data.root_vel_w[env_ids] + _draw(env, velocity_range, 6, env_ids)
    asset.write_root_velocity_to_sim(velocity, env_ids)


def reset_root_state_uniform(
    env: "ManagerBasedEnv",
    env_ids: Tensor,
    pose_range: AxisRanges,
    velocity_range: AxisRanges,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw the pose of the base, around its first one, and its velocity.

    Args:
        env: The environment.
        env_ids: Environments, shape (n,).
        pose_range: Ranges around the first pose, m and rad. The place is relative to the origin of
            the environment.
        velocity_range: Ranges in the world frame, m/s and rad/s.
        asset_cfg: The robot or object.
    """
    asset = env.scene[asset_cfg.name]
    # The order of the draws decides the random numbers.
    pose = _draw(env, pose_range, 6, env_ids)
    velocity = _draw(env, velocity_range, 6, env_ids)
    start = asset.data.default_root_state[env_ids]
    place = pose[:, :3] + env.scene.env_origins[env_ids]
    roll, pitch, yaw = pose[:, 3:].unbind(1)
    roll_quat = rotation.from_rotation_vector(pad(roll.unsqueeze(1), (0, 2)))
    tilt = rotation.multiply(rotation.from_pitch(pitch), roll_quat)
    turn = rotation.multiply(rotation.from_yaw(yaw), tilt)
    quat = rotation.multiply(start[:, 3:7], turn)
    state = torch.cat((start[:, :3] + place, quat, velocity), dim=1)
    asset.write_root_state_to_sim(state, env_ids)


def reset_joints_by_scale(
    env: "ManagerBasedEnv",
    env_ids: Tensor,
    position_range: Range,
    velocity_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Set joints to the default pose times U(``position_range``), within their limits, at rest.

    Args:
        env: The environment.
        env_ids: Environments, shape (n,).
        position_range: Range of the factor of each joint.
        velocity_range: Range of the factor of the default velocities, which are 0.
        asset_cfg: The robot.
    """
    asset = env.scene[asset_cfg.name]
    factors = _draw(env, position_range, asset.num_joints, env_ids)
    velocity_factors = _draw(env, velocity_range, asset.num_joints, env_ids)
    positions = asset.data.default_joint_pos[env_ids] * factors
    _write_joints(env, env_ids, positions, 0.0 * velocity_factors, asset_cfg)


def reset_joints_by_offset(
    env: "ManagerBasedEnv",
    env_ids: Tensor,
    position_range: Range,
    velocity_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Set joints to the default pose plus U(``position_range``), within their limits.

    Args:
        env: The environment.
        env_ids: Environments, shape (n,).
        position_range: Range of the offset of each joint, rad.
        velocity_range: Range of the velocity of each joint, rad/s.
        asset_cfg: The robot.
    """
    asset = env.scene[asset_cfg.name]
    offsets = _draw(env, position_range, asset.num_joints, env_ids)
    velocities = _draw(env, velocity_range, asset.num_joints, env_ids)
    positions = asset.data.default_joint_pos[env_ids] + offsets
    _write_joints(env, env_ids, positions, velocities, asset_cfg)


def _write_joints(
    env: "ManagerBasedEnv",
    env_ids: Tensor,
    positions: Tensor,
    velocities: Tensor,
    asset_cfg: SceneEntityCfg,
) -> None:
    """Set positions, within the limits, and velocities of the joints of ``asset_cfg``.

    ``positions`` and ``velocities`` are of all joints, (n, num_joints).
    """
    asset = env.scene[asset_cfg.name]
    low, high = asset.data.joint_pos_limits[env_ids].unbind(-1)
    joints = asset_cfg.joint_ids
    asset.write_joint_state_to_sim(
        positions.clamp(low, high)[:, joints], velocities[:, joints], joints, env_ids
    )


def _sim_of(env: "ManagerBasedEnv", asset_cfg: SceneEntityCfg) -> "Simulation":
    """Return the simulation of the robot that ``asset_cfg`` names, to change model parameters.

    Raises:
        ValueError: If ``asset_cfg`` names no robot.
    """
    robots = env.core.sim.robots
    check_choice("the asset of an event that changes bodies", asset_cfg.name, tuple(robots))
    return robots[asset_cfg.name]


def _draw(env: "ManagerBasedEnv", ranges: Range | AxisRanges, size: int, env_ids: Tensor) -> Tensor:
    """Draw uniform numbers of one range, or of the first ``size`` axes. Shape: (n, size)."""
    if isinstance(ranges, Mapping):
        pairs = [ranges.get(axis, (0.0, 0.0)) for axis in AXES[:size]]
    else:
        pairs = [ranges]
    low, high = torch.tensor(pairs, dtype=torch.float32, device=env.device).unbind(1)
    drawn: Tensor = env.random.stream("event").uniform(low, high, size, env_ids)
    return drawn
