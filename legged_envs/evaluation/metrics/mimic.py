"""Metrics of a mimic task: accuracy with which a robot imitates reference motions (clips)."""

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from gymnasium.vector import VectorEnv
from rich import box
from rich.console import Console
from rich.table import Column, Table

from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.evaluation.conditions import (
    after_settling,
    command_errors,
    format_measure,
    mean_over_steps,
    print_why_unmeasured,
)
from legged_envs.evaluation.metrics.costs import CostResults, until_the_end
from legged_envs.evaluation.metrics.task import Measures, Rollout, TaskMetrics
from legged_envs.mdp import rewards
from legged_envs.mdp.motion_command import MotionCommand, motion_command
from legged_envs.motions.report import STANDING_HEIGHT
from legged_envs.tasks.mimic import ACTOR_GROUPS, motion_cfg

LONGEST_LAG = 0.5
"""Largest time shift between foot contacts of robot and reference in `style_agreement`, s."""

IMITATION_REWARDS = (
    rewards.reference_joint_pos,
    rewards.reference_joint_vel,
    rewards.reference_root_pose,
    rewards.reference_root_vel,
    rewards.reference_key_pos,
    rewards.reference_foot_height,
)
"""Reward terms for imitation. The value of each is at most 1, so it earns at most its weight."""

CURVES = ("phase", "joint_error", "lin_vel_error")
"""Names of the measures that an evaluation keeps for each step, to plot them."""


class ClipColumn(NamedTuple):
    """Title and number format of a column in the printed table of clips."""

    head: str
    """Title of the column, with the unit in a second line."""
    style: str
    """Format specification of the numbers, such as ".3f"."""


CLIP_COLUMNS: dict[str, ClipColumn] = {
    "joint_error": ClipColumn("joint\nrad", ".3f"),
    "lin_vel_error": ClipColumn("speed\nm/s", ".3f"),
    "ang_vel_error": ClipColumn("turn\nrad/s", ".3f"),
    "height_error": ClipColumn("z\nm", ".3f"),
    "key_error": ClipColumn("body\nm", ".3f"),
    "contact_agreement": ClipColumn("feet", ".1%"),
    "style_agreement": ClipColumn("style", ".1%"),
    "tracking": ClipColumn("reward", ".1%"),
    "falls": ClipColumn("falls", ".1%"),
}
"""Columns of the printed table of clips, by the field of `ClipEvaluation` that they show."""


def motion_of(core: CoreVectorEnv) -> MotionCommand:
    """Return the motion command of an environment, which holds the reference of each robot.

    Raises:
        ValueError: If the task has no motion command.
    """
    name, _ = motion_cfg(core.cfg)
    return motion_command(core.commands, name)


@dataclass
class ClipEvaluation:
    """Result of the evaluation of a policy on one reference clip.

    Values are means over the steps until the robot falls or loses the reference, then over
    episodes. A hat marks the reference, such as q̂.
    """

    joint_error: float
    """Error of the joint positions, mean over joints of |q − q̂|, rad."""
    lin_vel_error: float
    """Error of the base velocity ‖v − v̂‖ in the base frame, m/s."""
    ang_vel_error: float
    """Error of the base's angular velocity ‖ω − ω̂‖ in the base frame, rad/s."""
    height_error: float
    """Error of the base height |z − ẑ|, m."""
    key_error: float
    """Distance of the key bodies from their reference positions in the base frame, mean over
    bodies, m."""
    contact_agreement: float
    """Fraction of steps and feet in which robot and reference both stand on a foot, or both lift
    it."""
    style_agreement: float
    """`contact_agreement` with the contacts of each episode shifted in time by the lag, at most
    `LONGEST_LAG`, with the best agreement. It ignores that a robot is early or late."""
    tracking: float
    """Imitation rewards, as a fraction of the rewards of perfect imitation. NaN if the task has no
    imitation rewards."""
    falls: float
    """Fraction of the episodes in which the robot fell or lost the reference."""


@dataclass
class MimicEvaluation(CostResults):
    """Result of the evaluation of a policy on a mimic task.

    It covers each clip. If the task has episodes without a reference, in which robots follow
    velocity commands, it covers these too. Costs are measured in the episodes with a reference.
    """

    episodes: int
    """Number of episodes per clip, and number of episodes without a reference if there are any."""
    clips: dict[str, ClipEvaluation]
    """Result of each clip, by the name of the clip."""
    command: dict[str, float] | None
    """Episodes without a reference: errors of the command after the first second, and falls.

    The keys are `command_lin_vel_error` [m/s], `command_ang_vel_error` [rad/s] and `falls`. None if
    all episodes of the task have a reference.
    """
    curves: dict[str, Measures] = field(default_factory=dict, repr=False)
    """Measures of each step, named in `CURVES`, by clip. Shapes: (steps, episodes). NaN after the
    robot falls or loses the reference."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, as dicts and numbers, without `curves`."""
        values = asdict(self)
        del values["curves"]
        return values

    def mean(self, field: str) -> float:
        """Return the mean over all clips of one field of `ClipEvaluation`.

        Args:
            field: Name of the field.

        Returns:
            The mean. NaN if the field is NaN for one of the clips.
        """
        return sum(getattr(clip, field) for clip in self.clips.values()) / len(self.clips)

    def print(self, console: Console) -> None:
        """Print a table of the clips, the errors without a reference, and a table of the costs."""
        columns = [Column("clip", no_wrap=True)]
        for column in CLIP_COLUMNS.values():
            columns.append(Column(column.head, justify="right"))
        table = Table(
            *columns,
            title=f"{self.episodes} episodes per clip, from random times in it",
            box=box.SIMPLE,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        for name, clip in self.clips.items():
            cells = []
            for quantity, column in CLIP_COLUMNS.items():
                cells.append(format_measure(getattr(clip, quantity), column.style))
            table.add_row(name, *cells)
        console.print(table)
        if self.command is not None:
            lin_vel_error = self.command["command_lin_vel_error"]
            ang_vel_error = self.command["command_ang_vel_error"]
            console.print(
                f"without a reference: {format_measure(lin_vel_error, '.3f')} m/s and "
                f"{format_measure(ang_vel_error, '.3f')} rad/s from the command, "
                f"{self.command['falls']:.1%} falls"
            )
            print_why_unmeasured([lin_vel_error], console)
        self.print_costs(console)


class MimicMetrics(TaskMetrics):
    """Metrics of a mimic task.

    The environments are divided equally among the clips and, if the task has such episodes, the
    case without a reference. Episodes start at random times in their clips.

    Args:
        core: Environment of the evaluation.
    """

    GROUPS: ClassVar[tuple[str, ...]] = ACTOR_GROUPS
    ERRORS: ClassVar[dict[str, str]] = {"joint_error": "rad", "lin_vel_error": "m/s"}

    def __init__(self, core: CoreVectorEnv):
        super().__init__(core)
        self.motion = motion_of(core)
        """Motion command of the environment, which holds the reference of each robot."""
        library = self.motion.player.library
        # Contacts of the reference follow from the heights of its feet: clips have no forces.
        self._feet = library.body_ids(*core.cfg.robot.foot_names)
        num_groups = _num_groups(core.cfg, library.num_clips)
        self._episodes = core.num_envs // num_groups
        # The clip of each environment. The number of clips stands for no reference.
        clips = torch.arange(num_groups, device=core.device)
        self._clip = clips.repeat_interleave(self._episodes)
        # Columns of the reward terms that are for imitation.
        self._imitation: list[int] = []
        for i, name in enumerate(core.rewards.names):
            if core.cfg.rewards[name].func in IMITATION_REWARDS:
                self._imitation.append(i)

    @staticmethod
    def training_errors(core: CoreVectorEnv) -> dict[str, float]:
        """Return the current tracking errors, averaged over the robots that have a reference.

        After a step, the reference is already one control step ahead of the robot. The errors are
        relative to this next target, so they include the motion of one step. They are 0 if no robot
        has a reference.

        Args:
            core: Training environment, without wrappers.

        Returns:
            `joint_error`: mean over joints of |q − q̂|, rad. `lin_vel_error`: ‖v − v̂‖ of the base,
            m/s.
        """
        motion = motion_of(core)
        # At least 1: without any reference the errors are 0.
        count = motion.available.sum().clamp(min=1.0)
        means = {}
        for name, error in _tracking_errors(core, motion).items():
            means[name] = ((error * motion.available).sum() / count).item()
        return means

    @staticmethod
    def task(cfg: TaskCfg, episodes: int) -> tuple[TaskCfg, int]:
        name, command = motion_cfg(cfg)
        num_groups = _num_groups(cfg, len(command.load(cfg.robot)))
        changes = {}
        if command.reference_fraction < 1.0:
            # `start` gives references to all episodes of clips: none is drawn.
            changes[f"commands.{name}.reference_fraction"] = 0.0
        return override(cfg, changes), episodes * num_groups

    def start(self, envs: VectorEnv, seed: int, still: bool) -> dict[str, torch.Tensor]:
        """Start each episode at a time drawn uniformly in its clip.

        Returns:
            The first observation of each group. Shapes: (num_envs, size).
        """
        library = self.motion.player.library
        # Environments without a reference play a clip unseen.
        clips = self._clip.clamp(max=library.num_clips - 1)
        # The seed decides the times, whatever the environment has drawn before.
        generator = torch.Generator().manual_seed(seed)
        phase = torch.rand(len(clips), generator=generator, dtype=torch.float64)
        times = phase.to(library.duration.device) * library.duration[clips]
        self.motion.pin(clips, times)
        self.motion.withhold(self._clip == library.num_clips)
        observation = super().start(envs, seed, still)
        # Later resets draw their starts again.
        self.motion.release()
        self._look_ahead()
        return observation

    def _look_ahead(self) -> None:
        """Store the targets of the next step, and the current phase in the clip."""
        # The motion command replaces its tensors at a step: a shallow copy keeps these.
        self._target = copy.copy(self.motion)
        self._phase = self.motion.player.phase

    def measures(self, info: Mapping[str, Any]) -> Measures:
        core = self._core
        robot = core.robot
        target = self._target
        player = self.motion.player
        tracking = _tracking_errors(core, target)
        command = command_errors(core)
        key_error = robot.bodies(target.key_bodies).pos_b - target.target_key_pos_b
        foot_height = player.library.sample_bodies(player.clip, player.time, self._feet).pos_w[
            ..., 2
        ]
        # The reference is compared with where it should be after this step: `_look_ahead` kept it.
        values = {
            "joint_error": tracking["joint_error"],
            "lin_vel_error": tracking["lin_vel_error"],
            "ang_vel_error": (robot.ang_vel_b - target.target_ang_vel_b).norm(dim=1),
            "height_error": (robot.base_height - target.window_root_pos_w[:, 0, 2]).abs(),
            "key_error": key_error.norm(dim=2).mean(1),
            "command_lin_vel_error": command["lin_vel_error"],
            "command_ang_vel_error": command["ang_vel_error"],
            "costs": info["costs"],
            "stands": robot.foot_contact,
            "should_stand": foot_height < core.cfg.robot.foot_radius + STANDING_HEIGHT,
            "phase": self._phase,
            "earned": core.rewards.episode_sums[:, self._imitation].sum(1),
        }
        self._look_ahead()
        return values

    def result(
        self, values: Measures, alive: torch.Tensor, standing: Rollout | None = None
    ) -> MimicEvaluation:
        clips = {}
        curves = {}
        means = self._clip_means(values, alive)
        for i, name in enumerate(self.motion.player.library.names):
            rows = self._clip == i
            clips[name] = _clip_evaluation(means, rows)
            curves[name] = {
                curve: torch.where(alive, values[curve], torch.nan)[:, rows] for curve in CURVES
            }
        # Costs of the episodes without a reference would hide costs of the motions.
        has_reference = self._clip < len(clips)
        referenced = alive[:, has_reference]
        counted = until_the_end(referenced)
        costs = self._cost_results(values["costs"][:, has_reference], referenced, counted)
        command = None
        if not has_reference.all():
            command = self._command_means(values, alive, ~has_reference)
        return MimicEvaluation(
            episodes=self._episodes,
            clips=clips,
            command=command,
            curves=curves,
            **vars(costs),
        )

    def _clip_means(self, values: Measures, alive: torch.Tensor) -> Measures:
        """Return means over the time that counts. Shapes: (num_envs, …)."""
        core = self._core
        means = {name: mean_over_steps(value, alive) for name, value in values.items()}
        in_phase, at_best_lag = contact_agreement(
            values["stands"], values["should_stand"], alive, core.step_dt
        )
        means["contact_agreement"] = in_phase
        means["style_agreement"] = at_best_lag
        # The environment sums rewards over an episode; the differences are the rewards of each
        # step.
        earned = values["earned"]
        earned = earned.diff(dim=0, prepend=torch.zeros_like(earned[:1]))
        perfect = sum(core.rewards.weights[i] for i in self._imitation) * core.step_dt
        means["tracking"] = mean_over_steps(earned, alive) / (perfect or torch.nan)
        means["falls"] = (~alive[-1]).float()
        return means

    def _command_means(
        self, values: Measures, alive: torch.Tensor, rows: torch.Tensor
    ) -> dict[str, float]:
        """Return errors of the velocity command and falls in the environments `rows`."""
        counted = after_settling(alive, self._core.step_dt)
        means = {}
        for name in ("command_lin_vel_error", "command_ang_vel_error"):
            means[name] = mean_over_steps(values[name], counted)[rows].nanmean().item()
        means["falls"] = (~alive[-1]).float()[rows].nanmean().item()
        return means


def _num_groups(cfg: TaskCfg, num_clips: int) -> int:
    """Return the number of clips, plus 1 if the task has episodes without a reference."""
    _, command = motion_cfg(cfg)
    return num_clips if command.reference_fraction == 1.0 else num_clips + 1


def _clip_evaluation(means: Measures, rows: torch.Tensor) -> ClipEvaluation:
    of_clip = {name: means[name][rows].nanmean().item() for name in CLIP_COLUMNS}
    return ClipEvaluation(**of_clip)


def _tracking_errors(core: CoreVectorEnv, target: MotionCommand) -> Measures:
    return {
        "joint_error": (core.robot.joint_pos - target.target_joint_pos).abs().mean(1),
        "lin_vel_error": (core.robot.lin_vel_b - target.target_lin_vel_b).norm(dim=1),
    }


def contact_agreement(
    stands: torch.Tensor, should_stand: torch.Tensor, counted: torch.Tensor, step_dt: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compare the foot contacts of robot and reference.

    Args:
        stands: True for feet of the robot that are in contact. Shape: (steps, n, feet).
        should_stand: True for feet of the reference that are in contact. Shape: (steps, n, feet).
        counted: True for the steps to include. Shape: (steps, n).
        step_dt: Duration of a step, s.

    Returns:
        A pair. Fraction of counted steps and feet in which both agree. The same fraction with the
        contacts of each episode shifted by the lag with the best agreement. Shapes: (n,), (n,).
    """
    steps = len(stands)
    longest = round(LONGEST_LAG / step_dt)
    agreements = {}
    for lag in range(-longest, longest + 1):
        robot = slice(max(lag, 0), steps + min(lag, 0))
        reference = slice(max(-lag, 0), steps + min(-lag, 0))
        agrees = (stands[robot] == should_stand[reference]).float().mean(2)
        agreement = mean_over_steps(agrees, counted[robot])
        # Few steps agree by chance: at least half of them must be compared.
        compared = 2 * counted[robot].sum(0) >= counted.sum(0)
        agreements[lag] = agreement.where(compared, torch.nan)
    best = torch.stack(list(agreements.values())).nan_to_num().amax(0)
    return agreements[0], best
