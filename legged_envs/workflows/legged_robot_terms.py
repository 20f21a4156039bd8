"""What a :class:`~legged_envs.workflows.legged_robot_cfg.LeggedRobotCfg` says in our words."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any, cast

import torch
from torch import Tensor

from legged_envs import robots
from legged_envs.checks import check_choice, check_known, did_you_mean
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import (
    CostTermCfg,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from legged_envs.mdp import actions, costs, events, observations, rewards, terminations
from legged_envs.mdp.commands import VelocityCommand, VelocityCommandCfg
from legged_envs.mdp.context import Env, is_pure, pure
from legged_envs.robots import RobotCfg
from legged_envs.sim import SimCfg


@pure
def foot_clearance(env: Env, target: float, sigma: float) -> Tensor:
    """exp(−Σ ‖v_f,xy‖ (z_f − z*)² / σ), as LeggedGym-Ex has it."""
    return torch.exp(rewards.foot_clearance(env, target) * (-1.0 / sigma))


REWARDS: dict[str, Callable[..., Tensor]] = {name: f for name, f in vars(rewards).items() if f and is_pure(f)}
REWARDS |= {"foot_clearance": foot_clearance, "keep_balance": rewards.alive, "stand_still": rewards.dof_vel_stand_still}
COSTS: dict[str, Callable[..., Tensor]] = {name: f for name, f in vars(costs).items() if f and is_pure(f)}
"""The built-in rewards and costs."""


@dataclass
class CommandCfg(VelocityCommandCfg):
    def build(self, env: Any) -> "Command":
        return Command(self, env)


class Command(VelocityCommand):
    """The velocity command, which ``_resample_commands`` draws, and which may be written to."""

    def reset(self, env_ids: Tensor) -> None:
        self._steering[env_ids] = True  # so much for a method that draws in its own way
        self._resampling.start(env_ids, torch.full(env_ids.shape, self.cfg.resampling_time_s[1], device=env_ids.device))
        self._env.task._resample_commands(env_ids)  # type: ignore[attr-defined]

    def draw(self, env_ids: Tensor) -> None:
        super().reset(env_ids)

    def set_ranges(self, ranges: dict[str, Any]) -> None:
        """Draw from (low, high) of each name from now on."""
        bounds = torch.tensor([ranges[name] for name in ("lin_vel_x", "lin_vel_y", "ang_vel_yaw", "heading")])
        self._low[:4], self._high[:4] = bounds.to(self._low).unbind(1)

    def take_in(self) -> None:
        """Let what was written into ``value`` act."""
        if self.value.is_inference() or self.value._version:
            self.heading = self.value[:, 3].clone() if self.cfg.heading_column else self.heading
            self._set(self.value[:, :3].clone())

    def placed(self, env_ids: Tensor) -> None:
        self.take_in()
        super().placed(env_ids)

    def _steer(self) -> None:
        self.take_in()
        super()._steer()


class Method:
    """A method of the task as a term of the managers, pure if it is marked so, a bool as 0 or 1; or an own cost."""

    def __init__(self, cls: type, name: str, cost: str = ""):
        self.name, self.cost, self.__name__ = name, cost, f"{cls.__name__}.{name}"
        if is_pure(getattr(cls, name)):
            self.pure = self

    def __call__(self, env: Any) -> Tensor:
        value = env.own_costs[self.cost] if self.cost else getattr(env.task, self.name)()
        return value.float() if isinstance(value, Tensor) and value.dtype == torch.bool else cast(Tensor, value)


def robot_of(cfg: Any) -> RobotCfg:
    """The robot of ``cfg.asset`` with the gains, pose and bodies that ``cfg`` names."""
    known = {each.name: each for each in vars(robots).values() if isinstance(each, RobotCfg)}
    robot, kind = cfg.asset.robot, cfg.control.control_type
    if robot is None:
        check_known("cfg.asset.name: there is no robot", (cfg.asset.name,), known, "robots, else set asset.robot")
        robot = known[cfg.asset.name]
    if tuple(cfg.asset.dof_names or robot.joint_names) != robot.joint_names:
        raise ValueError(f"cfg.asset.dof_names must be {list(robot.joint_names)}, got {cfg.asset.dof_names}")
    if cfg.env.num_actions != robot.num_joints:
        raise ValueError(f"cfg.env.num_actions must be {robot.num_joints}, one for each joint of {robot.name!r}")
    check_choice("cfg.control.control_type", kind, ("P", "V", "T"))
    fields = {"init_state.default_joint_angles": "default_joint_pos"}
    fields |= {"P": {"control.stiffness": "kp", "control.damping": "kd"}, "V": {"control.stiffness": "kd"}}.get(
        kind, {}
    )
    changes: dict[str, Any] = {}
    if kind != "P":
        changes = {"actuators": ({"V": "velocity", "T": "torque"}[kind],) * robot.num_joints}
        changes |= {name: (0.0,) * robot.num_joints for name in ("kp", "kd")}
    for path, field in fields.items():
        section, word = path.split(".")
        if (values := getattr(getattr(cfg, section), word)) is not None:
            found = [[value for part, value in values.items() if part in joint] for joint in robot.joint_names]
            if [] in found:
                raise ValueError(f"cfg.{path} has no entry for joint {robot.joint_names[found.index([])]!r}: {values}")
            changes[field] = tuple(float(own[-1]) for own in found)
    bodies = [str(body.get("name")) for body in ElementTree.parse(robot.path).iter("body")]
    for word, field in (("penalize_contacts_on", "penalized"), ("terminate_after_contacts_on", "termination")):
        if (parts := getattr(cfg.asset, word)) is not None:
            changes[f"{field}_bodies"] = chosen = tuple(body for body in bodies if any(part in body for part in parts))
            if parts and not chosen:
                raise ValueError(f"cfg.asset.{word} = {parts}: no body has such a name; bodies: {', '.join(bodies)}")
    return cast(RobotCfg, replace(robot, **changes))


def action_of(cfg: Any) -> actions.JointActionCfg:
    kinds = {"P": actions.JointPositionCfg, "V": actions.JointVelocityCfg, "T": actions.JointTorqueCfg}
    return kinds[cfg.control.control_type](scale=cfg.control.action_scale)


PARTS: dict[str, Callable[..., torch.Tensor]] = {k: f for k, f in vars(observations).items() if f and is_pure(f)}
PARTS |= {"lin_vel": observations.base_lin_vel, "commands": pure(lambda env: env.commands["velocity"][:, :3])}
PARTS |= {"gravity": observations.projected_gravity, "ang_vel": observations.base_ang_vel}
PARTS |= {"dof_pos": observations.joint_pos, "dof_vel": observations.joint_vel, "actions": observations.last_action}
PARTS |= {"last_actions": pure(lambda env: env.actions.previous)}
PARTS |= {"push": pure(lambda env: env.robot.last_push_velocity[:, :2])}
MIRROR = dict.fromkeys(("dof_pos", "dof_vel", "actions", "last_actions"), "joint") | {"commands": "velocity_command"}
MIRROR |= dict.fromkeys(("lin_vel", "gravity", "base_com_offset"), "vector") | {"ang_vel": "pseudovector"}
MIRROR |= dict.fromkeys(("base_height", "friction", "base_mass_offset", "gain_scale"), "scalar")
MIRROR |= dict.fromkeys(("foot_contact", "foot_height", "foot_air_time"), "foot")
"""Parts of observation buffers by their names, and how they mirror."""


class Part:
    """A part of an observation buffer as a term, by its name, so that it can be copied and pickled."""

    def __init__(self, name: str):
        self.name, self.__name__, self.pure, self.__module__ = name, name, self, observations.__name__

    def __call__(self, env: Env) -> torch.Tensor:
        return PARTS[self.name](env)


def observations_of(cfg: Any, noisy: bool) -> dict[str, ObservationGroupCfg]:
    scales, noise = vars(cfg.normalization.obs_scales), vars(cfg.noise.noise_scales)
    if scales["commands"] is None:
        scales = {**scales, "commands": (scales["lin_vel"], scales["lin_vel"], scales["ang_vel"])}
    groups = {"policy": cfg.env.observations, "critic": cfg.env.privileged_observations}
    for where, names in {
        "env": {*groups["policy"], *groups["critic"]},
        "obs_scales": scales,
        "noise_scales": noise,
    }.items():
        check_known(f"cfg: {where} has no", names, {*PARTS, "height_measurements"}, "observations")
    level, made = cfg.noise.noise_level, {}
    for group, names in groups.items():
        terms = {}
        for n in names:
            scale = scales.get(n, 1.0)
            terms[n] = ObservationTermCfg(Part(n), level * noise.get(n, 0.0), scale=scale, mirror=MIRROR.get(n))
        made[group] = ObservationGroupCfg(terms, noisy=noisy and cfg.noise.add_noise and group == "policy")
    return made if cfg.env.num_privileged_obs is not None else {"policy": made["policy"]}


def _move_com(env: Env, env_ids: torch.Tensor, random: Any, bounds: list[tuple[float, ...]]) -> None:
    low, high = torch.tensor(bounds, dtype=torch.float32, device=env.device)
    events.randomize_base_com(env, env_ids, random, cast(Any, (low, high)))


def span(value: Any) -> tuple[float, float]:
    """A range that may be one number."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value, value)


def events_of(cfg: Any) -> dict[str, EventTermCfg]:
    """The randomisation of ``cfg.domain_rand``; where episodes start is written by ``_reset_dofs`` and others."""
    rand = cfg.domain_rand
    if rand.randomize_pd_gain and tuple(rand.kp_range) != tuple(rand.kd_range):
        raise ValueError(f"cfg.domain_rand: kp_range {rand.kp_range} and kd_range {rand.kd_range} must be the same")
    bounds = [*zip(rand.com_pos_x_range, rand.com_pos_y_range, rand.com_pos_z_range, strict=True)]
    made = {
        "base_mass": _event(rand.randomize_base_mass, events.randomize_base_mass, "startup", rand.added_mass_range),
        "base_com": _event(rand.randomize_com_displacement, _move_com, "startup", bounds, "bounds"),
        "friction": _event(rand.randomize_friction, events.randomize_friction, "reset", rand.friction_range),
        "gains": _event(rand.randomize_pd_gain, events.randomize_gains, "reset", rand.kp_range),
        "push": _event(rand.push_robots, events.push, "interval", rand.max_push_vel_xy, "velocity"),
    }
    if made["push"] is not None:
        made["push"] = replace(made["push"], interval_s=span(rand.push_interval_s), purpose=None)
    return {name: term for name, term in made.items() if term is not None}


def _event(wanted: bool, func: Any, mode: Any, value: Any, name: str = "range") -> EventTermCfg | None:
    return EventTermCfg(func, mode, params={name: value}, purpose="randomise") if wanted else None


def task_of(cls: Any, cfg: Any) -> TaskCfg:
    """The task that ``cfg`` says, with the methods of the class ``cls``."""
    env, command, ranges, view = cfg.env, cfg.commands, cfg.commands.ranges, cfg.viewer
    task = TaskCfg(robot_of(cfg), SimCfg(cfg.sim.dt, cfg.control.decimation), advance_first=True)
    task.episode_length_s, task.actions = env.episode_length_s, {"joint_position": action_of(cfg)}
    task.max_action_delay = max(cfg.domain_rand.ctrl_delay_step_range) if cfg.domain_rand.randomize_ctrl_delay else 0
    spans: Any = (tuple(getattr(ranges, name)) for name in ("lin_vel_x", "lin_vel_y", "ang_vel_yaw"))
    seconds, heading = span(command.resampling_time), command.heading_command
    standing, small = command.zero_cmd_prob, command.small_command
    own: Any = (*spans, seconds, standing, small, heading)
    velocity = CommandCfg(*own)
    velocity.heading_column, task.commands["velocity"] = command.num_commands == 4, velocity
    task.observations, task.events = observations_of(cfg, not cls._overrides("_get_noise_scale_vec")), events_of(cfg)
    tilt, grace = {"max_projected_gravity": env.max_projected_gravity}, env.fail_to_terminal_time_s
    task.terminations["fallen"] = TerminationTermCfg(terminations.fallen, grace, tilt)
    task.terminations["illegal_contact"] = TerminationTermCfg(terminations.illegal_contact, grace)
    task.rewards, task.only_positive_rewards = rewards_of(cls, cfg), cfg.rewards.only_positive_rewards
    for name, limit in vars(cfg.costs.limits).items():
        func = COSTS.get(name) or Method(cls, "_get_costs", name)
        task.costs[name] = CostTermCfg(func, limit, getattr(cfg.costs.params, name, {}))
    places: Any = (None, None) if view.pos is None else (tuple(view.pos), tuple(view.lookat))
    task.viewer.eye, task.viewer.lookat = places
    task.viewer.env_index = view.ref_env
    task.viewer.origin_type = "asset_root" if view.follow_robot else "world"
    return task


def rewards_of(cls: Any, cfg: Any) -> dict[str, RewardTermCfg]:
    made = {}
    for name, scale in vars(cfg.rewards.scales).items():
        if scale != 0.0:
            method, known = f"_reward_{name}", [each[8:] for each in dir(cls) if each.startswith("_reward_")]
            if not hasattr(cls, method):
                wrong = f"cfg.rewards.scales.{name} = {scale} needs a method {cls.__name__}.{method}"
                raise ValueError(f"{wrong}; {did_you_mean(name, known)}there are: {', '.join(known)}")
            built_in = name in REWARDS and not cls._overrides(method)
            func, params = (REWARDS[name], parameters_of(cfg, name)) if built_in else (Method(cls, method), {})
            made[name] = RewardTermCfg(func, scale, params, after_floor=name == "termination")
    if not made:
        raise ValueError(f"{cls.__name__}: no scale of cfg.rewards.scales differs from 0: set at least one")
    return made


def parameters_of(cfg: Any, name: str) -> dict[str, Any]:
    """The parameters of a built-in reward."""
    own, sigma = cfg.rewards, {"sigma": cfg.rewards.tracking_sigma}
    params = {"tracking_lin_vel": sigma, "tracking_ang_vel": sigma, "feet_air_time": {"target": 0.3}}
    params |= {
        "base_height": {"target": own.base_height_target},
        "torque_limits": {"soft_limit": own.soft_torque_limit},
    }
    clearance = own.foot_clearance_target + own.foot_height_offset - robot_of(cfg).foot_radius
    params |= {"foot_clearance": {"target": clearance, "sigma": own.foot_clearance_tracking_sigma}}
    params |= {"dof_pos_limits": {"soft_limit": own.soft_dof_pos_limit}}
    return {**params.get(name, {}), **getattr(own.params, name, {})}


def mentioned(cls: Any) -> set[str]:
    """The names in the code of a task's own methods."""
    own = (f for each in cls.__mro__ for f in vars(each).values() if not each.__module__.startswith("legged_envs."))
    functions = (getattr(f, "fget", getattr(f, "__func__", f)) for f in own)
    return {name for f in functions if hasattr(f, "__code__") for name in _names(f.__code__)}


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        yield from _names(constant) if isinstance(constant, CodeType) else [str(constant)]
