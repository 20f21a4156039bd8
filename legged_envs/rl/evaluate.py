"""How well a policy walks, on episodes that it was not trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium as gym
import torch
from rich.console import Console
from rich.table import Table

from legged_envs.envs import unwrap
from legged_envs.envs.cfg import TaskCfg, override

EVALUATION_SEED = 90_001
"""Training takes small seeds; no stream of this one is ever trained on."""
COMMAND_RANGES = {"lin_vel_x": (-1.0, 1.0), "lin_vel_y": (-0.5, 0.5), "ang_vel_z": (-1.0, 1.0)}
"""Commands of an evaluation, m/s and rad/s, as far as the task has them too."""
SECONDS = 10.0
SETTLING_SECONDS = 1.0


@dataclass
class Evaluation:
    """Means over time after the first second, then over episodes. A robot that fell counts until it fell."""

    episodes: int
    commands: dict[str, tuple[float, float]]
    """Ranges of the velocity command, m/s and rad/s."""
    lin_vel_error: float
    """‖v_xy − c_xy‖, m/s."""
    ang_vel_error: float
    """|ω_z − c_ω|, rad/s."""
    falls: float
    """Fraction of the episodes that ended early."""
    base_height: float
    """m."""
    tilt: float
    """rad."""
    duty_factor: float
    """Fraction of the time that a foot stands."""
    diagonal_agreement: float
    """Fraction of the time that both feet of a diagonal do the same (two feet: that one of them swings)."""
    swing_height: float
    """Greatest height of a foot in its swings, mean over swings, m."""
    swing_time: float
    """s."""
    torque_rms: float
    """N·m."""
    power: float
    """Σ |τ q̇|, W."""
    still_joint_speed: float
    """Mean |q̇| with the command zero, rad/s: drumming shows here."""
    still_contact: float
    """Fraction of the time that a foot stands with the command zero."""
    costs: dict[str, float]
    """Mean of each cost per step."""
    cost_limits: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def walks(self, lin_vel_error: float, ang_vel_error: float, falls: float) -> bool:
        """Whether all three are at most the given values."""
        return self.lin_vel_error <= lin_vel_error and self.ang_vel_error <= ang_vel_error and self.falls <= falls


def command_ranges(cfg: TaskCfg) -> dict[str, tuple[float, float]]:
    """What ``COMMAND_RANGES`` and the task's own ranges have in common; the task's own where that is nothing."""
    ranges = {}
    for name, (low, high) in COMMAND_RANGES.items():
        own_low, own_high = getattr(cfg.commands["velocity"], name)
        common = max(low, own_low), min(high, own_high)
        ranges[name] = common if common[0] <= common[1] else (own_low, own_high)
    return ranges


def evaluation_cfg(cfg: TaskCfg) -> TaskCfg:
    """The task as it is evaluated: randomised and noisy as in training, no pushes, one command an episode."""
    changes: dict[str, Any] = {f"commands.velocity.{name}": value for name, value in command_ranges(cfg).items()}
    changes |= {"commands.velocity.standing_fraction": 0.0, "commands.velocity.resampling_time_s": (1e6, 1e6)}
    cfg = override(cfg, changes)
    cfg.events.pop("push", None)
    return cfg


class Evaluator:
    """Holds the evaluation environment of a task, on the physics engine ``sim``, to evaluate policies one by one."""

    def __init__(self, task_id: str, cfg: TaskCfg, episodes: int = 256, sim: str = "mujoco"):
        self._env = gym.make_vec(
            task_id,
            num_envs=episodes,
            cfg=evaluation_cfg(cfg),
            sim=sim,
            array="torch",
            observations="dict",
            autoreset_mode="Disabled",
            max_episode_steps=100_000,
        )
        self.core = unwrap(self._env)

    def run(
        self, policy: Callable[[torch.Tensor], torch.Tensor], still: bool = True, seed: int = EVALUATION_SEED
    ) -> Evaluation:
        """Evaluate ``policy``: observations of the group ``policy`` → actions. ``still`` adds the zero command."""
        walking = self._rollout(policy, seed, still=False)
        standing = self._rollout(policy, seed, still=True) if still else walking
        return Evaluation(
            episodes=self.core.num_envs,
            commands=command_ranges(self.core.cfg),
            **{key: value for key, value in walking.items() if key not in ("joint_speed", "contact")},
            still_joint_speed=standing["joint_speed"] if still else float("nan"),
            still_contact=standing["contact"] if still else float("nan"),
        )

    def _rollout(self, policy: Callable[[torch.Tensor], torch.Tensor], seed: int, still: bool) -> dict[str, Any]:
        env, core = self._env, self.core
        robot, n = core.robot, core.num_envs
        observation, _ = env.reset(seed=seed)
        if still:
            core.commands.hold("velocity", torch.zeros(3))
            observation["policy"][:, :3] = 0.0
        sums: dict[str, torch.Tensor] = {}
        upright = torch.ones(n, dtype=torch.bool)
        counted = torch.zeros(n)
        peak = torch.zeros(n, len(core.cfg.robot.foot_names))
        swings = torch.zeros(3)
        settling, steps = round(SETTLING_SECONDS / core.step_dt), round(SECONDS / core.step_dt)
        for step in range(steps):
            observation, _, terminated, _, info = env.step(policy(observation["policy"]))
            upright &= ~terminated
            height = robot.foot_pos_w[..., 2] - core.cfg.robot.foot_radius
            landed = robot.foot_landed & upright[:, None]
            if step >= settling:
                swings += torch.stack((landed.sum(), (peak * landed).sum(), (robot.foot_air_time * landed).sum()))
                counted += upright
                for name, value in self._measure(info).items():
                    sums[name] = sums.get(name, 0.0) + value * (upright if value.ndim == 1 else upright[:, None])
            peak = torch.where(robot.foot_contact, torch.zeros_like(peak), torch.maximum(peak, height))
        valid = counted > 0
        means = {
            name: (value[valid] / counted[valid].reshape(-1, *[1] * (value.ndim - 1))).mean(0)
            for name, value in sums.items()
        }
        costs = means.pop("costs").tolist()
        return {
            **{name: value.item() for name, value in means.items()},
            "torque_rms": means["torque_rms"].sqrt().item(),
            "falls": 1.0 - upright.float().mean().item(),
            "swing_height": (swings[1] / swings[0].clamp(min=1)).item(),
            "swing_time": (swings[2] / swings[0].clamp(min=1)).item(),
            "costs": dict(zip(core.cost_names, costs, strict=True)),
            "cost_limits": dict(zip(core.cost_names, core.cost_limits, strict=True)),
        }

    def _measure(self, info: dict[str, Any]) -> dict[str, torch.Tensor]:
        robot = self.core.robot
        command = self.core.commands["velocity"]
        contact = robot.foot_contact
        if contact.shape[1] == 4:
            agreement = ((contact[:, 0] == contact[:, 3]).float() + (contact[:, 1] == contact[:, 2]).float()) / 2
        else:
            agreement = (contact[:, 0] != contact[:, 1]).float()
        return {
            "lin_vel_error": (command[:, :2] - robot.lin_vel_b[:, :2]).norm(dim=1),
            "ang_vel_error": (command[:, 2] - robot.ang_vel_b[:, 2]).abs(),
            "base_height": robot.root_pos_w[:, 2],
            "tilt": torch.acos((-robot.projected_gravity[:, 2]).clamp(-1.0, 1.0)),
            "duty_factor": contact.float().mean(1),
            "contact": contact.float().mean(1),
            "diagonal_agreement": agreement,
            "torque_rms": robot.joint_torque.square().mean(1),
            "power": (robot.joint_torque * robot.joint_vel).abs().sum(1),
            "joint_speed": robot.joint_vel.abs().mean(1),
            "costs": info["costs"],
        }

    def close(self) -> None:
        self._env.close()


def print_evaluation(result: Evaluation, console: Console) -> None:
    """Print an evaluation as two tables."""
    ranges = ", ".join(f"{name} in [{low:g}, {high:g}]" for name, (low, high) in result.commands.items())
    console.print(f"{result.episodes} episodes of {SECONDS:g} s; commands: {ranges}")
    table = Table()
    table.add_column("quantity")
    table.add_column("mean", justify="right")
    units = {
        "lin_vel_error": "m/s",
        "ang_vel_error": "rad/s",
        "falls": "",
        "base_height": "m",
        "tilt": "rad",
        "duty_factor": "",
        "diagonal_agreement": "",
        "swing_height": "m",
        "swing_time": "s",
        "torque_rms": "N·m",
        "power": "W",
        "still_joint_speed": "rad/s",
        "still_contact": "",
    }
    for name, unit in units.items():
        value = getattr(result, name)
        table.add_row(name.replace("_", " "), f"{value:.1%}" if not unit else f"{value:.3f} {unit}")
    console.print(table)
    print_costs(result.costs, result.cost_limits, console)


def print_costs(costs: dict[str, float], limits: dict[str, float], console: Console) -> None:
    """Print each cost beside its limit."""
    table = Table(title="costs per step")
    for column in ("cost", "mean", "limit"):
        table.add_column(column, justify="left" if column == "cost" else "right")
    for name, value in costs.items():
        table.add_row(name, f"{value:.4f}", f"{limits[name]:g}")
    console.print(table)
