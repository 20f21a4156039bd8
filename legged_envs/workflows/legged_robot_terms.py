"""What a :class:`~legged_envs.workflows.legged_robot_cfg.LeggedRobotCfg` says in our words."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, cast

import torch
from torch import Tensor

from legged_envs import robots
from legged_envs.checks import check_choice, check_known, did_you_mean
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import CostTermCfg, EventTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.mdp import actions, costs, events, rewards, terminations
from legged_envs.mdp.commands import VelocityCommand, VelocityCommandCfg
from legged_envs.mdp.context import is_pure
from legged_envs.robots import RobotCfg
from legged_envs.sim import SimCfg, ViewerCfg


def _terms_of(module: Any) -> dict[str, Callable[..., Tensor]]:
    return {name: term for name, term in vars(module).items() if callable(term) and is_pure(term)}


REWARDS, COSTS = _terms_of(rewards), _terms_of(costs)
REWARDS |= {"keep_balance": rewards.alive, "stand_still": rewards.dof_vel_stand_still}
"""The built-in rewards and costs."""
PARAMETERS = {f"tracking_{kind}_vel": {"sigma": "tracking_sigma"} for kind in ("lin", "ang")}
PARAMETERS |= {"base_height": {"target": "base_height_target"}, "torque_limits": {"soft_limit": "soft_torque_limit"}}
PARAMETERS |= {"dof_pos_limits": {"soft_limit": "soft_dof_pos_limit"}}
"""Parameters of rewards that are fields of ``cfg.rewards``."""


GAINS = {"control.stiffness": "kp", "control.damping": "kd"}
CONTROL: dict[str, tuple[type[actions.JointActionCfg], dict[str, str]]] = {
    "P": (actions.JointPositionCfg, GAINS),
    "V": (actions.JointVelocityCfg, {"control.stiffness": "kd"}),
    "T": (actions.JointTorqueCfg, {}),
}
"""What actions are, and fields of the configuration → gains of the robot, by ``control_type``."""
RANDOMISED: dict[str, tuple[str, Any, str]] = {
    "base_mass": ("randomize_base_mass", "startup", "added_mass_range"),
    "base_com": ("randomize_com_displacement", "startup", "com_pos_x_range"),
    "friction": ("randomize_friction", "reset", "friction_range"),
    "gains": ("randomize_pd_gain", "reset", "kp_range"),
}
"""Events by name: fields of ``cfg.domain_rand`` for whether they happen and for their range, and when."""


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

    def draw(self, env_ids: Tensor, ranges: dict[str, Any]) -> None:
        """Draw from the (low, high) of each name."""
        bounds = torch.tensor([ranges[name] for name in ("lin_vel_x", "lin_vel_y", "ang_vel_yaw", "heading")])
        self._low[:4], self._high[:4] = bounds.to(self._low).unbind(1)
        super().reset(env_ids)

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
    if cfg.asset.robot is None:
        check_known("cfg.asset.name: there is no robot", (cfg.asset.name,), known, "robots, else set asset.robot")
    robot = cfg.asset.robot or known[cfg.asset.name]
    for path, needed in {"asset.dof_names": [*robot.joint_names], "env.num_actions": robot.num_joints}.items():
        if (given := attrgetter(path)(cfg)) not in (None, needed):
            raise ValueError(f"cfg.{path} must be {needed} for robot {robot.name!r}, got {given}")
    check_choice("cfg.control.control_type", cfg.control.control_type, CONTROL)
    action, gains = CONTROL[cfg.control.control_type]
    if action.kind == "velocity" and not cfg.control.stiffness:
        raise ValueError("cfg.control.stiffness must have a gain > 0, N·m·s/rad, of each joint for control_type 'V'")
    changes: dict[str, Any] = {"actuators": (action.kind,) * robot.num_joints}
    changes |= {} if gains is GAINS else dict.fromkeys(("kp", "kd"), (0.0,) * robot.num_joints)
    for path, field in (gains | {"init_state.default_joint_angles": "default_joint_pos"}).items():
        if (values := attrgetter(path)(cfg)) is not None:
            found = {joint: [values[part] for part in values if part in joint] for joint in robot.joint_names}
            if missing := [joint for joint, own in found.items() if not own]:
                raise ValueError(f"cfg.{path} has no entry for joint {missing[0]!r}: {values}")
            changes[field] = tuple(float(own[-1]) for own in found.values())
    bodies = [str(body.get("name")) for body in ElementTree.parse(robot.path).iter("body")]
    for word, field in {"penalize": "penalized_bodies", "terminate_after": "termination_bodies"}.items():
        if (parts := getattr(cfg.asset, f"{word}_contacts_on")) is not None:
            changes[field] = tuple(body for body in bodies if any(part in body for part in parts))
            if parts and not changes[field]:
                raise ValueError(f"cfg.asset.{word}_contacts_on = {parts}: no body has such a name; bodies: {bodies}")
    return cast(RobotCfg, replace(robot, **changes))


def events_of(cfg: Any) -> dict[str, EventTermCfg]:
    """The randomisation of ``cfg.domain_rand``; where episodes start is written by ``_reset_dofs`` and others."""
    rand = cfg.domain_rand
    for same in (("kp_range", "kd_range"), [f"com_pos_{axis}_range" for axis in "xyz"]):
        if len({tuple(getattr(rand, name)) for name in same}) > 1:
            raise ValueError(f"cfg.domain_rand: {', '.join(same)} must be the same")
    made = {}
    for name, (switch, mode, field) in RANDOMISED.items():
        if getattr(rand, switch):
            func, params = getattr(events, f"randomize_{name}"), {"range": getattr(rand, field)}
            made[name] = EventTermCfg(func, mode, params=params, purpose="randomise")
    if rand.push_robots:
        least, most = rand.push_interval_s if isinstance(rand.push_interval_s, tuple) else (rand.push_interval_s,) * 2
        made["push"] = EventTermCfg(events.push, "interval", (least, most), {"velocity": rand.max_push_vel_xy})
    return made


def task_of(cls: Any, cfg: Any) -> TaskCfg:
    """The task that ``cfg`` says, with the methods of the class ``cls``."""
    env, command, view = cfg.env, cfg.commands, cfg.viewer
    task = TaskCfg(robot_of(cfg), SimCfg(cfg.sim.dt, cfg.control.decimation), advance_first=True)
    task.episode_length_s, task.action_limit = env.episode_length_s, cfg.normalization.clip_actions
    task.actions["joint_position"] = CONTROL[cfg.control.control_type][0](scale=cfg.control.action_scale)
    task.max_action_delay = max(cfg.domain_rand.ctrl_delay_step_range) if cfg.domain_rand.randomize_ctrl_delay else 0
    ranges = [tuple(getattr(command.ranges, name)) for name in ("lin_vel_x", "lin_vel_y", "ang_vel_yaw")]
    drawn: Any = (*ranges, (command.resampling_time,) * 2, command.zero_cmd_prob, command.small_command)
    columns = {"heading": command.heading_command, "heading_column": command.num_commands == 4}
    task.commands["velocity"] = CommandCfg(*drawn, **columns)
    task.events = events_of(cfg)
    for name, func in {"fallen": terminations.fallen, "illegal_contact": terminations.illegal_contact}.items():
        task.terminations[name] = TerminationTermCfg(func, env.fail_to_terminal_time_s)
    task.terminations["fallen"].params["max_projected_gravity"] = env.max_projected_gravity
    task.rewards, task.only_positive_rewards = rewards_of(cls, cfg), cfg.rewards.only_positive_rewards
    for name, limit in vars(cfg.costs.limits).items():
        own: Any = None if name in COSTS else Method(cls, "_get_costs", name)
        task.costs[name] = CostTermCfg(own or COSTS[name], limit, getattr(cfg.costs.params, name, {}))
    task.viewer = ViewerCfg(view.pos, view.lookat, env_index=view.ref_env)
    return task


def rewards_of(cls: Any, cfg: Any) -> dict[str, RewardTermCfg]:
    made, known = {}, [each[8:] for each in dir(cls) if each.startswith("_reward_")]
    check_known("cfg.rewards.params: there is no reward", vars(cfg.rewards.params), known, "rewards")
    check_known("cfg.costs.params: there is no cost", vars(cfg.costs.params), COSTS, "costs")
    for name, scale in vars(cfg.rewards.scales).items():
        if scale != 0.0:
            if name not in known:
                wrong = f"cfg.rewards.scales.{name} = {scale} needs a method {cls.__name__}._reward_{name}"
                raise ValueError(f"{wrong}; {did_you_mean(name, known)}there are: {', '.join(known)}")
            made[name] = RewardTermCfg(Method(cls, f"_reward_{name}"), scale, after_floor=name == "termination")
    if not made:
        raise ValueError(f"{cls.__name__}: no scale of cfg.rewards.scales differs from 0: set at least one")
    return made


def parameters_of(cfg: Any, name: str) -> dict[str, Any]:
    """The parameters of a built-in reward."""
    fields = {parameter: getattr(cfg.rewards, field) for parameter, field in PARAMETERS.get(name, {}).items()}
    return {**fields, **getattr(cfg.rewards.params, name, {})}
