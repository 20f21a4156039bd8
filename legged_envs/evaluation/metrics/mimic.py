"""How well a robot imitates reference motions, from times in them that it was not trained on."""

import copy
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any, ClassVar, get_type_hints

import torch
from gymnasium.vector import VectorEnv
from rich import box
from rich.console import Console
from rich.table import Column, Table

from legged_envs.envs import LeggedVectorEnv
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.evaluation.conditions import command_errors, mean_over_steps, print_costs, settled
from legged_envs.evaluation.metrics.task import TaskMetrics
from legged_envs.mdp import rewards
from legged_envs.mdp.motion_command import MotionCommand, motion_command
from legged_envs.motions.report import STANDING_HEIGHT
from legged_envs.tasks.mimic import ACTOR_GROUPS, motion_cfg

LONGEST_LAG = 0.5
"""How far the contacts of robot and reference are shifted against each other to compare their styles, s."""
IMITATION = (
    rewards.reference_joint_pos,
    rewards.reference_joint_vel,
    rewards.reference_root_pose,
    rewards.reference_root_vel,
    rewards.reference_key_pos,
)
"""Rewards for imitation, each of which is at most its weight."""
CURVES = ("phase", "joint_error", "lin_vel_error")


def motion_of(core: LeggedVectorEnv) -> MotionCommand:
    """The motion command of an environment; ValueError if it has none."""
    return motion_command(core.commands, motion_cfg(core.cfg)[0])


@dataclass
class ClipEvaluation:
    """Means over time, then over the episodes of a clip, of a robot until it falls or loses it; with column heads."""

    joint_error: Annotated[float, "joint\nrad", ".3f"]
    """Mean over joints of |q − q̂|, rad."""
    lin_vel_error: Annotated[float, "speed\nm/s", ".3f"]
    ang_vel_error: Annotated[float, "turn\nrad/s", ".3f"]
    """‖v − v̂‖, m/s, and ‖ω − ω̂‖, rad/s, of the base in its frame."""
    height_error: Annotated[float, "z\nm", ".3f"]
    key_error: Annotated[float, "body\nm", ".3f"]
    """|z − ẑ| of the base, and mean distance of the key bodies from their targets in the base frame, m."""
    contact_agreement: Annotated[float, "feet", ".1%"]
    style_agreement: Annotated[float, "style", ".1%"]
    """Part of time and feet in which robot and reference agree on contact, and that at each episode's best lag."""
    tracking: Annotated[float, "reward", ".1%"]
    """The rewards of :data:`IMITATION` as a part of what perfect imitation earns; NaN without them."""
    falls: Annotated[float, "falls", ".1%"]
    """Fraction of the episodes that ended early."""


@dataclass
class MimicEvaluation:
    """How well a policy imitates each clip, and how it follows velocity commands without a reference."""

    episodes: int
    """Episodes of each clip, and as many without a reference."""
    clips: dict[str, ClipEvaluation]
    command: dict[str, float]
    """Without a reference: mean ‖v_xy − c_xy‖ [m/s] and |ω_z − c_ω| [rad/s] after the first second, and falls."""
    costs: dict[str, float]
    cost_limits: dict[str, float]
    """Mean of each cost per step over the clips, and what it may be."""
    curves: dict[str, dict[str, torch.Tensor]] = field(default_factory=dict, repr=False)
    """``phase``, ``joint_error`` and ``lin_vel_error`` of each clip. Shape: (steps, episodes), NaN after a fall."""

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, in dicts and numbers alone, without ``curves``."""
        return {name: value for name, value in asdict(self).items() if name != "curves"}

    def mean(self, field: str) -> float:
        """Mean over the clips of a field of :class:`ClipEvaluation`, in its unit; NaN if that of one clip is."""
        return sum(getattr(clip, field) for clip in self.clips.values()) / len(self.clips)

    def print(self, console: Console) -> None:
        """Print a table with a row for each clip, the errors without a reference, and a table of the costs."""
        title = f"{self.episodes} episodes per clip, from random times in it"
        shown = {
            name: hint.__metadata__
            for name, hint in get_type_hints(ClipEvaluation, include_extras=True).items()
        }
        columns = [
            Column("clip", no_wrap=True),
            *(Column(head, justify="right") for head, _ in shown.values()),
        ]
        table = Table(*columns, title=title, box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
        for name, clip in self.clips.items():
            table.add_row(
                name, *(format(getattr(clip, field), style) for field, (_, style) in shown.items())
            )
        console.print(table)
        command = self.command
        console.print(
            f"without a reference: {command['command_lin_vel_error']:.3f} m/s and "
            f"{command['command_ang_vel_error']:.3f} rad/s from the command, {command['falls']:.1%} falls"
        )
        print_costs(self.costs, self.cost_limits, console)


class MimicMetrics(TaskMetrics):
    """What is measured on a mimic task: ``episodes`` environments imitate each clip, and as many have no reference."""

    GROUPS: ClassVar[tuple[str, ...]] = ACTOR_GROUPS
    ERRORS: ClassVar[dict[str, str]] = {"joint_error": "rad", "lin_vel_error": "m/s"}

    def __init__(self, core: LeggedVectorEnv):
        super().__init__(core)
        self.motion = motion_of(core)
        library = self.motion.player.library
        self._feet = library.body_ids(*core.cfg.robot.foot_names)
        self._episodes = core.num_envs // (library.num_clips + 1)
        self._clip = torch.arange(library.num_clips + 1, device=core.device).repeat_interleave(
            self._episodes
        )
        """The clip of each environment; the last number stands for no reference. Shape: (num_envs,)."""
        rewarded = [core.cfg.rewards[name].func for name in core.rewards.names]
        self._imitation = [i for i, term in enumerate(rewarded) if term in IMITATION]

    @staticmethod
    def training_errors(core: LeggedVectorEnv) -> dict[str, float]:
        """Means over the robots with a reference. It has moved on: the errors are those to one step ahead."""
        motion = motion_of(core)
        errors = _tracking_errors(core, motion)
        count = motion.available.sum().clamp(min=1.0)
        return {
            name: ((error * motion.available).sum() / count).item()
            for name, error in errors.items()
        }

    @staticmethod
    def task(cfg: TaskCfg, episodes: int) -> tuple[TaskCfg, int]:
        name, command = motion_cfg(cfg)
        num_envs = episodes * (len(command.load(cfg.robot)) + 1)
        return override(cfg, {f"commands.{name}.reference_fraction": 0.0}), num_envs

    def start(self, envs: VectorEnv, seed: int, still: bool) -> dict[str, torch.Tensor]:
        """Start each episode at a time drawn uniformly in its clip; returns the first observation, (num_envs, …)."""
        library = self.motion.player.library
        clips = self._clip.clamp(max=library.num_clips - 1)
        share = torch.rand(
            len(clips), generator=torch.Generator().manual_seed(seed), dtype=torch.float64
        )
        self.motion.pin(clips, share.to(library.duration.device) * library.duration[clips])
        self.motion.withhold(self._clip == library.num_clips)
        observation = super().start(envs, seed, still)
        self.motion.release()
        self._look_ahead()
        return observation

    def _look_ahead(self) -> None:
        """Note where the robots should be after the next step, and where in the clip they are before it."""
        self._target, self._phase = copy.copy(self.motion), self.motion.player.phase

    def measures(self, info: dict[str, Any]) -> dict[str, torch.Tensor]:
        core, robot, target, player = self._core, self._core.robot, self._target, self.motion.player
        feet = player.library.sample_bodies(player.clip, player.time, self._feet).pos_w[..., 2]
        values = {
            **_tracking_errors(core, target),
            "ang_vel_error": (robot.ang_vel_b - target.target_ang_vel_b).norm(dim=1),
            "height_error": (robot.base_height - target.window_root_pos_w[:, 0, 2]).abs(),
            "key_error": (robot.bodies(target.key_bodies).pos_b - target.target_key_pos_b)
            .norm(dim=2)
            .mean(1),
            **{f"command_{name}": error for name, error in command_errors(core).items()},
            "costs": info["costs"],
            "stands": robot.foot_contact,
            "should_stand": feet < core.cfg.robot.foot_radius + STANDING_HEIGHT,
            "phase": self._phase,
            "earned": core.rewards.episode_sums[:, self._imitation].sum(1),
        }
        self._look_ahead()
        return values

    def result(
        self, values: dict[str, torch.Tensor], alive: torch.Tensor, still: Any = None
    ) -> MimicEvaluation:
        core, names = self._core, self.motion.player.library.names
        referenced = self._clip < len(names)
        following = settled(alive, core.step_dt)
        command = {
            name: mean_over_steps(values[name], following)
            for name in values
            if name.startswith("command_")
        }
        values["earned"] = values["earned"].diff(
            dim=0, prepend=torch.zeros_like(values["earned"][:1])
        )
        means = {name: mean_over_steps(value, alive) for name, value in values.items()}
        agreement = contact_agreement(values["stands"], values["should_stand"], alive, core.step_dt)
        means["contact_agreement"], means["style_agreement"] = agreement
        perfect = sum(core.rewards.weights[i] for i in self._imitation) * core.step_dt
        means["tracking"] = means["earned"] / (perfect or torch.nan)
        means["falls"] = command["falls"] = (~alive[-1]).float()
        clips, curves = {}, {}
        for i, name in enumerate(names):
            rows = self._clip == i
            of_clip = {
                field.name: means[field.name][rows].nanmean().item()
                for field in fields(ClipEvaluation)
            }
            clips[name] = ClipEvaluation(**of_clip)
            curves[name] = {
                curve: torch.where(alive, values[curve], torch.nan)[:, rows] for curve in CURVES
            }
        return MimicEvaluation(
            episodes=self._episodes,
            clips=clips,
            command={name: value[~referenced].nanmean().item() for name, value in command.items()},
            costs=dict(
                zip(core.cost_names, means["costs"][referenced].nanmean(0).tolist(), strict=True)
            ),
            cost_limits=dict(zip(core.cost_names, core.cost_limits, strict=True)),
            curves=curves,
        )


def _tracking_errors(core: LeggedVectorEnv, target: MotionCommand) -> dict[str, torch.Tensor]:
    return {
        "joint_error": (core.robot.joint_pos - target.target_joint_pos).abs().mean(1),
        "lin_vel_error": (core.robot.lin_vel_b - target.target_lin_vel_b).norm(dim=1),
    }


def contact_agreement(
    stands: torch.Tensor, should: torch.Tensor, counted: torch.Tensor, step_dt: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Agreement of contacts (steps, n, feet) in phase, and at each episode's best lag. Shapes: (n,), (n,)."""
    steps, longest, agreements = len(stands), round(LONGEST_LAG / step_dt), {}
    for lag in range(-longest, longest + 1):
        robot = slice(max(lag, 0), steps + min(lag, 0))
        reference = slice(max(-lag, 0), steps + min(-lag, 0))
        agrees = (stands[robot] == should[reference]).float().mean(2)
        compared = 2 * counted[robot].sum(0) >= counted.sum(0)  # few steps agree by chance
        agreements[lag] = mean_over_steps(agrees, counted[robot]).where(compared, torch.nan)
    return agreements[0], torch.stack(list(agreements.values())).nan_to_num().amax(0)
