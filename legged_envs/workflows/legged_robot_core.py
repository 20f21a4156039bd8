"""The vector environment of a :class:`~legged_envs.workflows.legged_robot.LeggedRobot`, and its simulator."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, cast

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.checks import did_you_mean
from legged_envs.envs import Evaluation
from legged_envs.managers import Piece, Program
from legged_envs.state import Stateful
from legged_envs.workflows.legged_robot_terms import COSTS
from legged_envs.workflows.workflow import WorkflowCore


class RobotCore(WorkflowCore):
    """The vector environment of a :class:`LeggedRobot`."""

    task: Any
    _fresh = False  # whether the step has made the observation already

    def _set_up(self) -> None:
        super()._set_up()
        limits = self.task.cfg.normalization
        self.observation_limit, self.actions.limit = limits.clip_observations, limits.clip_actions

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        task, cfg = self.task, self.task.cfg
        self.own_costs, where = task._get_costs(), f"{type(task).__name__}._get_costs"
        for name in self.own_costs.keys() ^ (vars(cfg.costs.limits).keys() - COSTS.keys()):
            what = f"{where} and cfg.costs.limits must have the same names beside the built-in ones"
            raise ValueError(f"{what}, only one has {name!r}; {did_you_mean(name, COSTS)}built in: {', '.join(COSTS)}")
        self._evaluate_and_observe(self)
        self._link()
        task.compute_observations()
        sizes = {"policy": task.num_obs} | ({"critic": task.num_privileged_obs} if task.num_privileged_obs else {})
        for attribute, field in {"obs_buf": "observations", "privileged_obs_buf": "privileged_obs"}.items():
            if (size := getattr(cfg.env, f"num_{field}")) is not None:
                task._check_buffer("compute_observations", attribute, size, f" (cfg.env.num_{field})")
        limit, action = self.observation_limit, self.actions.limit
        boxes: dict[str, gym.Space[Any]] = {n: gym.spaces.Box(-limit, limit, (size,)) for n, size in sizes.items()}
        return boxes, gym.spaces.Box(-action, action, (self.actions.size,))

    def _record(self, robots: list[Piece], owners: list[object]) -> None:
        stages = {"robot": robots, "observations": self._observation_pieces()}
        pieces = (manager.pieces() for manager in self._evaluated)
        stages |= zip(("terminations", "rewards", "costs"), pieces, strict=True)
        self.programs = {name: Program(stage, [self.task, *owners], self._compile) for name, stage in stages.items()}
        self._observation = self.programs["observations"]

    def _link(self) -> None:
        """Let ``episode_sums`` of the task be what the manager sums up."""
        self.task.episode_sums |= zip(self.rewards.names, self.rewards.episode_sums.unbind(1), strict=True)

    def _act(self, action: Tensor) -> None:
        self.task.simulator.last_feet_vel = self.robot.foot_lin_vel_w.clone()
        self.sim.set_joint_targets(self.actions.process(self.task._pre_sim_step(action)))
        self.sim.step(self.cfg.sim.decimation)

    def _advance(self) -> None:
        """Done in ``post_physics_step``."""

    def _evaluate(self) -> Evaluation:
        task = self.task
        task._stepping = True
        try:
            task.post_physics_step()
        finally:
            task._stepping, self._fresh = False, True
        task._check_buffer("check_termination", "reset_buf")
        task._check_buffer("compute_reward", "rew_buf")
        self.own_costs = task._get_costs()
        self.programs["costs"]()
        self.rewards.check_values(self._recovered)
        self.costs.check_values(self._recovered)
        # The time limit is a wrapper's; what else ran out of time is the task's.
        truncated = task.time_out_buf.bool() & (self._episode_steps < task.max_episode_length)
        return Evaluation(self.terminated(), task.rew_buf, self.costs.total, self.costs.values, truncated)

    def terminated(self) -> Tensor:
        """Whose episode the task ended, as ``check_termination`` left it."""
        if self.task._overrides("check_termination"):
            self.terminations.terminated = self.task.reset_buf.bool() & ~self.task.time_out_buf.bool()
        return self.terminations.terminated

    def _observe(self, env_ids: Tensor | None) -> dict[str, Tensor]:
        task, limit = self.task, self.observation_limit
        if env_ids is not None or not self._fresh:
            task._observe_rows(self._all_ids if env_ids is None else env_ids)
        self._fresh = False
        buffers, chosen = {"policy": task.obs_buf, "critic": task.privileged_obs_buf}, slice(None)
        rows: Any = chosen if env_ids is None else env_ids
        return {name: cast(Tensor, buffers[name])[rows].clamp(-limit, limit) for name in self._last_observation}

    def _place(self, env_ids: Tensor, seeded: bool) -> None:
        if seeded:
            self.events.apply("startup", env_ids)
        type(self.task).reset_idx(self.task, env_ids)

    def _begin_episodes(self, env_ids: Tensor) -> None:
        super()._begin_episodes(env_ids)
        self.task._failing[env_ids] = self.task._own_failing[env_ids] = 0

    def _load_own_state(self, state: dict[str, Any]) -> None:
        super()._load_own_state(state)
        self._link()

    def close_extras(self, **kwargs: Any) -> None:
        super().close_extras(**kwargs)
        self.programs = {}


def _euler(c: Any) -> Tensor:
    w, x, y, z = c.robot.root_quat_w.unbind(1)
    roll = torch.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    return torch.stack((roll, torch.asin((2.0 * (w * y - z * x)).clamp(-1.0, 1.0)), c.robot.heading()), 1)


def _offset(c: Any, name: str) -> Tensor:
    return cast(Tensor, c.sim.get_parameter(name)[:, 0] - c.sim.default_parameter(name)[:, 0])


def _bodies(name: str) -> Callable[[Any], Tensor]:
    return lambda c: torch.arange(len(c.sim.body_names), device=c.device)[getattr(c.robot, name)]


ROBOT = {"dof_pos": "joint_pos", "dof_vel": "joint_vel", "last_dof_vel": "previous_joint_vel", "feet_pos": "foot_pos_w"}
ROBOT |= {
    "torques": "joint_torque",
    "base_pos": "root_pos_w",
    "base_lin_vel": "lin_vel_b",
    "feet_vel": "foot_lin_vel_w",
}
ROBOT |= {"base_ang_vel": "root_ang_vel_b", "link_contact_forces": "contact_force_w", "torque_limits": "torque_limits"}
ROBOT |= {"projected_gravity": "projected_gravity", "dof_vel_limits": "joint_vel_limits"}
ROBOT |= {"dr_rand_push_vels": "last_push_velocity"}
READ: dict[str, Callable[[Any], Any]] = {k: attrgetter(f"robot.{name}") for k, name in ROBOT.items()}
READ |= {"dof_acc": lambda c: c.sim.joint_acc, "base_quat": lambda c: c.robot.root_quat_w.roll(-1, 1)}
READ |= {"base_euler": _euler, "default_dof_pos": lambda c: c.robot.default_joint_pos[None]}
READ |= {"feet_indices": _bodies("feet"), "feet_contact_indices": _bodies("feet")}
READ |= {
    f"{kind}_contact_indices": _bodies(f"{kind}{of}_bodies") for kind, of in (("penalized", ""), ("termination", ""))
}
READ |= {"dr_friction_values": lambda c: c.sim.get_parameter("friction")[:, None]}
READ |= {
    "dr_added_base_mass": lambda c: _offset(c, "body_mass")[:, None],
    "dr_base_com_bias": lambda c: _offset(c, "com"),
}
READ |= {"dr_kp_scale": lambda c: c.sim.get_parameter("kp") / c.sim.default_parameter("kp")}
READ |= {"dr_kd_scale": lambda c: c.sim.get_parameter("kd") / c.sim.default_parameter("kd")}
ZERO = ("measured_heights", "dr_joint_armature", "dr_joint_friction", "dr_joint_damping")
READ |= dict.fromkeys(ZERO, lambda c: torch.zeros(c.num_envs, 1, device=c.device)) | {"custom_origins": lambda c: False}
READ |= {"env_origins": lambda c: torch.zeros(c.num_envs, 3, device=c.device)}
READ |= {"base_init_quat": lambda c: torch.tensor((0.0, 0.0, 0.0, 1.0), device=c.device)}
"""Attributes of ``simulator``; those of randomisation also without their ``dr``, as in older versions."""


class Simulator(Stateful):
    """The robots in LeggedGym-Ex's words: base velocities in the base frame, quaternions (x, y, z, w)."""

    STATE = ("last_feet_vel",)

    def __init__(self, core: RobotCore, cfg: Any):
        self.core, self.dof_names = core, list(core.cfg.robot.joint_names)
        self.last_feet_vel = core.robot.foot_lin_vel_w.clone()
        pos = cfg.init_state.pos or (0.0, 0.0, core.cfg.robot.base_height)
        self.base_init_pos = torch.tensor(pos, dtype=torch.float32, device=core.device)
        self.dof_pos_limits = torch.stack(core.robot.soft_joint_pos_limits(cfg.rewards.soft_dof_pos_limit), 1)

    def __getattr__(self, name: str) -> Any:
        read = READ.get(name) or READ.get(f"dr{name}")
        if read is None:
            raise AttributeError(f"simulator has no {name!r}; {did_you_mean(name, READ)}it has: {', '.join(READ)}")
        return read(self.core)

    def post_physics_step(self) -> None:
        self.core.programs["robot"]()

    def reset_idx(self, env_ids: Tensor) -> None:
        """Randomise the robots of ``env_ids`` anew."""
        self.core.events.reset(env_ids)

    def reset_dofs(self, env_ids: Tensor, dof_pos: Tensor, dof_vel: Tensor) -> None:
        self.core.sim.write_joint_state(env_ids, dof_pos, dof_vel)

    def reset_root_states(self, env_ids: Tensor, pos: Tensor, quat: Tensor, lin_vel: Tensor, ang_vel: Tensor) -> None:
        """Place the bases: positions, (x, y, z, w), velocities in the world frame."""
        turn = rotation.rotate_inverse(quat.roll(1, 1), ang_vel[:, None])[:, 0]
        self.core.sim.write_root_state(env_ids, pos, quat.roll(1, 1), lin_vel, turn)

    def push_robots(self) -> None:
        """Push every robot."""
        core, push = self.core, self.core.cfg.events["push"]
        push.func(core, core._all_ids, core.random.stream("event/push"), **push.params)

    def update_sensors(self) -> None:
        """There are no sensors yet."""
