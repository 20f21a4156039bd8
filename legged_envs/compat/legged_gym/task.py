"""The vector environment of a :class:`~legged_envs.compat.legged_gym.legged_robot.LeggedRobot`, and its simulator."""

from collections.abc import Callable
from inspect import getmembers, isfunction
from operator import attrgetter
from typing import Any, cast

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.checks import check_known
from legged_envs.compat.adapter import ORIGINS, WorkflowCore
from legged_envs.envs import Evaluation
from legged_envs.managers import Piece, Program
from legged_envs.mdp import commands, costs, observations
from legged_envs.mdp.context import is_pure

COSTS = dict(getmembers(costs, isfunction))
"""The built-in costs."""


class CommandCfg(commands.VelocityCommandCfg):
    def build(self, env: Any) -> "Command":
        return Command(self, env)


class Command(commands.VelocityCommand):
    """The velocity command, which ``_resample_commands`` draws, and which may be written to."""

    def reset(self, env_ids: Tensor) -> None:
        self._steering[env_ids] = True  # so much for a method that draws in its own way
        self._resampling.start(
            env_ids, torch.full(env_ids.shape, self.cfg.resampling_time_s[1], device=env_ids.device)
        )
        self._env.task._resample_commands(env_ids)  # type: ignore[attr-defined]

    def draw(self, env_ids: Tensor, ranges: dict[str, Any]) -> None:
        """Draw from the (low, high) of each name."""
        bounds = torch.tensor(
            [ranges[name] for name in ("lin_vel_x", "lin_vel_y", "ang_vel_yaw", "heading")]
        )
        self._low[:4], self._high[:4] = bounds.to(self._low).unbind(1)
        super().reset(env_ids)

    def take_in(self) -> None:
        """Let what was written into ``value`` act."""
        if self.value.is_inference() or self.value._version:
            self.heading = self.value[:, 3].clone() if self.cfg.heading_column else self.heading
            self._set(self.value[:, :3].clone())

    def _steer(self) -> None:
        self.take_in()
        super()._steer()


class Reward:
    """``_reward_<name>`` of the task as a term, pure if it is marked so, a bool as 0 or 1."""

    def __init__(self, cls: type, name: str):
        self.method, self.__name__ = f"_reward_{name}", f"{cls.__name__}._reward_{name}"
        if is_pure(getattr(cls, self.method)):
            self.pure = self

    def __call__(self, env: Any) -> Any:
        value = getattr(env.task, self.method)()
        return value.float() if getattr(value, "dtype", None) == torch.bool else value


def own_cost(env: Any, name: str) -> Tensor:
    """An entry of what ``_get_costs`` gave in this step."""
    return cast(Tensor, env.own_costs[name])


class RobotCore(WorkflowCore):
    """The vector environment of a :class:`LeggedRobot`."""

    task: Any
    _fresh = False  # whether the task evaluates a step, which makes the observation too

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        task, cfg = self.task, self.task.cfg
        limit = self.observation_limit = cfg.normalization.clip_observations
        self.last_feet_vel = self.robot.foot_lin_vel_w.clone()
        self.own_costs, limits = self._checked_costs(), vars(cfg.costs.limits)
        unknown = self.own_costs.keys() ^ (limits.keys() - COSTS.keys())
        check_known(
            f"{type(task).__name__}._get_costs and cfg.costs.limits differ in",
            unknown,
            COSTS,
            "built in",
        )
        self._evaluate_and_observe(self)
        self.log_names += tuple(f"rew_{name}" for name in self.rewards.names)
        sizes = {group: getattr(cfg.env, field) for group, (_, field) in BUFFERS.items()}
        spaces: dict[str, Any] = {
            g: gym.spaces.Box(-limit, limit, (n,)) for g, n in sizes.items() if n is not None
        }
        return spaces, self._spaces()[1]

    def _checked_costs(self) -> dict[str, Tensor]:
        return {
            n: self.check("_get_costs", n, cost, least=0.0)
            for n, cost in self.task._get_costs().items()
        }

    def _record(self, robots: list[Piece], owners: list[object]) -> None:
        pieces = (robots, *(manager.pieces() for manager in self._evaluated))
        stages = zip(("robot", "terminations", "rewards", "costs"), pieces, strict=True)
        self.programs = {
            name: Program(stage, [self.task, *owners], self._compile) for name, stage in stages
        }
        self._evaluation = self.programs["costs"]

    @property
    def acts_by_terms(self) -> bool:
        return type(self.task)._pre_sim_step.__module__.startswith("legged_envs.compat.")

    def _act(self, action: Tensor) -> None:
        self.last_feet_vel = self.robot.foot_lin_vel_w.clone()
        super()._act(
            self.check(
                "_pre_sim_step", "actions", self.task._pre_sim_step(action), self.actions.size
            )
        )

    def _advance(self) -> None:
        """Done in ``post_physics_step``."""

    def _evaluate(self) -> Evaluation:
        task, self._fresh = self.task, True
        task.post_physics_step()
        self.check("check_termination", "reset_buf", task.reset_buf, flags=True)
        self.check("check_termination", "time_out_buf", task.time_out_buf, flags=True)
        self.own_costs = self._checked_costs()
        evaluation = super()._evaluate()
        reward = self.check("compute_reward", "rew_buf", task.rew_buf)
        # The time limit is a wrapper's; what else ran out of time is the task's.
        truncated = task.time_out_buf.bool() & (self._episode_steps < task.max_episode_length)
        return evaluation._replace(terminated=self.terminated(), reward=reward, truncated=truncated)

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
        self._fresh, limit, seen = False, self.observation_limit, {}
        for group, size in self.group_sizes.items():
            buffer, field = BUFFERS[group]
            seen[group] = self.check(
                "compute_observations", f"{buffer} (cfg.env.{field})", getattr(task, buffer), size
            )
        return {group: seen[group][rows].clamp(-limit, limit) for group in self._last_observation}

    def _end_episodes(self, env_ids: Tensor, steps: Tensor) -> Tensor:
        sums = self.rewards.episode_sums[env_ids] / self.max_episode_length_s
        return torch.cat((super()._end_episodes(env_ids, steps), sums), dim=1)

    custom_origins = property(lambda self: self.ground is not None)
    """Whether robots begin on tiles of rough ground."""

    terrain, measured_heights = (
        property(attrgetter("ground.terrain")),
        property(lambda self: self.task._get_heights()),
    )
    """The rough ground, and heights around each robot, m, (num_envs, points)."""

    @property
    def root_states(self) -> Tensor:
        """Positions, (x, y, z, w) and velocities of the bases in the world frame. Shape: (num_envs, 13)."""
        pos, quat, lin_vel = (
            self.robot.root_pos_w,
            self.robot.root_quat_w,
            self.robot.root_lin_vel_w,
        )
        return torch.cat(
            (pos, quat.roll(-1, 1), lin_vel, rotation.rotate(quat, self.robot.root_ang_vel_b)), 1
        )

    def _place(self, env_ids: Tensor, seeded: bool) -> None:
        self.task.init_done = not seeded  # or tiles have just been drawn
        super()._place(env_ids, seeded)

    def _choose_start(self, env_ids: Tensor) -> None:
        type(self.task).reset_idx(self.task, env_ids)


BUFFERS = {
    "policy": ("obs_buf", "num_observations"),
    "critic": ("privileged_obs_buf", "num_privileged_obs"),
}
"""The buffer of the task and its size in ``cfg.env`` by observation group."""


def _euler(c: Any) -> Tensor:
    x, y, z = c.robot.projected_gravity.unbind(1)
    return torch.stack(
        (rotation.atan2(-y, -z), torch.asin(x.clamp(-1.0, 1.0)), c.robot.heading()), 1
    )


ROBOT = {
    "dof_pos": "joint_pos",
    "dof_vel": "joint_vel",
    "last_dof_vel": "previous_joint_vel",
    "base_pos": "root_pos_w",
}
ROBOT |= {
    "base_lin_vel": "lin_vel_b",
    "base_ang_vel": "root_ang_vel_b",
    "projected_gravity": "projected_gravity",
}
ROBOT |= {
    "feet_pos": "foot_pos_w",
    "feet_vel": "foot_lin_vel_w",
    "link_contact_forces": "contact_force_w",
}
ROBOT |= {
    "torques": "joint_torque",
    "torque_limits": "torque_limits",
    "dof_pos_limits": "joint_pos_limits",
}
READ: dict[str, Callable[[Any], Any]] = {
    name: attrgetter(f"robot.{ours}") for name, ours in ROBOT.items()
}
READ |= {
    "dof_acc": attrgetter("sim.joint_acc"),
    "last_feet_vel": attrgetter("last_feet_vel"),
    "base_euler": _euler,
}
READ |= {
    "default_dof_pos": lambda c: c.robot.default_joint_pos[None],
    "reset_idx": attrgetter("events.reset"),
}
READ |= {
    "base_quat": lambda c: c.robot.root_quat_w.roll(-1, 1),
    "post_physics_step": lambda c: c.programs["robot"],
}
READ |= {
    "reset_dofs": attrgetter("sim.write_joint_state"),
    "dof_names": lambda c: [*c.sim.robot.joint_names],
}
READ |= {name: attrgetter(name) for name in ("custom_origins", "measured_heights", *ORIGINS)}
READ |= {
    "_terrain": attrgetter("terrain"),
    "update_terrain_curriculum": attrgetter("update_env_origins"),
}
READ |= {"base_init_quat": lambda c: torch.tensor((0.0, 0.0, 0.0, 1.0), device=c.device)}
FEET, ZERO = (
    ("feet_indices", "feet_contact_indices"),
    ("_joint_armature", "_joint_friction", "_joint_damping"),
)
READ |= dict.fromkeys(
    FEET, lambda c: torch.arange(len(c.sim.body_names), device=c.device)[c.robot.feet]
)
READ |= dict.fromkeys(ZERO, lambda c: torch.zeros(c.num_envs, 1, device=c.device))
READ |= {
    "_friction_values": observations.friction,
    "_rand_push_vels": observations.last_push_velocity,
}
READ |= {
    "_added_base_mass": observations.base_mass_offset,
    "_base_com_bias": observations.base_com_offset,
}
READ |= {"_kp_scale": lambda c: c.sim.get_parameter("kp") / c.sim.default_parameter("kp")}
READ |= {"_kd_scale": lambda c: c.sim.get_parameter("kd") / c.sim.default_parameter("kd")}
"""Attributes of ``simulator``, of the core. Four of them are methods: ``reset_idx(env_ids)`` randomises robots anew,
``reset_dofs(env_ids, dof_pos, dof_vel)`` places their joints, ``post_physics_step()`` derives what is known of them,
and ``update_terrain_curriculum(env_ids, move_up, move_down)`` changes their levels."""


class Simulator:
    """The robots in LeggedGym-Ex's words: base velocities in the base frame, quaternions (x, y, z, w)."""

    def __init__(self, core: RobotCore):
        self.core = core

    def update_sensors(self) -> None:
        """There are no sensors yet."""

    def reset_root_states(
        self, env_ids: Tensor, pos: Tensor, quat: Tensor, lin_vel: Tensor, ang_vel: Tensor
    ) -> None:
        """Place the bases: positions, (x, y, z, w), velocities in the world frame."""
        turn = rotation.rotate_inverse(quat.roll(1, 1), ang_vel[:, None])[:, 0]
        self.core.sim.write_root_state(env_ids, pos, quat.roll(1, 1), lin_vel, turn)


for _name, _read in READ.items():
    setattr(Simulator, _name, property(lambda self, read=_read: read(self.core)))  # type: ignore[misc]
