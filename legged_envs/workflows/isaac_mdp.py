"""Terms under the names and with the parameters that Isaac Lab's ``mdp`` documents. All of :data:`TERMS` are pure: a
step replays their recording. Events take the ``random`` stream that the manager gives each term; called by hand without
one, they share the stream "event"."""

import math
from collections.abc import Callable
from dataclasses import MISSING
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from legged_envs import rotation
from legged_envs.checks import check_choice, did_you_mean
from legged_envs.mdp import rewards
from legged_envs.mdp.actions import JointActionCfg, JointPositionCfg, JointTorqueCfg, JointVelocityCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.context import pure
from legged_envs.robots import RobotCfg
from legged_envs.workflows.configclass import SceneEntityCfg, configclass, match_names

Term = Callable[..., Tensor]
ROBOT = SceneEntityCfg("robot")
AXES = ("x", "y", "z", "roll", "pitch", "yaw")
ROOT = {"base_lin_vel": "lin_vel_b", "base_ang_vel": "ang_vel_b", "root_lin_vel_w": "root_lin_vel_w"}
ROOT |= {name: name for name in ("projected_gravity", "root_pos_w", "root_quat_w")}
JOINTS = {"joint_pos": "joint_pos", "joint_pos_rel": "joint_offset", "joint_effort": "joint_torque"}
JOINTS |= {"joint_vel": "joint_vel", "joint_vel_rel": "joint_vel"}
SQUARES = {"joint_torques_l2": "joint_torque", "joint_vel_l2": "joint_vel"}
MAGNITUDES = {"joint_vel_l1": "joint_vel", "joint_deviation_l1": "joint_offset"}
"""Terms of the root, of each joint, and sums over joints → the quantity of a robot's state."""


def _robot(env: Any, cfg: SceneEntityCfg) -> Any:
    return env.robot if cfg.name == "robot" else env.scene[cfg.name]._robot


def _part(env: Any, values: Tensor, ids: Any) -> Tensor:
    """The columns of the joints or bodies ``ids``, a list or slice."""
    return values[:, ids if isinstance(ids, slice) else env.robot.joint_index(tuple(ids))]


def _outside(robot: Any) -> Tensor:
    return (robot.joint_pos - robot.joint_pos.clamp(*robot.soft_joint_pos_limits(1.0))).abs()


def _force(env: Any, cfg: SceneEntityCfg) -> Tensor:
    """The largest contact force in the sensor's history on each body of ``cfg``, N. Shape: (num_envs, bodies)."""
    history = env.scene.sensors[cfg.name].data.net_forces_w_history
    return _part(env, torch.linalg.vector_norm(history, dim=-1).amax(1), cfg.body_ids)


def _of_root(of: Term) -> Term:
    return lambda env, asset_cfg=ROBOT: of(_robot(env, asset_cfg))


def _of_joints(of: Term, finish: Term = lambda value: value) -> Term:
    return lambda env, asset_cfg=ROBOT: finish(_part(env, of(_robot(env, asset_cfg)), asset_cfg.joint_ids))


def _way(env: Any, command_name: str, asset_cfg: SceneEntityCfg) -> Tensor:
    """From the velocity to the command: vx and vy, m/s, and ωz, rad/s. Shape: (num_envs, 3)."""
    robot, command = _robot(env, asset_cfg), env.command_manager.get_command(command_name)
    return command[:, :3] - torch.cat((robot.lin_vel_b[:, :2], robot.ang_vel_b[:, 2:]), dim=1)


def _quantity(name: str) -> Term:
    return lambda robot: getattr(robot, name)


TERMS: dict[str, Term] = {
    **{name: _of_root(_quantity(own)) for name, own in ROOT.items()},
    **{name: _of_joints(_quantity(own)) for name, own in JOINTS.items()},
    **{name: _of_joints(_quantity(own), lambda value: value.square().sum(1)) for name, own in SQUARES.items()},
    **{name: _of_joints(_quantity(own), lambda value: value.abs().sum(1)) for name, own in MAGNITUDES.items()},
    "joint_pos_limits": _of_joints(_outside, lambda value: value.sum(1)),
    "joint_pos_out_of_limit": _of_joints(_outside, lambda value: (value > 0.0).any(1)),
    "base_pos_z": _of_root(lambda robot: robot.root_pos_w[:, 2:]),
    "root_ang_vel_w": _of_root(lambda robot: rotation.rotate(robot.root_quat_w, robot.ang_vel_b)),
    "lin_vel_z_l2": _of_root(lambda robot: robot.lin_vel_b[:, 2].square()),
    "ang_vel_xy_l2": _of_root(lambda robot: robot.ang_vel_b[:, :2].square().sum(1)),
    "flat_orientation_l2": _of_root(lambda robot: robot.projected_gravity[:, :2].square().sum(1)),
    "base_height_l2": lambda env, target_height, asset_cfg=ROBOT: (
        _robot(env, asset_cfg).base_height - target_height
    ).square(),
    "generated_commands": lambda env, command_name: env.command_manager.get_command(command_name),
    "last_action": lambda env: env.actions.current,
    "is_alive": lambda env: (~env.terminations.terminated).float(),
    "is_terminated": lambda env: env.terminations.terminated.float(),
    "action_l2": lambda env: env.actions.current.square().sum(1),
    "action_rate_l2": lambda env: rewards.action_rate(env),
    "track_lin_vel_xy_exp": lambda env, std, command_name, asset_cfg=ROBOT: (
        _way(env, command_name, asset_cfg)[:, :2].square().sum(1) / -(std**2)
    ).exp(),
    "track_ang_vel_z_exp": lambda env, std, command_name, asset_cfg=ROBOT: (
        _way(env, command_name, asset_cfg)[:, 2].square() / -(std**2)
    ).exp(),
    "undesired_contacts": lambda env, threshold, sensor_cfg: (_force(env, sensor_cfg) > threshold).sum(1).float(),
    "contact_forces": lambda env, threshold, sensor_cfg: (_force(env, sensor_cfg) - threshold).clamp_min(0.0).sum(1),
    "illegal_contact": lambda env, threshold, sensor_cfg: (_force(env, sensor_cfg) > threshold).any(1),
    "bad_orientation": lambda env, limit_angle, asset_cfg=ROBOT: (
        _robot(env, asset_cfg).projected_gravity[:, 2] > -math.cos(limit_angle)
    ),
    "root_height_below_minimum": lambda env, minimum_height, asset_cfg=ROBOT: (
        _robot(env, asset_cfg).root_pos_w[:, 2] < minimum_height
    ),
}
for _name, _term in TERMS.items():
    _term.__name__ = _term.__qualname__ = _name
    globals()[_name] = pure(_term)


def __getattr__(name: str) -> Any:
    known = [name for name, value in globals().items() if callable(value) and not name.startswith("_")]
    raise AttributeError(f"isaac_mdp has no {name!r}; {did_you_mean(name, known)}it has: {', '.join(known)}")


def joint_acc_l2(env: Any, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Σ q̈² of the engine's accelerations in the last physics step."""
    return _part(env, _robot(env, asset_cfg).sim.joint_acc, asset_cfg.joint_ids).square().sum(1)


def time_out(env: Any) -> Any:
    """The time limit: as a termination term it makes ``TaskCfg.episode_length_s``, and is not evaluated."""
    return env.episode_length_buf >= env.max_episode_length


def modify_reward_weight(env: Any, env_ids: Tensor, term_name: str, weight: float, num_steps: int) -> None:
    """Set the weight of a reward after ``num_steps`` control steps of the environment."""
    if env.common_step_counter > num_steps:
        env.reward_manager.set_weight(term_name, weight)


def _draw(env: Any, random: Any, ranges: Any, size: int, env_ids: Tensor) -> Tensor:
    """Numbers of one range, or of a dict of those of some of ``AXES``, the others 0. Shape: (n, size)."""
    pairs = [ranges.get(axis, (0.0, 0.0)) for axis in AXES[:size]] if isinstance(ranges, dict) else [ranges]
    low, high = torch.tensor(pairs, dtype=torch.float32, device=env.device).unbind(1)
    drawn: Tensor = (random or env.random.stream("event")).uniform(low, high, size, env_ids)
    return drawn


def _vary(env: Any, env_ids: Tensor, name: str, ids: Any, ranges: Any, operation: str, random: Any) -> None:
    """Add random numbers to the columns ``ids`` of a parameter as the model has it, or multiply with or set these."""
    check_choice("operation", operation, ("add", "scale", "abs"))
    values = env.sim.default_parameter(name)[env_ids]
    drawn = _draw(env, random, ranges, values[:, ids].shape[1], env_ids)
    values[:, ids] = {"add": values[:, ids] + drawn, "scale": values[:, ids] * drawn, "abs": drawn}[operation]
    env.sim.set_parameter(name, values, env_ids)


def randomize_rigid_body_material(
    env: Any, env_ids: Tensor, static_friction_range: Any, random: Any = None, **others: Any
) -> None:
    """The sliding friction of the robot on the ground; ``others`` belong to a model of contacts that MuJoCo has not,
    and are accepted."""
    env.sim.set_parameter("friction", _draw(env, random, static_friction_range, 1, env_ids)[:, 0], env_ids)


def randomize_rigid_body_mass(
    env: Any, env_ids: Tensor, asset_cfg: Any, mass_distribution_params: Any, operation: str, random: Any = None
) -> None:
    _vary(env, env_ids, "body_mass", asset_cfg.body_ids, mass_distribution_params, operation, random)


def randomize_rigid_body_com(env: Any, env_ids: Tensor, com_range: Any, asset_cfg: Any, random: Any = None) -> None:
    centres = env.sim.default_parameter("com")[env_ids]
    centres[:, asset_cfg.body_ids] += _draw(env, random, com_range, 3, env_ids).unsqueeze(1)
    env.sim.set_parameter("com", centres, env_ids)


def apply_external_force_torque(env: Any, env_ids: Tensor, force_range: Any, torque_range: Any, asset_cfg: Any) -> None:
    if any((*force_range, *torque_range)):
        given = f"force_range={force_range}, torque_range={torque_range}"
        raise ValueError(f"apply_external_force_torque: forces must be 0, got {given}: use push_by_setting_velocity")


def push_by_setting_velocity(
    env: Any, env_ids: Tensor, velocity_range: Any, asset_cfg: Any = ROBOT, random: Any = None
) -> None:
    """Add to the velocity of the base in the world."""
    if turning := [axis for axis in AXES[3:] if any(velocity_range.get(axis, ()))]:
        raise ValueError(f"push_by_setting_velocity: the range of {turning[0]!r} must be 0, pushes do not turn")
    _robot(env, asset_cfg).push(env_ids, _draw(env, random, velocity_range, 3, env_ids))


def reset_root_state_uniform(
    env: Any, env_ids: Tensor, pose_range: Any, velocity_range: Any, asset_cfg: Any = ROBOT, random: Any = None
) -> None:
    """Draw the pose, around the first one, and the velocity in the world."""
    sim = _robot(env, asset_cfg).sim
    pose, velocity = (_draw(env, random, ranges, 6, env_ids) for ranges in (pose_range, velocity_range))
    start, (roll, pitch, yaw) = pose.new_tensor((*sim.start[:2], sim.robot.base_height)), pose[:, 3:].unbind(1)
    turn = rotation.multiply(rotation.from_pitch(pitch), rotation.from_rotation_vector(pad(roll.unsqueeze(1), (0, 2))))
    quat = rotation.multiply(rotation.from_yaw(yaw + sim.start[2]), turn)
    ang_vel_b = rotation.rotate(rotation.conjugate(quat), velocity[:, 3:])
    sim.write_root_state(env_ids, start + pose[:, :3], quat, velocity[:, :3], ang_vel_b)


def _reset_joints(
    scale: bool,
    env: Any,
    env_ids: Tensor,
    position_range: Any,
    velocity_range: Any,
    asset_cfg: Any = ROBOT,
    random: Any = None,
) -> None:
    """Joint positions times or plus random numbers, within their limits; velocities, which are 0, likewise."""
    robot = _robot(env, asset_cfg)
    size, rest = robot.sim.robot.num_joints, robot.default_joint_pos
    pos, vel = (_draw(env, random, ranges, size, env_ids) for ranges in (position_range, velocity_range))
    pos, vel = (rest * pos, 0.0 * vel) if scale else (rest + pos, vel)
    robot.sim.write_joint_state(env_ids, pos.clamp(*robot.soft_joint_pos_limits(1.0)), vel)


reset_joints_by_scale, reset_joints_by_offset = partial(_reset_joints, True), partial(_reset_joints, False)


@configclass
class UniformVelocityCommandCfg:
    """A :class:`~legged_envs.mdp.commands.VelocityCommandCfg`."""

    @configclass
    class Ranges:
        lin_vel_x: Any = MISSING
        lin_vel_y: Any = MISSING
        ang_vel_z: Any = MISSING
        heading: tuple[float, float] | None = None

    asset_name: str = "robot"
    resampling_time_range: Any = MISSING
    rel_standing_envs: float = 0.0
    rel_heading_envs: float = 1.0
    heading_command: bool = False
    heading_control_stiffness: float = 1.0
    ranges: Any = MISSING
    debug_vis: bool = False

    def translated(self, robot: RobotCfg) -> VelocityCommandCfg:
        ranges = self.ranges.lin_vel_x, self.ranges.lin_vel_y, self.ranges.ang_vel_z, self.resampling_time_range
        more: dict[str, Any] = {"heading": self.heading_command, "heading_fraction": self.rel_heading_envs}
        more |= {"heading_range": self.ranges.heading} if self.ranges.heading else {}
        return VelocityCommandCfg(
            *ranges, self.rel_standing_envs, heading_stiffness=self.heading_control_stiffness, **more
        )


@configclass
class JointPositionActionCfg:
    """A :class:`~legged_envs.mdp.actions.JointActionCfg`; numbers may be dicts of those by regular expressions."""

    OURS: ClassVar[Any] = JointPositionCfg
    asset_name: str = "robot"
    joint_names: Any = MISSING
    scale: Any = 1.0
    offset: Any = 0.0
    use_default_offset: bool = True
    clip: Any = None
    preserve_order: bool = False
    debug_vis: bool = False

    def translated(self, robot: RobotCfg) -> JointActionCfg:
        where = type(self).__name__
        joints = match_names("joint", self.joint_names, robot.joint_names, self.preserve_order)[1]
        if joints != [name for name in robot.joint_names if name in joints]:
            raise ValueError(f"{where}.joint_names must be in the robot's order, {robot.joint_names}, got {joints}")
        clips = {*self._each("clip", joints)}
        if len(clips) > 1:
            raise ValueError(f"{where}.clip must be the same for all joints, got {self.clip}")
        offset = None if self.use_default_offset else self._each("offset", joints)
        ours: JointActionCfg = self.OURS(self._each("scale", joints), tuple(joints), clips.pop(), offset)
        return ours

    def _each(self, name: str, joints: list[str]) -> tuple[Any, ...]:
        """What a field is for each joint."""
        given = getattr(self, name)
        table = given if isinstance(given, dict) else {".*": given}
        found = {joint: value for pattern, value in table.items() for joint in match_names("joint", pattern, joints)[1]}
        return tuple(found[joint] for joint in joints)


@configclass
class JointVelocityActionCfg(JointPositionActionCfg):
    OURS: ClassVar[Any] = JointVelocityCfg


@configclass
class JointEffortActionCfg(JointPositionActionCfg):
    OURS: ClassVar[Any] = JointTorqueCfg
