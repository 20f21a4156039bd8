"""Terms under the names and with the parameters that Isaac Lab's ``mdp`` documents.

Events draw from the random stream "event" of each environment. :data:`TERMS` are:

- ``base_lin_vel``: Velocity of the base in its own frame, m/s. Shape: (num_envs, 3).
- ``base_ang_vel``: Angular velocity of the base in its own frame, rad/s. Shape: (num_envs, 3).
- ``projected_gravity``: Direction of gravity in the base frame; (0, 0, −1) when upright. Shape: (num_envs, 3).
- ``base_pos_z``: Height of the base in the world frame, m. Shape: (num_envs, 1).
- ``lin_vel_z_l2``: v_z², v the base's velocity in its own frame, m²/s². Shape: (num_envs,).
- ``ang_vel_xy_l2``: ω_x² + ω_y², ω the base's angular velocity in its own frame, rad²/s². Shape: (num_envs,).
- ``flat_orientation_l2``: g_x² + g_y², g the unit vector of gravity in the base frame. Shape: (num_envs,).
- ``base_height_l2``: (z − target_height)², z the height of the base above the ground, m². Shape: (num_envs,).
- ``bad_orientation``: Whether the base is tilted by more than ``limit_angle`` rad. Shape: (num_envs,), bool.
- ``joint_pos_rel``: q − q0 of the joints of ``asset_cfg``, q0 the default pose, rad; 0 for wheels.
  Shape: (num_envs, joints).
- ``joint_vel_rel``: Velocities of the joints of ``asset_cfg``, rad/s. Shape: (num_envs, joints).
- ``joint_torques_l2``: Σ τ² over the joints of ``asset_cfg``, τ what the actuators applied, N²·m². Shape: (num_envs,).
- ``joint_deviation_l1``: Σ |q − q0| over the joints of ``asset_cfg``, q0 the default pose, rad; 0 for wheels.
  Shape: (num_envs,).
- ``joint_pos_limits``: Σ over the joints of ``asset_cfg`` of how far they are outside of their hard limits, rad.
  Shape: (num_envs,).
- ``generated_commands``: The present command ``command_name``; KeyError if there is none. Shape: (num_envs, size).
- ``track_lin_vel_xy_exp``: exp(−‖c_xy − v_xy‖² / std²), c the command and v the velocity in the base frame, both and
  ``std`` in m/s. Shape: (num_envs,).
- ``track_ang_vel_z_exp``: exp(−(c_ω − ω_z)² / std²), c the command and ω the angular velocity in the base frame, both
  and ``std`` in rad/s. Shape: (num_envs,).
- ``last_action``: The action of the last step, clipped; 0 after a reset. Shape: (num_envs, num_actions).
- ``action_rate_l2``: Σ (a_t − a_{t−1})² of the actions of this control step and the one before. Shape: (num_envs,).
- ``is_alive``: 1 where no failure ended the episode in this step, else 0. Shape: (num_envs,), float32.
- ``undesired_contacts``: On how many bodies of ``sensor_cfg`` a force in the sensor's history is above ``threshold`` N.
  Shape: (num_envs,), float32.
- ``illegal_contact``: Whether a force in the sensor's history is above ``threshold`` N on one of the bodies of
  ``sensor_cfg``. Shape: (num_envs,), bool.
- ``height_scan``: Height of the base above the end of each ray of ``sensor_cfg`` − offset, m. Shape: (num_envs, rays).
"""

import math
import re
from collections.abc import Callable
from dataclasses import MISSING
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from legged_envs import rotation
from legged_envs.checks import check_choice, did_you_mean, match_names
from legged_envs.compat.isaac_lab.scene_entity import SceneEntityCfg
from legged_envs.configuration import configclass
from legged_envs.mdp.actions import JointAction, JointPositionCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.curricula import terrain_levels
from legged_envs.mdp.rewards import action_rate, tracking_ang_vel, tracking_lin_vel

Term = Callable[..., Tensor]
ROBOT = SceneEntityCfg("robot")
AXES = ("x", "y", "z", "roll", "pitch", "yaw")


def _part(env: Any, values: Tensor, ids: Any) -> Tensor:
    """The columns of the joints or bodies ``ids``, a list or slice."""
    return values[:, ids if isinstance(ids, slice) else env.robot.joint_index(tuple(ids))]


def _of_robot(of: Term) -> Term:
    return lambda env, asset_cfg=ROBOT, **params: of(env.robots[asset_cfg.name], **params)


def _of_joints(of: Term) -> Term:
    return lambda env, asset_cfg=ROBOT: _part(
        env, of(env.robots[asset_cfg.name]), asset_cfg.joint_ids
    )


def _sum_of_joints(of: Term) -> Term:
    return lambda env, asset_cfg=ROBOT: _of_joints(of)(env, asset_cfg).sum(1)


def _touching(env: Any, threshold: float, sensor_cfg: SceneEntityCfg) -> Tensor:
    """On which bodies of ``sensor_cfg`` a force in the history is above ``threshold``, N. Shape: (num_envs, bodies)."""
    force = torch.linalg.vector_norm(
        env.scene.sensors[sensor_cfg.name].data.net_forces_w_history, dim=-1
    )
    return _part(env, force.amax(1), sensor_cfg.body_ids) > threshold


def _named(env: Any, command: str) -> str:
    return str(env.renamed.get(command, command))


TERMS: dict[str, Term] = {
    "base_lin_vel": _of_robot(lambda robot: robot.lin_vel_b),
    "base_ang_vel": _of_robot(lambda robot: robot.ang_vel_b),
    "projected_gravity": _of_robot(lambda robot: robot.projected_gravity),
    "base_pos_z": _of_robot(lambda robot: robot.root_pos_w[:, 2:]),
    "lin_vel_z_l2": _of_robot(lambda robot: robot.lin_vel_b[:, 2].square()),
    "ang_vel_xy_l2": _of_robot(lambda robot: robot.ang_vel_b[:, :2].square().sum(1)),
    "flat_orientation_l2": _of_robot(lambda robot: robot.projected_gravity[:, :2].square().sum(1)),
    "base_height_l2": _of_robot(
        lambda robot, target_height: (robot.base_height - target_height).square()
    ),
    "bad_orientation": _of_robot(
        lambda robot, limit_angle: robot.projected_gravity[:, 2] > -math.cos(limit_angle)
    ),
    "joint_pos_rel": _of_joints(lambda robot: robot.joint_offset),
    "joint_vel_rel": _of_joints(lambda robot: robot.joint_vel),
    "joint_torques_l2": _sum_of_joints(lambda robot: robot.joint_torque.square()),
    "joint_deviation_l1": _sum_of_joints(lambda robot: robot.joint_offset.abs()),
    "joint_pos_limits": _sum_of_joints(
        lambda robot: (
            robot.joint_pos - robot.joint_pos.clamp(*robot.soft_joint_pos_limits(1.0))
        ).abs()
    ),
    "generated_commands": lambda env, command_name: env.commands[_named(env, command_name)],
    "track_lin_vel_xy_exp": lambda env, std, command_name: tracking_lin_vel(
        env, std**2, _named(env, command_name)
    ),
    "track_ang_vel_z_exp": lambda env, std, command_name: tracking_ang_vel(
        env, std**2, _named(env, command_name)
    ),
    "last_action": lambda env: env.actions.current,
    "action_rate_l2": lambda env: action_rate(env),
    "is_alive": lambda env: (~env.terminations.terminated).float(),
    "undesired_contacts": lambda env, threshold, sensor_cfg: (
        _touching(env, threshold, sensor_cfg).sum(1).float()
    ),
    "illegal_contact": lambda env, threshold, sensor_cfg: _touching(env, threshold, sensor_cfg).any(
        1
    ),
    "height_scan": lambda env, sensor_cfg, offset=0.5: (
        env.scene.sensors[sensor_cfg.name].data.heights - offset
    ),
}
_TOLD = dict(re.findall(r"^- ``(\w+)``: (.+(?:\n  .+)*)", __doc__ or "", re.M))
for _name, _term in TERMS.items():
    _term.__name__, _term.__qualname__, _term.__doc__ = _name, _name, _TOLD.get(_name)
    globals()[_name] = _term


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"isaac_lab has no {name!r}; {did_you_mean(name, TERMS)}it has: {', '.join(TERMS)}"
    )


def joint_acc_l2(env: Any, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Σ q̈² of the engine's accelerations in the last physics step."""
    return _part(env, env.robots[asset_cfg.name].sim.joint_acc, asset_cfg.joint_ids).square().sum(1)


def time_out(env: Any) -> Any:
    """The time limit: as a termination term it makes ``TaskCfg.episode_length_s``, and is not evaluated."""
    return env.episode_length_buf >= env.max_episode_length


terrain_levels_vel = partial(terrain_levels, by="distance", down=0.5)
"""Levels by the way that was walked, legged_gym's rule."""


def modify_reward_weight(
    env: Any, env_ids: Tensor, term_name: str, weight: float, num_steps: int
) -> None:
    """Set the weight of a reward after ``num_steps`` control steps of the environment."""
    if env.common_step_counter > num_steps:
        env.reward_manager.set_weight(term_name, weight)


def _draw(env: Any, ranges: Any, size: int, env_ids: Tensor) -> Tensor:
    """Numbers of one range, or of a dict of those of some of ``AXES``, the others 0. Shape: (n, size)."""
    pairs = (
        [ranges.get(axis, (0.0, 0.0)) for axis in AXES[:size]]
        if isinstance(ranges, dict)
        else [ranges]
    )
    low, high = torch.tensor(pairs, dtype=torch.float32, device=env.device).unbind(1)
    drawn: Tensor = env.random.stream("event").uniform(low, high, size, env_ids)
    return drawn


def _vary(
    env: Any, env_ids: Tensor, name: str, ids: Any, ranges: Any, operation: str = "add"
) -> None:
    """Add random numbers to the bodies ``ids`` of a parameter as the model has it, or multiply with or set these."""
    check_choice("operation", operation, ("add", "scale", "abs"))
    values = env.sim.default_parameter(name)[env_ids]
    own = values[:, ids]
    drawn = _draw(env, ranges, own.shape[-1], env_ids).view(len(own), -1, *own.shape[2:])
    values[:, ids] = {"add": own + drawn, "scale": own * drawn, "abs": drawn}[operation]
    env.sim.set_parameter(name, values, env_ids)


def randomize_rigid_body_material(
    env: Any, env_ids: Tensor, static_friction_range: Any, **others: Any
) -> None:
    """The sliding friction of the robot; ``others`` belong to a model of contacts that MuJoCo has not."""
    env.sim.set_parameter("friction", _draw(env, static_friction_range, 1, env_ids)[:, 0], env_ids)


def randomize_rigid_body_mass(env: Any, env_ids: Tensor, asset_cfg: Any, **params: Any) -> None:
    """Change the masses that the bodies of ``asset_cfg`` have in the model, kg, by U(``mass_distribution_params``),
    drawn for each body; ``operation`` is ``"add"``, ``"scale"`` or ``"abs"``, ``distribution`` ``"uniform"``, else
    ValueError."""
    check_choice("distribution", params.get("distribution", "uniform"), ("uniform",))
    _vary(
        env,
        env_ids,
        "body_mass",
        asset_cfg.body_ids,
        params["mass_distribution_params"],
        params["operation"],
    )


def randomize_rigid_body_com(env: Any, env_ids: Tensor, com_range: Any, asset_cfg: Any) -> None:
    """Move the centres of mass of the bodies of ``asset_cfg`` from where the model has them, m, all by the same drawn
    vector. ``com_range`` is (low, high), or these by ``"x"``, ``"y"`` and ``"z"``, 0 along an axis that is left out."""
    _vary(env, env_ids, "com", asset_cfg.body_ids, com_range)


def apply_external_force_torque(
    env: Any, env_ids: Tensor, force_range: Any, torque_range: Any, asset_cfg: Any
) -> None:
    """Nothing: use ``push_by_setting_velocity``; ValueError unless all is 0."""
    check_choice("force_range + torque_range", (*force_range, *torque_range), ((0.0,) * 4,))


def push_by_setting_velocity(
    env: Any, env_ids: Tensor, velocity_range: Any, asset_cfg: Any = ROBOT
) -> None:
    """Add to the velocity of the base in the world."""
    asset = env.scene[asset_cfg.name]
    velocity = asset.data.root_vel_w[env_ids] + _draw(env, velocity_range, 6, env_ids)
    asset.write_root_velocity_to_sim(velocity, env_ids)


def reset_root_state_uniform(
    env: Any, env_ids: Tensor, pose_range: Any, velocity_range: Any, asset_cfg: Any = ROBOT
) -> None:
    """Draw the pose, around the first one, and the velocity in the world."""
    asset = env.scene[asset_cfg.name]
    pose, velocity = _draw(env, pose_range, 6, env_ids), _draw(env, velocity_range, 6, env_ids)
    roll, pitch, yaw = pose[:, 3:].unbind(1)
    turn = rotation.multiply(
        rotation.from_pitch(pitch), rotation.from_rotation_vector(pad(roll.unsqueeze(1), (0, 2)))
    )
    start = asset.data.default_root_state[env_ids]
    pose[:, :3] += env.scene.env_origins[env_ids]
    quat = rotation.multiply(start[:, 3:7], rotation.multiply(rotation.from_yaw(yaw), turn))
    asset.write_root_state_to_sim(
        torch.cat((start[:, :3] + pose[:, :3], quat, velocity), dim=1), env_ids
    )


def _reset_joints(
    scale: bool,
    env: Any,
    env_ids: Tensor,
    position_range: Any,
    velocity_range: Any,
    asset_cfg: Any = ROBOT,
) -> None:
    """Joint positions times or plus random numbers, within their limits; velocities, which are 0, likewise."""
    asset = env.scene[asset_cfg.name]
    pos, vel = (
        _draw(env, ranges, asset.num_joints, env_ids) for ranges in (position_range, velocity_range)
    )
    rest, (low, high) = (
        asset.data.default_joint_pos[env_ids],
        asset.data.joint_pos_limits[env_ids].unbind(-1),
    )
    pos, vel = (rest * pos, 0.0 * vel) if scale else (rest + pos, vel)
    asset.write_joint_state_to_sim(pos.clamp(low, high), vel, env_ids=env_ids)


reset_joints_by_scale, reset_joints_by_offset = (
    partial(_reset_joints, True),
    partial(_reset_joints, False),
)
"""Joint positions of the default pose times, or plus, U(``position_range``) rad, within their limits; velocities are 0,
or plus U(``velocity_range``) rad/s."""


@configclass
class UniformVelocityCommandCfg:
    """A :class:`~legged_envs.mdp.commands.VelocityCommandCfg`."""

    @configclass
    class Ranges:
        """Bounds of vx and vy, m/s, of ωz, rad/s, and of the heading, rad."""

        lin_vel_x: Any = MISSING
        lin_vel_y: Any = MISSING
        ang_vel_z: Any = MISSING
        heading: Any = (-math.pi, math.pi)

    asset_name: str = "robot"
    resampling_time_range: Any = MISSING
    """s."""
    rel_standing_envs: float = 0.0
    rel_heading_envs: float = 1.0
    """Fraction of the commands that are to stand still, and of those that steer towards a heading."""
    heading_command: bool = False
    heading_control_stiffness: float = 1.0
    """ωz is this times the way to the heading, 1/s."""
    ranges: Any = MISSING
    debug_vis: bool = False

    def translated(self) -> VelocityCommandCfg:
        """The configuration of our velocity command that says the same."""
        *ranges, heading = vars(self.ranges).values()
        ours: Any = (
            *ranges,
            self.resampling_time_range,
            self.rel_standing_envs,
            0.0,
            self.heading_command,
        )
        steering: Any = self.heading_control_stiffness, heading, self.rel_heading_envs
        return VelocityCommandCfg(*ours, *steering)


@configclass
class JointPositionActionCfg:
    """A :class:`~legged_envs.mdp.actions.JointPositionCfg`; ``scale`` may be a dict by regular expressions."""

    asset_name: str = "robot"
    joint_names: Any = MISSING
    scale: Any = 1.0
    use_default_offset: bool = True
    debug_vis: bool = False

    def build(self, env: Any) -> JointAction:
        """Make the action term of an environment; ValueError if ``use_default_offset`` is not True, an expression
        matches no joint, or two match the same one."""
        check_choice("JointPositionActionCfg.use_default_offset", self.use_default_offset, (True,))
        joints = match_names("joint", self.joint_names, env.sim.robot.joint_names)[1]
        table = self.scale if isinstance(self.scale, dict) else {".*": self.scale}
        scales = {
            name: value
            for key, value in table.items()
            for name in match_names("joint", key, joints)[1]
        }
        return JointPositionCfg(
            tuple(scales.get(name, 1.0) for name in joints), tuple(joints)
        ).build(env)
