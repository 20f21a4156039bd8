"""Translation of a :class:`~legged_envs.compat.legged_gym.LeggedRobotCfg` into a ``TaskCfg``."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from legged_envs.checks import check_choice, check_known
from legged_envs.compat.legged_gym.command import CommandCfg
from legged_envs.compat.legged_gym.terms import BUILTIN_COSTS, RewardMethod, own_cost
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import CostTermCfg, EventTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.managers.event import Mode
from legged_envs.mdp import events, terminations
from legged_envs.mdp.actions import (
    JointActionCfg,
    JointPositionCfg,
    JointTorqueCfg,
    JointVelocityCfg,
)
from legged_envs.robots import ROBOTS, RobotCfg
from legged_envs.sim import SimCfg, ViewerCfg
from legged_envs.sim.cfg import check_vector
from legged_envs.terrains import KindCfg, TerrainCfg

MESH_TYPES = ("plane", "heightfield", "trimesh")
"""Values of ``cfg.terrain.mesh_type``."""
MAX_MEASURED_POINTS = 1000
"""Largest number of measured points along x, and along y."""
MAX_PROPORTIONS = 8
"""Largest number of entries of ``cfg.terrain.terrain_proportions``."""
TILE_PARAMS: dict[str, dict[str, Any] | None] = {
    "slope_up": None,
    "slope_down": None,
    "rough": {"spread": (0.1, 0.1)},
    "stairs_up": None,
    "stairs_down": None,
    "obstacles": {},
    "stones": {},
    "gap": None,
    "pit": None,
}
"""Kinds of tiles in LeggedGym-Ex's order, mapped to the parameters of their generators.

None: the size of the platform.
"""
ACTION_TERMS: dict[str, type[JointActionCfg]] = {
    "P": JointPositionCfg,
    "V": JointVelocityCfg,
    "T": JointTorqueCfg,
}
"""Values of ``cfg.control.control_type`` mapped to their action terms."""
GAIN_FIELDS: dict[str, dict[str, str]] = {
    "position": {"stiffness": "kp", "damping": "kd"},
    "velocity": {"stiffness": "kd"},
    "torque": {},
}
"""Kinds of actuators mapped to the fields of ``cfg.control`` that are gains of ``RobotCfg``."""


class Randomisation(NamedTuple):
    """An event that LeggedGym-Ex switches on by a field of ``cfg.domain_rand``."""

    func: Callable[..., None]
    """Function of the event."""
    mode: Mode
    """When the event happens."""
    switch: str
    """Field that is true if the event happens."""
    ranges: tuple[str, ...]
    """Fields with the range of the event; they must be equal."""


RANDOMISATIONS: dict[str, Randomisation] = {
    "base_mass": Randomisation(
        func=events.randomize_base_mass,
        mode="startup",
        switch="randomize_base_mass",
        ranges=("added_mass_range",),
    ),
    "base_com": Randomisation(
        func=events.randomize_base_com,
        mode="startup",
        switch="randomize_com_displacement",
        ranges=("com_pos_x_range", "com_pos_y_range", "com_pos_z_range"),
    ),
    "friction": Randomisation(
        func=events.randomize_friction,
        mode="reset",
        switch="randomize_friction",
        ranges=("friction_range",),
    ),
    "gains": Randomisation(
        func=events.randomize_gains,
        mode="reset",
        switch="randomize_pd_gain",
        ranges=("kp_range", "kd_range"),
    ),
}
"""Events by their names."""


def task_of(cls: type, cfg: Any) -> TaskCfg:
    """Translate a configuration.

    Args:
        cls: Class of the task, which has the methods of the rewards.
        cfg: A :class:`LeggedRobotCfg`.

    Returns:
        Robot, physics, ground, time limit and terms.

    Raises:
        ValueError: If a field is not valid; the error names it.
    """
    control = cfg.control
    max_delay = 0
    if cfg.domain_rand.randomize_ctrl_delay:
        max_delay = max(cfg.domain_rand.ctrl_delay_step_range)
    robot = robot_of(cfg)  # checks the type of control
    task = TaskCfg(
        robot=robot,
        sim=SimCfg(dt=cfg.sim.dt, decimation=control.decimation),
        viewer=ViewerCfg(
            eye=cfg.viewer.pos,
            lookat=cfg.viewer.lookat,
            env_index=cfg.viewer.ref_env,
        ),
        episode_length_s=cfg.env.episode_length_s,
        actions={"joint_position": ACTION_TERMS[control.control_type](scale=control.action_scale)},
        action_limit=cfg.normalization.clip_actions,
        max_action_delay=max_delay,
        commands={"velocity": command_of(cfg.commands)},
        rewards=rewards_of(cls, cfg.rewards),
        only_positive_rewards=cfg.rewards.only_positive_rewards,
        costs=costs_of(cfg.costs),
        events=events_of(cfg.domain_rand),
        advance_first=True,
    )
    task.scene.terrain = terrain_of(cfg.terrain)
    has_border = task.scene.terrain is not None
    task.terminations = terminations_of(cfg.env, has_border)
    return task


def robot_of(cfg: Any) -> RobotCfg:
    """Return the robot of ``cfg.asset`` with the gains, pose and bodies that ``cfg`` names.

    Args:
        cfg: A :class:`LeggedRobotCfg`.

    Raises:
        ValueError: If there is no such robot, or a field does not fit it.
    """
    robot = _find_robot(cfg.asset)
    _check_robot_fields(cfg, robot)
    check_choice("cfg.control.control_type", cfg.control.control_type, ACTION_TERMS)
    kind = ACTION_TERMS[cfg.control.control_type].kind
    joints = robot.joint_names
    changes: dict[str, Any] = {"actuators": (kind,) * len(joints)}
    if kind != "position":
        # The robot's own gains are those of positions.
        changes["kp"] = (0.0,) * len(joints)
        changes["kd"] = (0.0,) * len(joints)
    for field, gain in GAIN_FIELDS[kind].items():
        values = getattr(cfg.control, field)
        # A gain of velocities has no default.
        if values is not None or gain in changes:
            changes[gain] = _joint_values(f"control.{field}", values or {}, joints)
    angles = cfg.init_state.default_joint_angles
    if angles is not None:
        changes["default_joint_pos"] = _joint_values(
            "init_state.default_joint_angles", angles, joints
        )
    asset = cfg.asset
    if asset.penalize_contacts_on is not None:
        changes["penalized_bodies"] = _matching_bodies(robot, asset.penalize_contacts_on)
    if asset.terminate_after_contacts_on is not None:
        changes["termination_bodies"] = _matching_bodies(robot, asset.terminate_after_contacts_on)
    return replace(robot, **changes)


def _find_robot(asset: Any) -> RobotCfg:
    if asset.robot is None:
        hint = "set cfg.asset.robot to a RobotCfg, or choose from"
        check_known("cfg.asset.name: there is no robot", [asset.name], ROBOTS, hint)
        return ROBOTS[asset.name]
    robot: RobotCfg = asset.robot
    return robot


def _check_robot_fields(cfg: Any, robot: RobotCfg) -> None:
    joint_names = list(robot.joint_names)
    if cfg.asset.dof_names not in (None, joint_names):
        raise ValueError(
            f"cfg.asset.dof_names must be {joint_names} for robot {robot.name!r}, "
            f"got {cfg.asset.dof_names}"
        )
    if cfg.env.num_actions not in (None, robot.num_joints):
        raise ValueError(
            f"cfg.env.num_actions must be {robot.num_joints} for robot {robot.name!r}, "
            f"got {cfg.env.num_actions}"
        )


def _joint_values(
    path: str, values: Mapping[str, float], joints: Sequence[str]
) -> tuple[float, ...]:
    """Return the value of each joint: that of the last entry whose name is a part of the joint's.

    Args:
        path: Field of the configuration, for the error.
        values: Part of a joint's name mapped to a value.
        joints: Names of the joints.
    """
    found = []
    for joint in joints:
        matching = [value for part, value in values.items() if part in joint]
        if not matching:
            raise ValueError(f"cfg.{path} has no entry for joint {joint!r}, got {values}")
        found.append(float(matching[-1]))
    return tuple(found)


def _matching_bodies(robot: RobotCfg, parts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the robot's bodies in which one of ``parts`` occurs, in their order."""
    matching = []
    for body in ElementTree.parse(robot.path).iter("body"):
        name = str(body.get("name"))
        if any(part in name for part in parts):
            matching.append(name)
    return tuple(matching)


def terrain_of(section: Any) -> TerrainCfg | None:
    """Translate the ground.

    Args:
        section: The section ``cfg.terrain``.

    Returns:
        A field of tiles; None for a plane.

    Raises:
        ValueError: If a field is not valid, also on a plane.
    """
    check_choice("cfg.terrain.mesh_type", section.mesh_type, MESH_TYPES)
    check_choice("cfg.terrain.terrain_width", section.terrain_width, (section.terrain_length,))
    _check_length("measured_points_x", section.measured_points_x, MAX_MEASURED_POINTS)
    _check_length("measured_points_y", section.measured_points_y, MAX_MEASURED_POINTS)
    _check_length("terrain_proportions", section.terrain_proportions, MAX_PROPORTIONS)
    if section.mesh_type == "plane":
        return None
    # Without a curriculum, robots begin on any level and stay there.
    highest = section.max_init_terrain_level if section.curriculum else section.num_rows - 1
    return TerrainCfg(
        kinds=_kinds_of_tiles(section),
        rows=section.num_rows,
        columns=section.num_cols,
        size=section.terrain_length,
        border=section.border_size,
        horizontal_scale=section.horizontal_scale,
        vertical_scale=section.vertical_scale,
        slope_threshold=section.slope_treshold,
        first_levels=(0, highest),
    )


def _check_length(name: str, values: Sequence[float], most: int) -> None:
    """Check that a field of the ground has 1 to ``most`` finite numbers."""
    expected = min(max(1, len(values)), most)
    check_vector(f"cfg.terrain.{name}", values, expected)


def _kinds_of_tiles(section: Any) -> dict[str, KindCfg]:
    slopes, *others = section.terrain_proportions
    # The first share is that of all slopes, which are two kinds here.
    shares = [slopes / 2, slopes / 2, *others]
    platform = section.platform_size / section.terrain_length
    kinds = {}
    for name, share in zip(list(TILE_PARAMS)[: len(shares)], shares, strict=True):
        params = TILE_PARAMS[name]
        if params is None:
            params = {"platform": platform}
        kinds[name] = KindCfg(proportion=share, params=dict(params))
    return kinds


def command_of(section: Any) -> CommandCfg:
    """Translate the section ``cfg.commands``."""
    ranges = section.ranges
    return CommandCfg(
        lin_vel_x=ranges.lin_vel_x,
        lin_vel_y=ranges.lin_vel_y,
        ang_vel_z=ranges.ang_vel_yaw,
        resampling_time_s=(section.resampling_time, section.resampling_time),
        standing_fraction=section.zero_cmd_prob,
        small_command=section.small_command,
        heading=section.heading_command,
        heading_column=section.num_commands == 4,
    )


def events_of(section: Any) -> dict[str, EventTermCfg]:
    """Translate randomisation and pushes; methods of the task place the robots.

    Args:
        section: The section ``cfg.domain_rand``.

    Raises:
        ValueError: If ranges differ that must be equal.
    """
    terms = {}
    for name, randomisation in RANDOMISATIONS.items():
        fields = randomisation.ranges
        ranges = [tuple(getattr(section, field)) for field in fields]
        if len(set(ranges)) > 1:
            raise ValueError(f"cfg.domain_rand: {', '.join(fields)} must be equal, got {ranges}")
        if getattr(section, randomisation.switch):
            terms[name] = EventTermCfg(
                func=randomisation.func,
                mode=randomisation.mode,
                params={"range": ranges[0]},
                purpose="randomise",
            )
    if section.push_robots:
        interval_s = section.push_interval_s
        if not isinstance(interval_s, tuple):
            interval_s = (interval_s, interval_s)
        terms["push"] = EventTermCfg(
            func=events.push,
            mode="interval",
            interval_s=interval_s,
            params={"velocity": section.max_push_vel_xy},
        )
    return terms


def terminations_of(section: Any, has_border: bool) -> dict[str, TerminationTermCfg]:
    """Translate the conditions that end an episode.

    Args:
        section: The section ``cfg.env``.
        has_border: True if the ground has an end.
    """
    grace_s = section.fail_to_terminal_time_s
    terms = {
        "fallen": TerminationTermCfg(
            func=terminations.fallen,
            grace_s=grace_s,
            params={"max_projected_gravity": section.max_projected_gravity},
        ),
        "illegal_contact": TerminationTermCfg(func=terminations.illegal_contact, grace_s=grace_s),
    }
    if has_border:
        terms["left_terrain"] = TerminationTermCfg(func=terminations.left_terrain, time_out=True)
    return terms


def rewards_of(cls: type, section: Any) -> dict[str, RewardTermCfg]:
    """Translate the scales of the rewards.

    Args:
        cls: Class of the task, which has the methods ``_reward_<name>``.
        section: The section ``cfg.rewards``.

    Returns:
        A term for each scale that is not 0.

    Raises:
        ValueError: If no scale differs from 0, or a scale or parameter has no method.
    """
    scales = {name: scale for name, scale in vars(section.scales).items() if scale != 0.0}
    if not scales:
        raise ValueError(
            f"{cls.__name__}: each scale of cfg.rewards.scales is 0. Set at least one scale."
        )
    methods = []
    for attribute in dir(cls):
        if attribute.startswith("_reward_"):
            methods.append(attribute.removeprefix("_reward_"))
    what = f"cfg.rewards.scales: {cls.__name__} has no method _reward_<name> for"
    check_known(what, scales, methods, "it has")
    parameters = vars(section.params)
    check_known("cfg.rewards.params: there is no reward", parameters, methods, "rewards")
    terms = {}
    for name, scale in scales.items():
        terms[name] = RewardTermCfg(
            func=RewardMethod(cls, name),
            weight=scale,
            after_floor=name == "termination",
        )
    return terms


def costs_of(section: Any) -> dict[str, CostTermCfg]:
    """Translate the limits of the costs.

    Args:
        section: The section ``cfg.costs``.

    Returns:
        A term for each limit: a built-in cost, or an entry that ``_get_costs`` returns.

    Raises:
        ValueError: If parameters are those of a cost that is not built in.
    """
    parameters = vars(section.params)
    check_known("cfg.costs.params: there is no cost", parameters, BUILTIN_COSTS, "costs")
    terms = {}
    for name, limit in vars(section.limits).items():
        if name in BUILTIN_COSTS:
            func = BUILTIN_COSTS[name]
            params = parameters.get(name, {})
        else:
            func = own_cost
            params = {"name": name}
        terms[name] = CostTermCfg(func=func, limit=limit, params=params)
    return terms
