"""The vector environment of a :class:`~legged_envs.workflows.legged_robot.LeggedRobot`, and its simulator."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.checks import did_you_mean
from legged_envs.envs import Evaluation
from legged_envs.managers import Piece, Program
from legged_envs.mdp import observations
from legged_envs.workflows.legged_robot_terms import COSTS
from legged_envs.workflows.workflow import WorkflowCore


class RobotCore(WorkflowCore):
    """The vector environment of a :class:`LeggedRobot`."""

    task: Any
    _fresh = False  # whether the task evaluates a step, which makes the observation too

    def _set_up(self) -> None:
        super()._set_up()
        self.observation_limit = self.task.cfg.normalization.clip_observations
        self.last_feet_vel = self.robot.foot_lin_vel_w.clone()

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        task, cfg, limit, action = self.task, self.task.cfg, self.observation_limit, self.cfg.action_limit
        self.own_costs = task._get_costs()
        for name in self.own_costs.keys() ^ (vars(cfg.costs.limits).keys() - COSTS.keys()):
            what = f"{type(task).__name__}._get_costs and cfg.costs.limits differ in {name!r}"
            raise ValueError(f"{what}; {did_you_mean(name, COSTS)}built in: {', '.join(COSTS)}")
        self._evaluate_and_observe(self)
        task.ended_sums = torch.zeros_like(self.rewards.episode_sums)
        try:
            task.compute_observations()
        except (RuntimeError, IndexError) as error:
            raise ValueError(f"{type(task).__name__}.compute_observations, {self.cfg.robot.name!r}: {error}") from error
        boxes: dict[str, gym.Space[Any]] = {}
        for group, (buffer, field) in BUFFERS.items():
            if (size := getattr(cfg.env, field)) is not None:
                self.check("compute_observations", f"{buffer} (cfg.env.{field})", getattr(task, buffer), size)
                boxes[group] = gym.spaces.Box(-limit, limit, (size,))
        return boxes, gym.spaces.Box(-action, action, (self.actions.size,))

    def _record(self, robots: list[Piece], owners: list[object]) -> None:
        pieces = (robots, *(manager.pieces() for manager in self._evaluated))
        stages = zip(("robot", "terminations", "rewards", "costs"), pieces, strict=True)
        self.programs = {name: Program(stage, [self.task, *owners], self._compile) for name, stage in stages}

    def _act(self, action: Tensor) -> None:
        self.last_feet_vel = self.robot.foot_lin_vel_w.clone()
        super()._act(self.check("_pre_sim_step", "actions", self.task._pre_sim_step(action), self.actions.size))

    def _advance(self) -> None:
        """Done in ``post_physics_step``."""

    def _evaluate(self) -> Evaluation:
        task, self._fresh = self.task, True
        task.post_physics_step()
        self.check("check_termination", "reset_buf", task.reset_buf, flags=True)
        self.own_costs = task._get_costs()
        self.programs["costs"]()
        self.rewards.check_values(self._recovered)
        self.costs.check_values(self._recovered)
        reward = self.check("compute_reward", "rew_buf", task.rew_buf)
        # The time limit is a wrapper's; what else ran out of time is the task's.
        truncated = task.time_out_buf.bool() & (self._episode_steps < task.max_episode_length)
        return Evaluation(self.terminated(), reward, self.costs.total, self.costs.values, truncated)

    def terminated(self) -> Tensor:
        """Whose episode the task ended, as ``check_termination`` left it: by more than the end of its time."""
        late = self.task.time_out_buf.bool() & ~self.terminations.terminated
        self.terminations.terminated = self.task.reset_buf.bool() & ~late
        return self.terminations.terminated

    def _observe(self, env_ids: Tensor | None) -> dict[str, Tensor]:
        task, rows = self.task, self._all_ids if env_ids is None else env_ids
        if env_ids is not None or not self._fresh:
            task._rows = rows
            self._observe_new(rows, task.compute_observations)
            task._rows = None
        self._fresh, limit, sizes = False, self.observation_limit, self.group_sizes.items()
        names = {group: (BUFFERS[group][0], size) for group, size in sizes}
        values = {g: self.check("compute_observations", n, getattr(task, n), size) for g, (n, size) in names.items()}
        return {group: values[group][rows].clamp(-limit, limit) for group in self._last_observation}

    def _end_episodes(self, env_ids: Tensor, steps: Tensor) -> Tensor:
        # The physics of an ended episode may run on until its reset.
        sums = self.rewards.episode_sums
        self.task.ended_sums = self.task.ended_sums.index_copy(0, env_ids, sums[env_ids])
        return super()._end_episodes(env_ids, steps)

    def _choose_start(self, env_ids: Tensor) -> None:
        type(self.task).reset_idx(self.task, env_ids)

    def close_extras(self, **kwargs: Any) -> None:
        super().close_extras(**kwargs)
        self.programs = {}


BUFFERS = {"policy": ("obs_buf", "num_observations"), "critic": ("privileged_obs_buf", "num_privileged_obs")}
"""The buffer of the task and its size in ``cfg.env`` by observation group."""


def _euler(c: Any) -> Tensor:
    w, x, y, z = c.robot.root_quat_w.unbind(1)
    roll = torch.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    return torch.stack((roll, torch.asin((2.0 * (w * y - z * x)).clamp(-1.0, 1.0)), c.robot.heading()), 1)


ROBOT = {"dof_pos": "joint_pos", "dof_vel": "joint_vel", "last_dof_vel": "previous_joint_vel", "base_pos": "root_pos_w"}
ROBOT |= {"base_lin_vel": "lin_vel_b", "base_ang_vel": "root_ang_vel_b", "projected_gravity": "projected_gravity"}
ROBOT |= {"feet_pos": "foot_pos_w", "feet_vel": "foot_lin_vel_w", "contact_forces": "contact_force_w"}
ROBOT |= {"torques": "joint_torque", "torque_limits": "torque_limits", "dof_vel_limits": "joint_vel_limits"}
ROBOT |= {"link_contact_forces": "contact_force_w", "dof_pos_limits": "joint_pos_limits"}
READ: dict[str, Callable[[Any], Any]] = {name: attrgetter(f"robot.{ours}") for name, ours in ROBOT.items()}
READ |= {"dof_acc": attrgetter("sim.joint_acc"), "last_feet_vel": attrgetter("last_feet_vel"), "base_euler": _euler}
READ |= {"base_quat": lambda c: c.robot.root_quat_w.roll(-1, 1), "dof_names": lambda c: [*c.cfg.robot.joint_names]}
READ |= {"default_dof_pos": lambda c: c.robot.default_joint_pos[None], "custom_origins": lambda c: False}
READ |= {"base_init_quat": lambda c: torch.tensor((0.0, 0.0, 0.0, 1.0), device=c.device)}
READ |= {"base_init_pos": lambda c: torch.tensor(c.task.cfg.init_state.pos, device=c.device)}
READ |= {"env_origins": lambda c: torch.zeros_like(c.robot.root_pos_w)}
READ |= {"forward_vec": lambda c: torch.eye(3, device=c.device)[:1].repeat(c.num_envs, 1)}
READ |= {"gravity_vec": lambda c: -torch.eye(3, device=c.device)[2:].repeat(c.num_envs, 1)}
FEET, ZERO = ("feet_indices", "feet_contact_indices"), ("_joint_armature", "_joint_friction", "_joint_damping")
READ |= dict.fromkeys(FEET, lambda c: torch.arange(len(c.sim.body_names), device=c.device)[c.robot.feet])
READ |= dict.fromkeys((*ZERO, "measured_heights"), lambda c: torch.zeros(c.num_envs, 1, device=c.device))
READ |= {"_friction_values": observations.friction, "_rand_push_vels": observations.last_push_velocity}
READ |= {"_added_base_mass": observations.base_mass_offset, "_base_com_bias": observations.base_com_offset}
READ |= {"_kp_scale": lambda c: c.sim.get_parameter("kp") / c.sim.default_parameter("kp")}
READ |= {"_kd_scale": lambda c: c.sim.get_parameter("kd") / c.sim.default_parameter("kd")}
"""Attributes of ``simulator``, and of the task, in which they can be read."""


class Simulator:
    """The robots in LeggedGym-Ex's words: base velocities in the base frame, quaternions (x, y, z, w)."""

    def __init__(self, core: RobotCore):
        self.core = core

    def __getattr__(self, name: str) -> Any:
        if name not in READ:
            raise AttributeError(f"simulator has no {name!r}; {did_you_mean(name, READ)}it has: {', '.join(READ)}")
        return READ[name](self.core)

    def post_physics_step(self) -> None:
        self.core.programs["robot"]()

    def update_sensors(self) -> None:
        """There are no sensors yet."""

    def reset_idx(self, env_ids: Tensor) -> None:
        """Randomise the robots of ``env_ids`` anew."""
        self.core.events.reset(env_ids)

    def reset_dofs(self, env_ids: Tensor, dof_pos: Tensor, dof_vel: Tensor) -> None:
        self.core.sim.write_joint_state(env_ids, dof_pos, dof_vel)

    def reset_root_states(self, env_ids: Tensor, pos: Tensor, quat: Tensor, lin_vel: Tensor, ang_vel: Tensor) -> None:
        """Place the bases: positions, (x, y, z, w), velocities in the world frame."""
        turn = rotation.rotate_inverse(quat.roll(1, 1), ang_vel[:, None])[:, 0]
        self.core.sim.write_root_state(env_ids, pos, quat.roll(1, 1), lin_vel, turn)
