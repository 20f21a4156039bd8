"""How well a policy imitates reference motions, from times in them that it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium as gym
import torch
from rich import box
from rich.console import Console
from rich.table import Table

from legged_envs.envs import unwrap
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.mdp.motion_command import MotionCommandCfg, motion_command
from legged_envs.motions.report import STANDING_HEIGHT
from legged_envs.rl.evaluate import EVALUATION_SEED, evaluation_cfg, print_costs
from legged_envs.rl.mimic_config import ACTOR_GROUPS
from legged_envs.tasks.mimic import imitating

SECONDS = 10.0
LONGEST_LAG = 0.5
"""How far the contacts of robot and reference are shifted against each other to compare their styles, s."""

MimicPolicy = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(observation, reference, mask) → action."""


@dataclass
class ClipEvaluation:
    """Means over time, then over the episodes of one clip. A robot that fell or lost it counts until then."""

    joint_error: float
    """Mean over joints of |q − q̂|, rad."""
    lin_vel_error: float
    """‖v − v̂‖ of the base in its frame, m/s."""
    ang_vel_error: float
    """‖ω − ω̂‖ of the base in its frame, rad/s."""
    height_error: float
    """|z − ẑ| of the base, m."""
    key_error: float
    """Mean distance of the key bodies from their targets in the base frame, m."""
    contact_agreement: float
    """Fraction of time and feet for which robot and reference agree whether a foot stands."""
    style_agreement: float
    """The same with the reference shifted in time, by up to half a second per episode, to where it fits best."""
    tracking: float
    """The rewards for imitation, those called ``reference_…``, as a part of what perfect imitation earns."""
    falls: float
    """Fraction of the episodes that ended early."""


@dataclass
class MimicEvaluation:
    """An evaluation of a policy on a mimic task."""

    episodes: int
    """Per clip."""
    clips: dict[str, ClipEvaluation]
    command: dict[str, float]
    """Without a reference: mean ‖v_xy − c_xy‖ [m/s] and |ω_z − c_ω| [rad/s] after the first second, and falls."""
    costs: dict[str, float]
    """Mean of each cost per step over the clips."""
    cost_limits: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def mean(self, field: str) -> float:
        """Mean of a field of :class:`ClipEvaluation` over the clips."""
        return sum(getattr(clip, field) for clip in self.clips.values()) / len(self.clips)


class MimicEvaluator:
    """Holds the evaluation environment of a mimic task, randomised and noisy as in training, without pushes.

    Args:
        task_id: Registered id.
        cfg: The task.
        clips: Names of the clips to imitate, by default those of the task.
        episodes: Per clip, and without a reference.
        policy_groups: The observation groups that the policy takes.
    """

    def __init__(
        self,
        task_id: str,
        cfg: TaskCfg,
        clips: Sequence[str] = (),
        episodes: int = 128,
        policy_groups: Sequence[str] = ACTOR_GROUPS,
    ):
        cfg = imitating(cfg, clips)
        self._groups = tuple(policy_groups)
        self._episodes = episodes
        command = cfg.commands["motion"]
        if not isinstance(command, MotionCommandCfg):
            raise TypeError(f"the command 'motion' of {task_id!r} must be a MotionCommandCfg, got {command!r}")
        motions = command.load(cfg.robot)
        self._env = gym.make_vec(
            task_id,
            num_envs=episodes * (len(motions) + 1),
            cfg=override(evaluation_cfg(cfg), {"commands.motion.reference_fraction": 0.0}),
            array="torch",
            observations="dict",
            autoreset_mode="Disabled",
            max_episode_steps=100_000,
        )
        self.core = unwrap(self._env)
        self.motion = motion_command(self.core.commands)
        rewards = self.core.rewards
        self._imitation = [i for i, name in enumerate(rewards.names) if name.startswith("reference_")]
        self._most = sum(rewards.weights[i] for i in self._imitation) * self.core.step_dt
        self._feet = self.motion.player.library.body_ids(*cfg.robot.foot_names)

    def run(self, policy: MimicPolicy, seed: int = EVALUATION_SEED) -> MimicEvaluation:
        """Evaluate ``policy``."""
        return self.run_with_curves(policy, seed)[0]

    def run_with_curves(
        self, policy: MimicPolicy, seed: int = EVALUATION_SEED
    ) -> tuple[MimicEvaluation, dict[str, dict[str, torch.Tensor]]]:
        """Evaluate ``policy``. Also returns, per clip, ``phase``, ``joint_error`` and ``lin_vel_error``.

        Shape of those: (steps, episodes), NaN after a robot fell.
        """
        core, names, n = self.core, self.motion.player.library.names, self._episodes
        clip = torch.arange(len(names) + 1).repeat_interleave(n)
        referenced = clip < len(names)
        self.motion.hold(self._starts(clip.clamp(max=len(names) - 1), seed))
        self.motion.withhold(~referenced)
        observation, _ = self._env.reset(seed=seed)
        upright = torch.ones(core.num_envs, dtype=torch.bool)
        rows: dict[str, list[torch.Tensor]] = {}
        alive, stands, should_stand = [], [], []
        earned = core.rewards.episode_sums[:, self._imitation].sum(1)
        for _ in range(round(SECONDS / core.step_dt)):
            targets = {name: getattr(self.motion, name) for name in self.motion.tensors}
            time = self.motion.player.time + core.step_dt
            phase = self.motion.player.phase
            action = policy(*(observation[name] for name in self._groups))
            observation, _, terminated, _, info = self._env.step(action)
            upright &= ~terminated
            alive.append(upright.clone())
            stands.append(core.robot.foot_contact.clone())
            feet = self.motion.player.library.sample_bodies(self.motion.player.clip, time, self._feet).pos_w[..., 2]
            should_stand.append(feet < core.cfg.robot.foot_radius + STANDING_HEIGHT)
            for name, value in self._measure(targets, info).items():
                rows.setdefault(name, []).append(value)
            rows.setdefault("phase", []).append(phase)
            before, earned = earned, core.rewards.episode_sums[:, self._imitation].sum(1)
            rows.setdefault("tracking", []).append((earned - before) / self._most)
        self.motion.release()
        values = {name: torch.stack(steps) for name, steps in rows.items()}
        counted = torch.stack(alive)
        agreement, style = _agreement(torch.stack(stands), torch.stack(should_stand), counted, core.step_dt)
        means = {name: _mean(value, counted) for name, value in values.items()}
        means |= {"contact_agreement": agreement, "style_agreement": style, "falls": (~upright).float()}
        fields = ClipEvaluation.__dataclass_fields__
        clips = {
            name: ClipEvaluation(**{field: means[field][clip == i].nanmean().item() for field in fields})
            for i, name in enumerate(names)
        }
        settled = counted.clone()
        settled[: round(1.0 / core.step_dt)] = False
        command = {
            name: _mean(values[name], settled)[~referenced].nanmean().item()
            for name in ("command_lin_vel_error", "command_ang_vel_error")
        }
        costs = means["costs"][referenced].nanmean(0).tolist()
        result = MimicEvaluation(
            episodes=n,
            clips=clips,
            command={**command, "falls": means["falls"][~referenced].mean().item()},
            costs=dict(zip(core.cost_names, costs, strict=True)),
            cost_limits=dict(zip(core.cost_names, core.cost_limits, strict=True)),
        )
        curves = {
            name: {
                field: torch.where(counted, values[field], torch.nan)[:, clip == i]
                for field in ("phase", "joint_error", "lin_vel_error")
            }
            for i, name in enumerate(names)
        }
        return result, curves

    def _starts(self, clips: torch.Tensor, seed: int) -> torch.Tensor:
        """Where each episode starts: (clip, time), the time uniform in the clip."""
        generator = torch.Generator().manual_seed(seed)
        share = torch.rand(len(clips), generator=generator, dtype=torch.float64)
        return torch.stack((clips.double(), share * self.motion.player.library.duration.cpu()[clips]), dim=1)

    def _measure(self, target: dict[str, torch.Tensor], info: dict[str, Any]) -> dict[str, torch.Tensor]:
        robot, command = self.core.robot, self.core.commands["velocity"]
        return {
            "joint_error": (robot.joint_pos - target["target_joint_pos"]).abs().mean(1),
            "lin_vel_error": (robot.lin_vel_b - target["target_lin_vel_b"]).norm(dim=1),
            "ang_vel_error": (robot.ang_vel_b - target["target_ang_vel_b"]).norm(dim=1),
            "height_error": (robot.root_pos_w[:, 2] - target["window_root_pos_w"][:, 0, 2]).abs(),
            "key_error": (robot.bodies(self.motion.key_bodies).pos_b - target["target_key_pos_b"]).norm(dim=2).mean(1),
            "command_lin_vel_error": (command[:, :2] - robot.lin_vel_b[:, :2]).norm(dim=1),
            "command_ang_vel_error": (command[:, 2] - robot.ang_vel_b[:, 2]).abs(),
            "costs": info["costs"],
        }

    def close(self) -> None:
        self._env.close()


def _mean(values: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Mean over the steps that count, NaN where none does. Shapes: (steps, n, …), (steps, n) → (n, …)."""
    weight = counted.reshape(*counted.shape, *[1] * (values.ndim - 2)).to(values.dtype)
    return (values.nan_to_num() * weight).sum(0) / weight.sum(0)


def _agreement(
    stands: torch.Tensor, should: torch.Tensor, counted: torch.Tensor, step_dt: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Agreement of contacts (steps, n, feet) in phase, and at each episode's best lag. Shapes: (n,), (n,)."""
    lags = range(-round(LONGEST_LAG / step_dt), round(LONGEST_LAG / step_dt) + 1)
    steps = len(stands)
    agreements = {}
    for lag in lags:
        robot = slice(max(lag, 0), steps + min(lag, 0))
        reference = slice(max(-lag, 0), steps + min(-lag, 0))
        agrees = (stands[robot] == should[reference]).float().mean(2)
        compared = 2 * counted[robot].sum(0) >= counted.sum(0)  # few steps agree by chance
        agreements[lag] = _mean(agrees, counted[robot]).where(compared, torch.nan)
    return agreements[0], torch.stack(list(agreements.values())).nan_to_num().amax(0)


def print_mimic_evaluation(result: MimicEvaluation, console: Console) -> None:
    """Print an evaluation as tables."""
    title = f"{result.episodes} episodes of {SECONDS:g} s per clip, from random times in it"
    table = Table(title=title, box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    columns = {
        "joint_error": "joint\nrad",
        "lin_vel_error": "speed\nm/s",
        "ang_vel_error": "turn\nrad/s",
        "height_error": "z\nm",
        "key_error": "body\nm",
        "contact_agreement": "feet",
        "style_agreement": "style",
        "tracking": "reward",
        "falls": "falls",
    }
    table.add_column("clip", no_wrap=True)
    for title in columns.values():
        table.add_column(title, justify="right")
    for name, clip in result.clips.items():
        cells = [(field, getattr(clip, field)) for field in columns]
        percent = ("contact_agreement", "style_agreement", "tracking", "falls")
        table.add_row(name, *(f"{value:.1%}" if field in percent else f"{value:.3f}" for field, value in cells))
    console.print(table)
    command = result.command
    console.print(
        f"without a reference: {command['command_lin_vel_error']:.3f} m/s and "
        f"{command['command_ang_vel_error']:.3f} rad/s from the command, {command['falls']:.1%} falls"
    )
    print_costs(result.costs, result.cost_limits, console)
