"""Terms with the names and parameters of Isaac Lab's ``mdp``.

Observations, rewards and terminations are functions of the environment. The base frame is the
robot's own: x ahead, y to the left, z up. ``asset_cfg`` selects a robot and its joints, by default
the first robot with all of them; ``sensor_cfg`` selects a sensor and its bodies. The events of
:mod:`~legged_envs.compat.isaac_lab.mdp_events` and the configurations of
:mod:`~legged_envs.compat.isaac_lab.mdp_cfg` can be imported from here as well.
"""

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor

from legged_envs.checks import did_you_mean
from legged_envs.compat.isaac_lab.mdp_cfg import JointPositionActionCfg, UniformVelocityCommandCfg
from legged_envs.compat.isaac_lab.mdp_events import (
    apply_external_force_torque,
    push_by_setting_velocity,
    randomize_rigid_body_com,
    randomize_rigid_body_mass,
    randomize_rigid_body_material,
    reset_joints_by_offset,
    reset_joints_by_scale,
    reset_root_state_uniform,
)
from legged_envs.compat.isaac_lab.scene_entity import (
    ROBOT,
    SceneEntityCfg,
    select_columns,
    select_joints,
)
from legged_envs.mdp.context import Env
from legged_envs.mdp.curricula import terrain_levels
from legged_envs.mdp.rewards import action_rate, tracking_ang_vel, tracking_lin_vel

if TYPE_CHECKING:
    from legged_envs.compat.isaac_lab.manager_based import ManagerBasedEnv

__all__ = [
    "JointPositionActionCfg",
    "UniformVelocityCommandCfg",
    "action_rate_l2",
    "ang_vel_xy_l2",
    "apply_external_force_torque",
    "bad_orientation",
    "base_ang_vel",
    "base_height_l2",
    "base_lin_vel",
    "base_pos_z",
    "flat_orientation_l2",
    "generated_commands",
    "height_scan",
    "illegal_contact",
    "is_alive",
    "joint_acc_l2",
    "joint_deviation_l1",
    "joint_pos_limits",
    "joint_pos_rel",
    "joint_torques_l2",
    "joint_vel_rel",
    "last_action",
    "lin_vel_z_l2",
    "modify_reward_weight",
    "projected_gravity",
    "push_by_setting_velocity",
    "randomize_rigid_body_com",
    "randomize_rigid_body_mass",
    "randomize_rigid_body_material",
    "reset_joints_by_offset",
    "reset_joints_by_scale",
    "reset_root_state_uniform",
    "terrain_levels_vel",
    "time_out",
    "track_ang_vel_z_exp",
    "track_lin_vel_xy_exp",
    "undesired_contacts",
]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"isaac_lab.mdp has no {name!r}; {did_you_mean(name, __all__)}it has: {', '.join(__all__)}"
    )


# Observations


def base_lin_vel(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return the velocity of the base in its own frame, m/s. Shape: (num_envs, 3)."""
    return env.robots[asset_cfg.name].lin_vel_b


def base_ang_vel(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return the angular velocity of the base in its own frame, rad/s. Shape: (num_envs, 3)."""
    return env.robots[asset_cfg.name].ang_vel_b


def projected_gravity(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return gravity's direction in the base frame, (0, 0, −1) upright. Shape: (num_envs, 3)."""
    return env.robots[asset_cfg.name].projected_gravity


def base_pos_z(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return the height of the base in the world, m. Shape: (num_envs, 1)."""
    return env.robots[asset_cfg.name].root_pos_w[:, 2:]


def joint_pos_rel(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return q − q0, rad, q0 the default pose; 0 for wheels. Shape: (num_envs, joints)."""
    return select_joints(env, env.robots[asset_cfg.name].joint_offset, asset_cfg)


def joint_vel_rel(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return the joint velocities, rad/s. Shape: (num_envs, joints)."""
    return select_joints(env, env.robots[asset_cfg.name].joint_vel, asset_cfg)


def generated_commands(env: Env, command_name: str) -> Tensor:
    """Return the present command called ``command_name``. Shape: (num_envs, size).

    Raises:
        KeyError: If there is no such command.
    """
    return env.commands[_name_in_manager(env, command_name)]


def last_action(env: Env) -> Tensor:
    """Return the last action, clipped; 0 after a reset. Shape: (num_envs, num_actions)."""
    return env.actions.current


def height_scan(env: "ManagerBasedEnv", sensor_cfg: SceneEntityCfg, offset: float = 0.5) -> Tensor:
    """Return the height of the base above the end of each ray.

    Args:
        env: The environment.
        sensor_cfg: A ``RayCaster``.
        offset: Height that is subtracted, m.

    Returns:
        Heights, m. Shape: (num_envs, rays).
    """
    heights: Tensor = env.scene.sensors[sensor_cfg.name].data.heights
    return heights - offset


# Rewards


def lin_vel_z_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return v_z² of the base in its own frame, m²/s². Shape: (num_envs,)."""
    return env.robots[asset_cfg.name].lin_vel_b[:, 2].square()


def ang_vel_xy_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return ω_x² + ω_y² of the base in its own frame, rad²/s². Shape: (num_envs,)."""
    return env.robots[asset_cfg.name].ang_vel_b[:, :2].square().sum(1)


def flat_orientation_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return g_x² + g_y², g the direction of gravity in the base frame. Shape: (num_envs,)."""
    return env.robots[asset_cfg.name].projected_gravity[:, :2].square().sum(1)


def base_height_l2(env: Env, target_height: float, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return (z − target_height)², m², z the height of the base above the ground below it.

    Args:
        env: The environment.
        target_height: Height at which the term is 0, m.
        asset_cfg: The robot.

    Returns:
        Squared differences. Shape: (num_envs,).
    """
    return (env.robots[asset_cfg.name].base_height - target_height).square()


def joint_torques_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return Σ τ² over the joints, (N·m)², τ the torques that acted. Shape: (num_envs,)."""
    squares = env.robots[asset_cfg.name].joint_torque.square()
    return select_joints(env, squares, asset_cfg).sum(1)


def joint_acc_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return Σ q̈² over the joints, rad²/s⁴, of the last physics step. Shape: (num_envs,)."""
    accelerations = env.robots[asset_cfg.name].sim.joint_acc
    return select_joints(env, accelerations, asset_cfg).square().sum(1)


def joint_deviation_l1(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return Σ |q − q0| over the joints, rad, q0 the default pose; wheels count 0.

    Shape: (num_envs,).
    """
    deviations = env.robots[asset_cfg.name].joint_offset.abs()
    return select_joints(env, deviations, asset_cfg).sum(1)


def joint_pos_limits(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return the sum over the joints of the way beyond their hard limits, rad.

    Shape: (num_envs,).
    """
    robot = env.robots[asset_cfg.name]
    low, high = robot.soft_joint_pos_limits(1.0)
    excess = (robot.joint_pos - robot.joint_pos.clamp(low, high)).abs()
    return select_joints(env, excess, asset_cfg).sum(1)


def track_lin_vel_xy_exp(env: Env, std: float, command_name: str) -> Tensor:
    """Return exp(−‖c_xy − v_xy‖² / std²), v the velocity in the base frame.

    Args:
        env: The environment.
        std: Error at which the term is 1/e, m/s.
        command_name: Name of the command c.

    Returns:
        Values in (0, 1]. Shape: (num_envs,).
    """
    return tracking_lin_vel(env, std**2, _name_in_manager(env, command_name))


def track_ang_vel_z_exp(env: Env, std: float, command_name: str) -> Tensor:
    """Return exp(−(c_ω − ω_z)² / std²), ω the angular velocity in the base frame.

    Args:
        env: The environment.
        std: Error at which the term is 1/e, rad/s.
        command_name: Name of the command c.

    Returns:
        Values in (0, 1]. Shape: (num_envs,).
    """
    return tracking_ang_vel(env, std**2, _name_in_manager(env, command_name))


def action_rate_l2(env: Env) -> Tensor:
    """Return Σ (a_t − a_{t−1})² of this control step's action. Shape: (num_envs,)."""
    return action_rate(env)


def is_alive(env: Env) -> Tensor:
    """Return 1 where no failure ended the episode now, otherwise 0. Shape: (num_envs,), float32."""
    return (~env.terminations.terminated).float()


def undesired_contacts(
    env: "ManagerBasedEnv", threshold: float, sensor_cfg: SceneEntityCfg
) -> Tensor:
    """Return the number of bodies with a force above a threshold in the sensor's history.

    Args:
        env: The environment.
        threshold: Force, N.
        sensor_cfg: A ``ContactSensor`` and its bodies.

    Returns:
        Numbers of bodies. Shape: (num_envs,), float32.
    """
    return _has_contact(env, threshold, sensor_cfg).sum(1).float()


# Terminations


def bad_orientation(env: Env, limit_angle: float, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Return True where the base is tilted by more than an angle.

    Args:
        env: The environment.
        limit_angle: Largest angle between the base's z axis and the vertical, rad.
        asset_cfg: The robot.

    Returns:
        Flags. Shape: (num_envs,), bool.
    """
    return env.robots[asset_cfg.name].projected_gravity[:, 2] > -math.cos(limit_angle)


def illegal_contact(env: "ManagerBasedEnv", threshold: float, sensor_cfg: SceneEntityCfg) -> Tensor:
    """Return True where a body has a force above a threshold in the sensor's history.

    Args:
        env: The environment.
        threshold: Force, N.
        sensor_cfg: A ``ContactSensor`` and its bodies.

    Returns:
        Flags. Shape: (num_envs,), bool.
    """
    return _has_contact(env, threshold, sensor_cfg).any(1)


def time_out(env: "ManagerBasedEnv") -> Tensor:
    """Return True where the time limit is reached. Shape: (num_envs,), bool.

    As a termination term it turns ``TaskCfg.episode_length_s`` on, and is not evaluated.
    """
    return env.episode_length_buf >= env.max_episode_length


# Curricula

terrain_levels_vel = partial(terrain_levels, by="distance", down=0.5)
"""Move robots to other levels by the distance that they walked, as legged_gym does."""


def modify_reward_weight(
    env: "ManagerBasedEnv", env_ids: Tensor, term_name: str, weight: float, num_steps: int
) -> None:
    """Change the weight of a reward once the environment has made some control steps.

    Args:
        env: The environment.
        env_ids: Environments with an ended episode, shape (n,). Not read.
        term_name: Name of the reward term.
        weight: The new weight.
        num_steps: Number of control steps after which the weight changes.
    """
    if env.common_step_counter > num_steps:
        env.reward_manager.set_weight(term_name, weight)


def _has_contact(env: "ManagerBasedEnv", threshold: float, sensor_cfg: SceneEntityCfg) -> Tensor:
    """Return True for bodies with a force above ``threshold``, N. Shape: (num_envs, bodies)."""
    history = env.scene.sensors[sensor_cfg.name].data.net_forces_w_history
    largest = torch.linalg.vector_norm(history, dim=-1).amax(1)
    return select_columns(env, largest, sensor_cfg.body_ids) > threshold


def _name_in_manager(env: Any, command_name: str) -> str:
    # The velocity command is called "velocity" in the manager, where evaluations find it.
    name: str = env.renamed.get(command_name, command_name)
    return name
