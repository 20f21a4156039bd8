"""The configuration of a :class:`~legged_envs.compat.legged_gym.legged_robot.LeggedRobot`: nested classes in LeggedGym-Ex's
words, and what they say in ours."""

import copy
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from legged_envs import robots
from legged_envs.checks import check_choice, check_known, check_spelling
from legged_envs.compat.legged_gym.command import CommandCfg
from legged_envs.compat.legged_gym.terms import BUILTIN_COSTS, RewardMethod, own_cost
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import CostTermCfg, EventTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.mdp import actions, events, terminations
from legged_envs.mdp.scan import SCAN_X, SCAN_Y
from legged_envs.sim import SimCfg, ViewerCfg
from legged_envs.sim.cfg import check_vector
from legged_envs.terrains import KindCfg, TerrainCfg

NONE: Any = None
ONLY: dict[str, Any] = {
    f"domain_rand.randomize_joint_{part}": False for part in ("armature", "friction", "damping")
}
ONLY |= dict.fromkeys(
    ("domain_rand.push_links", "asset.fix_base_link", "asset.disable_gravity"), False
)
ONLY |= {f"init_state.{axis}_random_scale": 0.0 for axis in ("roll", "pitch")} | {
    "terrain.selected": False
}
ONLY |= {
    "sim.gravity": [0.0, 0.0, -9.81],
    "init_state.rot": [0.0, 0.0, 0.0, 1.0],
    "sim.substeps": 1,
}
"""LeggedGym-Ex's fields that can have no other value yet."""

TILES: dict[str, Any] = {
    "slope_up": None,
    "slope_down": None,
    "rough": {"spread": (0.1, 0.1)},
    "stairs_up": None,
}
TILES |= {"stairs_down": None, "obstacles": {}, "stones": {}, "gap": None, "pit": None}
"""Our kinds of tiles in LeggedGym-Ex's order → their parameters, None where it is the size of a platform."""
CONTROL: dict[str, Any] = {
    "P": actions.JointPositionCfg,
    "V": actions.JointVelocityCfg,
    "T": actions.JointTorqueCfg,
}
"""What actions are by ``control_type``."""
RANDOMISED: dict[str, tuple[Any, ...]] = {
    "base_mass": (events.randomize_base_mass, "startup", "base_mass", "added_mass"),
    "base_com": (
        events.randomize_base_com,
        "startup",
        "com_displacement",
        "com_pos_x",
        "com_pos_y",
        "com_pos_z",
    ),
    "friction": (events.randomize_friction, "reset", "friction", "friction"),
    "gains": (events.randomize_gains, "reset", "pd_gain", "kp", "kd"),
}
"""Events by name: what happens when, and the fields of ``cfg.domain_rand``, ``randomize_<…>`` that says whether, and
``<…>_range`` that give its one range."""


def _fields(cls: Any) -> dict[str, Any]:
    """The class attributes as Python inherits them, in their order; none of what is no class."""
    return {
        k: v
        for each in getattr(cls, "__mro__", ())[::-1]
        for k, v in vars(each).items()
        if k[:2] != "__"
    }


def _fill(section: Any, cls: type, base: Any) -> Any:
    """``section`` with copies of the fields of ``cls``, and of those of ``base`` which that lacks."""
    defaults = _fields(base)
    for name, value in (defaults | _fields(cls)).items():
        if isinstance(value, type):
            value = _fill(SimpleNamespace(), value, defaults.get(name))
        setattr(section, name, copy.deepcopy(value))
    return section


class LeggedRobotCfg:
    """Subclass it, and the sections whose fields are to differ: they have the fields of the classes they inherit from
    in Python, and what those leave out has the value here. An instance has a namespace for each nested class, with
    copies of the fields."""

    def __init__(self) -> None:
        _fill(self, type(self), LeggedRobotCfg)

    class env:
        num_envs, num_observations, num_actions, num_privileged_obs = 4096, 48, 12, NONE
        episode_length_s, send_timeouts, debug = 20.0, True, False
        fail_to_terminal_time_s, max_projected_gravity = 0.1, -0.1

    class terrain:
        mesh_type, selected, curriculum, max_init_terrain_level, num_rows, num_cols = (
            "plane",
            False,
            False,
            1,
            4,
            4,
        )
        horizontal_scale, vertical_scale, slope_treshold, border_size, platform_size = (
            0.1,
            0.005,
            0.75,
            5.0,
            3.0,
        )
        terrain_length, terrain_width, terrain_proportions = 6.0, 6.0, (0.1, 0.1, 0.35, 0.25, 0.2)
        """Of slopes, half of them up and half of them down, noise, stairs up, stairs down, obstacles, stepping stones,
        gaps and pits."""
        measure_heights, measured_points_x, measured_points_y = False, SCAN_X, SCAN_Y

    class commands:
        curriculum, max_curriculum, curriculum_threshold = False, 1.0, 0.8
        num_commands, heading_command, resampling_time, zero_cmd_prob, small_command = (
            4,
            True,
            10.0,
            0.0,
            0.2,
        )
        """The last two: how probable a command to stand still is, and the norm up to which a linear command becomes 0,
        m/s."""

        class ranges:
            lin_vel_x = lin_vel_y = ang_vel_yaw = (-1.0, 1.0)
            heading = (-3.14, 3.14)

    class init_state:
        pos = default_joint_angles = NONE
        """First position of the base, m, and pose at action 0, rad; None for those of the robot."""
        yaw_random_scale, dof_pos_random_scale, velocity_random_scale = 0.0, 0.2, 0.5
        """By how much first poses, rad, and first velocities of the base, m/s and rad/s, vary to both sides."""

    class control:
        control_type, action_scale, decimation = "P", 0.5, 4
        stiffness = damping = NONE
        """Part of a joint's name → gain; None for those of the robot."""

    class asset:
        robot = name = dof_names = NONE
        """A :class:`RobotCfg`, or the name of one of this package, and its joints in their order."""
        penalize_contacts_on = terminate_after_contacts_on = NONE
        """Parts of the names of bodies; None for those of the robot."""

    class rewards:
        only_positive_rewards, tracking_sigma = True, 0.25
        soft_dof_pos_limit = soft_torque_limit = base_height_target = 1.0

        class scales:
            termination = tracking_lin_vel = tracking_ang_vel = 0.0

        class params:
            """``name = {parameter: value}``: parameters of built-in rewards."""

            feet_air_time: Any = {"target": 0.3}  # noqa: RUF012

    class costs:
        class limits:
            """``name = limit``, an average per step, of a term of ``legged_envs.mdp.costs`` or of ``_get_costs``."""

        class params:
            """``name = {parameter: value}``: parameters of built-in costs."""

    class domain_rand:
        randomize_friction = randomize_base_mass = randomize_com_displacement = push_robots = True
        randomize_ctrl_delay = randomize_pd_gain = False
        friction_range, added_mass_range, kp_range, kd_range = (
            (0.5, 1.25),
            (-1.0, 1.0),
            (0.8, 1.2),
            (0.8, 1.2),
        )
        com_pos_x_range = com_pos_y_range = com_pos_z_range = (-0.01, 0.01)
        max_push_vel_xy, ctrl_delay_step_range = 1.0, (0, 1)
        push_interval_s: Any = 15.0

    class normalization:
        clip_observations = clip_actions = 100.0

        class obs_scales:
            lin_vel, ang_vel, dof_pos, dof_vel, height_measurements = 1.0, 0.25, 1.0, 0.05, 5.0

    class noise:
        add_noise, noise_level = True, 1.0

        class noise_scales:
            dof_pos, dof_vel, lin_vel, ang_vel, gravity, height_measurements = (
                0.01,
                0.5,
                0.1,
                0.2,
                0.05,
                0.1,
            )

    class viewer:
        ref_env, pos, lookat = 0, NONE, NONE
        """In m; None for the camera of the robot's model."""

    class sim:
        dt = 0.005


def check_fields(cfg: Any, base: Any = None, path: str = "") -> None:
    """Raise ValueError if a field is spelt like another, or has another value than :data:`ONLY` allows. Fields of
    another name are the task's own."""
    if not isinstance(cfg, LeggedRobotCfg if base is None else SimpleNamespace):
        raise TypeError(
            f"cfg{path} must be of a subclass of LeggedRobotCfg, or a class in one, got {cfg!r}"
        )
    known = vars(base or LeggedRobotCfg())
    for name, value in vars(cfg).items():
        here = f"{path}.{name}"
        if isinstance(known.get(name), SimpleNamespace):
            check_fields(value, known[name], here)
        elif not path.startswith((".rewards.", ".costs.")):
            check_spelling(f"cfg{path}", (name,), known, 0.9 if len(name) > 7 else 0.8)
        if value != (only := ONLY.get(here[1:], value)):
            raise ValueError(f"cfg{here} = {value!r} is not there yet: it must be {only!r}")


def robot_of(cfg: Any) -> robots.RobotCfg:
    """The robot of ``cfg.asset`` with the gains, pose and bodies that ``cfg`` names."""
    known = {each.name: each for each in vars(robots).values() if isinstance(each, robots.RobotCfg)}
    if cfg.asset.robot is None:
        check_known(
            "cfg.asset.name: there is no robot",
            (cfg.asset.name,),
            known,
            "robots, else set asset.robot",
        )
    robot: robots.RobotCfg = cfg.asset.robot or known[cfg.asset.name]
    for path, needed in {
        "asset.dof_names": [*robot.joint_names],
        "env.num_actions": robot.num_joints,
    }.items():
        if (given := attrgetter(path)(cfg)) not in (None, needed):
            raise ValueError(f"cfg.{path} must be {needed} for robot {robot.name!r}, got {given}")
    check_choice("cfg.control.control_type", cfg.control.control_type, CONTROL)
    kind = CONTROL[cfg.control.control_type].kind
    changes: dict[str, Any] = {"actuators": (kind,) * robot.num_joints}
    # The gains of the robot are those of positions.
    changes |= {gain: (0.0,) * robot.num_joints for gain in ("kp", "kd") if kind != "position"}
    fields = dict(
        zip(
            ("control.stiffness", "control.damping"),
            robots.robot.ACTUATOR_GAINS[kind],
            strict=False,
        )
    )
    for path, field in (fields | {"init_state.default_joint_angles": "default_joint_pos"}).items():
        if (values := attrgetter(path)(cfg)) is not None or field in changes:
            found = {
                joint: [values[part] for part in values or () if part in joint]
                for joint in robot.joint_names
            }
            if missing := [joint for joint, own in found.items() if not own]:
                raise ValueError(f"cfg.{path} has no entry for joint {missing[0]!r}: {values}")
            changes[field] = tuple(float(own[-1]) for own in found.values())
    bodies = [str(body.get("name")) for body in ElementTree.parse(robot.path).iter("body")]
    for word, field in {
        "penalize": "penalized_bodies",
        "terminate_after": "termination_bodies",
    }.items():
        if (parts := getattr(cfg.asset, f"{word}_contacts_on")) is not None:
            changes[field] = tuple(body for body in bodies if any(part in body for part in parts))
    return replace(robot, **changes)


def terrain_of(cfg: Any) -> TerrainCfg | None:
    """The ground that ``cfg``, the section ``terrain``, says, None for a plane."""
    check_choice("cfg.terrain.mesh_type", cfg.mesh_type, ("plane", "heightfield", "trimesh"))
    check_choice("cfg.terrain.terrain_width", cfg.terrain_width, (cfg.terrain_length,))
    for name, most in {
        "measured_points_x": 1000,
        "measured_points_y": 1000,
        "terrain_proportions": 8,
    }.items():
        check_vector(
            f"cfg.terrain.{name}", values := getattr(cfg, name), min(max(1, len(values)), most)
        )
    platform, (slopes, *others) = (
        {"platform": cfg.platform_size / cfg.terrain_length},
        cfg.terrain_proportions,
    )
    tiles = zip(TILES.items(), (slopes / 2, slopes / 2, *others), strict=False)
    kinds = {
        name: KindCfg(share, platform if params is None else params)
        for (name, params), share in tiles
    }
    sizes = (
        cfg.terrain_length,
        cfg.border_size,
        cfg.horizontal_scale,
        cfg.vertical_scale,
        cfg.slope_treshold,
    )
    levels = 0, cfg.max_init_terrain_level if cfg.curriculum else cfg.num_rows - 1
    return (
        None
        if cfg.mesh_type == "plane"
        else TerrainCfg(kinds, cfg.num_rows, cfg.num_cols, *sizes, 0, levels)
    )


def events_of(cfg: Any) -> dict[str, EventTermCfg]:
    """The randomisation of ``cfg.domain_rand``; where episodes start is written by ``_reset_dofs`` and others."""
    rand, made = cfg.domain_rand, {}
    for name, (func, mode, what, *fields) in RANDOMISED.items():
        ranges = [tuple(getattr(rand, f"{field}_range")) for field in fields]
        if len({*ranges}) > 1:
            raise ValueError(
                f"cfg.domain_rand: the ranges of {', '.join(fields)} must be the same, got {ranges}"
            )
        if getattr(rand, f"randomize_{what}"):
            made[name] = EventTermCfg(func, mode, params={"range": ranges[0]}, purpose="randomise")
    if rand.push_robots:
        least, most = (
            rand.push_interval_s
            if isinstance(rand.push_interval_s, tuple)
            else (rand.push_interval_s,) * 2
        )
        made["push"] = EventTermCfg(
            events.push, "interval", (least, most), {"velocity": rand.max_push_vel_xy}
        )
    return made


def task_of(cls: Any, cfg: Any) -> TaskCfg:
    """The task that ``cfg`` says, with the methods of the class ``cls``."""
    env, command, time = cfg.env, cfg.commands, (cfg.commands.resampling_time,) * 2
    task = TaskCfg(robot_of(cfg), SimCfg(cfg.sim.dt, cfg.control.decimation), advance_first=True)
    task.episode_length_s, task.action_limit = env.episode_length_s, cfg.normalization.clip_actions
    task.actions["joint_position"] = CONTROL[cfg.control.control_type](
        scale=cfg.control.action_scale
    )
    task.max_action_delay = (
        max(cfg.domain_rand.ctrl_delay_step_range) if cfg.domain_rand.randomize_ctrl_delay else 0
    )
    x, y, yaw = (
        getattr(command.ranges, name) for name in ("lin_vel_x", "lin_vel_y", "ang_vel_yaw")
    )
    columns = {"heading": command.heading_command, "heading_column": command.num_commands == 4}
    task.commands["velocity"] = CommandCfg(
        x, y, yaw, time, command.zero_cmd_prob, command.small_command, **columns
    )
    task.events = events_of(cfg)
    for name, func in {
        "fallen": terminations.fallen,
        "illegal_contact": terminations.illegal_contact,
    }.items():
        task.terminations[name] = TerminationTermCfg(func, env.fail_to_terminal_time_s)
    task.scene.terrain = terrain_of(cfg.terrain)
    if task.scene.terrain is not None:
        task.terminations["left_terrain"] = TerminationTermCfg(
            terminations.left_terrain, time_out=True
        )
    task.terminations["fallen"].params["max_projected_gravity"] = env.max_projected_gravity
    task.rewards, task.only_positive_rewards = (
        rewards_of(cls, cfg),
        cfg.rewards.only_positive_rewards,
    )
    for name, limit in vars(cfg.costs.limits).items():
        own, params = {"name": name}, getattr(cfg.costs.params, name, {})
        task.costs[name] = CostTermCfg(
            BUILTIN_COSTS.get(name, own_cost), limit, params if name in BUILTIN_COSTS else own
        )
    task.viewer = ViewerCfg(cfg.viewer.pos, cfg.viewer.lookat, env_index=cfg.viewer.ref_env)
    return task


def rewards_of(cls: Any, cfg: Any) -> dict[str, RewardTermCfg]:
    known = [name.removeprefix("_reward_") for name in dir(cls) if name.startswith("_reward_")]
    scales = {name: scale for name, scale in vars(cfg.rewards.scales).items() if scale != 0.0}
    if not scales:
        raise ValueError(
            f"{cls.__name__}: no scale of cfg.rewards.scales differs from 0: set at least one"
        )
    check_known(
        f"cfg.rewards.scales: {cls.__name__} has no method _reward_<name> for",
        scales,
        known,
        "it has",
    )
    check_known(
        "cfg.rewards.params: there is no reward", vars(cfg.rewards.params), known, "rewards"
    )
    check_known(
        "cfg.costs.params: there is no cost", vars(cfg.costs.params), BUILTIN_COSTS, "costs"
    )
    return {
        n: RewardTermCfg(RewardMethod(cls, n), scale, after_floor=n == "termination")
        for n, scale in scales.items()
    }
