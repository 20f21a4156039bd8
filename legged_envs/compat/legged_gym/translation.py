"""Translation of a :class:`~legged_envs.compat.legged_gym.LeggedRobotCfg` into a ``TaskCfg``.

A section of an instance is a namespace with the fields of a nested class. Annotations here name the
class, where the fields are described.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from legged_envs.checks import check_known
from legged_envs.compat.legged_gym.cfg import LeggedRobotCfg
from legged_envs.compat.legged_gym.command import CommandCfg
from legged_envs.compat.legged_gym.robot import ACTION_TERMS, robot_of
from legged_envs.compat.legged_gym.terms import BUILTIN_COSTS, RewardMethod, own_cost
from legged_envs.compat.legged_gym.terrain import terrain_of
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import CostTermCfg, EventTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.managers.event import Mode
from legged_envs.mdp import events, terminations
from legged_envs.sim import SimCfg, ViewerCfg


class Randomization(NamedTuple):
    """An event that LeggedGym-Ex switches on by a field of ``cfg.domain_rand``."""

    func: Callable[..., None]
    """Function of the event."""
    mode: Mode
    """When the event happens."""
    switch: str
    """Field that is true if the event happens."""
    ranges: tuple[str, ...]
    """Fields with the range of the event; they must be equal."""
    parameter: str | None = None
    """Parameter of the joints that the event draws. None: the default of the function."""


RANDOMIZATIONS: dict[str, Randomization] = {
    "base_mass": Randomization(
        func=events.randomize_base_mass,
        mode="startup",
        switch="randomize_base_mass",
        ranges=("added_mass_range",),
    ),
    "base_com": Randomization(
        func=events.randomize_base_com,
        mode="startup",
        switch="randomize_com_displacement",
        ranges=("com_pos_x_range", "com_pos_y_range", "com_pos_z_range"),
    ),
    "friction": Randomization(
        func=events.randomize_friction,
        mode="reset",
        switch="randomize_friction",
        ranges=("friction_range",),
    ),
    "gains": Randomization(
        func=events.randomize_gains,
        mode="reset",
        switch="randomize_pd_gain",
        ranges=("kp_range", "kd_range"),
    ),
    "joint_armature": Randomization(
        func=events.randomize_joint_parameter,
        mode="startup",
        switch="randomize_joint_armature",
        ranges=("joint_armature_range",),
        parameter="armature",
    ),
    "joint_friction": Randomization(
        func=events.randomize_joint_parameter,
        mode="startup",
        switch="randomize_joint_friction",
        ranges=("joint_friction_range",),
        parameter="joint_friction",
    ),
    "joint_damping": Randomization(
        func=events.randomize_joint_parameter,
        mode="startup",
        switch="randomize_joint_damping",
        ranges=("joint_damping_range",),
        parameter="joint_damping",
    ),
}
"""Events by their names."""


def task_of(cls: type, cfg: LeggedRobotCfg) -> TaskCfg:
    """Translate a configuration.

    Args:
        cls: Class of the task, which has the methods of the rewards.
        cfg: The configuration.

    Returns:
        Robot, physics, ground, time limit and terms.

    Raises:
        ValueError: If a field is not valid; the error names it.
    """
    control = cfg.control
    max_delay = 0
    if cfg.domain_rand.randomize_ctrl_delay:
        max_delay = max(cfg.domain_rand.ctrl_delay_step_range)
    # The robot comes first: it checks the type of control, which the actions need.
    robot = robot_of(cfg)
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
        # LeggedGym-Ex draws commands and pushes before it evaluates.
        advance_first=True,
    )
    task.scene.terrain = terrain_of(cfg.terrain)
    has_border = task.scene.terrain is not None
    task.terminations = terminations_of(cfg.env, has_border)
    return task


def command_of(section: type[LeggedRobotCfg.commands]) -> CommandCfg:
    """Translate the section ``cfg.commands``."""
    # The range of headings is not here: _resample_commands draws from the task's command_ranges.
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


def events_of(section: type[LeggedRobotCfg.domain_rand]) -> dict[str, EventTermCfg]:
    """Translate randomization and pushes; methods of the task place the robots.

    Args:
        section: The section ``cfg.domain_rand``.

    Raises:
        ValueError: If ranges differ that must be equal.
    """
    # The random streams have these names: other names would draw other numbers.
    terms = {}
    for name, randomization in RANDOMIZATIONS.items():
        fields = randomization.ranges
        ranges = [tuple(getattr(section, field)) for field in fields]
        # One event draws along all axes. Also a range that is switched off is checked, so that
        # switching it on later cannot fail.
        if len(set(ranges)) > 1:
            raise ValueError(f"cfg.domain_rand: {', '.join(fields)} must be equal, got {ranges}")
        params: dict[str, Any] = {"range": ranges[0]}
        if randomization.parameter is not None:
            params["parameter"] = randomization.parameter
        if getattr(section, randomization.switch):
            terms[name] = EventTermCfg(
                func=randomization.func,
                mode=randomization.mode,
                params=params,
                purpose="randomize",
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


def terminations_of(
    section: type[LeggedRobotCfg.env], has_border: bool
) -> dict[str, TerminationTermCfg]:
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
    # A robot at the border has not failed: LeggedGym-Ex puts it back, here it is cut off.
    if has_border:
        terms["left_terrain"] = TerminationTermCfg(func=terminations.left_terrain, time_out=True)
    return terms


def rewards_of(cls: type, section: type[LeggedRobotCfg.rewards]) -> dict[str, RewardTermCfg]:
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
    # The method of the class, not of the object, which does not exist yet when a task is
    # registered.
    methods = []
    for attribute in dir(cls):
        if attribute.startswith("_reward_"):
            methods.append(attribute.removeprefix("_reward_"))
    what = f"cfg.rewards.scales: {cls.__name__} has no method _reward_<name> for"
    check_known(what, scales, methods, "it has")
    parameters = vars(section.params)
    check_known("cfg.rewards.params: there is no reward", parameters, methods, "rewards")
    # The order of the scales counts: floating-point sums depend on it.
    terms = {}
    for name, scale in scales.items():
        terms[name] = RewardTermCfg(
            func=RewardMethod(cls, name),
            weight=scale,
            after_floor=name == "termination",
        )
    return terms


def costs_of(section: type[LeggedRobotCfg.costs]) -> dict[str, CostTermCfg]:
    """Translate the limits of the costs.

    Args:
        section: The section ``cfg.costs``.

    Returns:
        A term for each limit: a built-in cost, or an entry that ``_get_costs`` returns.

    Raises:
        ValueError: If there are parameters of a cost that is not built in.
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
