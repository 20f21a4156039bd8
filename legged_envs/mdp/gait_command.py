"""The gait command: which gait a robot with four legs should use, and its style.

Source: Margolis and Agrawal 2022, "Walk These Ways: Tuning Robot Control for Generalization with
Multiplicity of Behavior" (https://arxiv.org/abs/2212.03238), with the numbers of its published code
(``walk-these-ways``, MIT).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from legged_envs.checks import check_choice, check_known, check_number, check_range
from legged_envs.configuration import Configuration
from legged_envs.mdp.commands import CommandTerm
from legged_envs.mdp.context import Average, Env
from legged_envs.mdp.timer import Timer
from legged_envs.robots import RobotCfg

GAITS: Mapping[str, tuple[float, float, float]] = {
    "trot": (0.5, 0.0, 0.0),
    "pace": (0.0, 0.0, 0.5),
    "bound": (0.0, 0.5, 0.0),
    "pronk": (0.0, 0.0, 0.0),
}
"""Name of each gait → its offsets (θ1, θ2, θ3), as fractions of a stride.

With the time t of the stride, the phases of the legs are t + θ1 + θ2 + θ3 (front left), t + θ2
(front right), t + θ3 (rear left) and t + θ1 (rear right), modulo 1. Diagonal feet swing together in
a trot, the feet of one side in a pace, the front or rear feet in a bound, and all feet in a pronk.
"""

STYLE = ("period", "clearance", "height", "pitch")
"""Names of the numbers of a style: the fields of :class:`GaitCommandCfg` that bound them."""

STANCE = 0.5
"""Phase at which a foot leaves the ground. A foot stands from phase 0 and swings until phase 1."""

KAPPA = 0.07
"""Standard deviation κ of the times at which a foot lands and leaves the ground, in strides.

This number is ``kappa_gait_probs`` of walk-these-ways.
"""


@dataclass(frozen=True)
class GaitChoice:
    """A gait and style that a user sets. None leaves a part as it is."""

    gait: str | None = None
    """Name of the gait, of :data:`GAITS`."""
    period: float | None = None
    """Duration of a stride, s."""
    clearance: float | None = None
    """Height of a foot above the ground in mid-swing, m."""
    height: float | None = None
    """Height of the base above the ground, m."""
    pitch: float | None = None
    """Pitch of the base, rad. Positive: the nose is down."""


@dataclass
class GaitCommandCfg(Configuration):
    """Configuration of gait commands: the gaits, and the ranges of their styles.

    Gaits are drawn with equal probability, styles uniformly from ranges. Each draw is kept for a
    random time. The stride continues when a new command is drawn, so robots learn to change gaits.
    """

    legs: tuple[str, str, str, str] = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
    """Feet of the legs at front left, front right, rear left and rear right."""
    gaits: tuple[str, ...] = tuple(GAITS)
    """Names of the gaits to draw, of :data:`GAITS`."""
    period: tuple[float, float] = (0.3, 0.5)
    """Range of the duration of a stride, s. Every foot stands once and swings once in it."""
    clearance: tuple[float, float] = (0.04, 0.12)
    """Range of the height of a foot above the ground in mid-swing, m."""
    height: tuple[float, float] = (0.22, 0.33)
    """Range of the height of the base above the ground, m."""
    pitch: tuple[float, float] = (-0.3, 0.3)
    """Range of the pitch of the base, rad. Positive: the nose is down."""
    resampling_time_s: tuple[float, float] = (8.0, 12.0)
    """Range of the time for which a gait and its style are kept, s."""
    level: float = 1.0
    """Share of each range, around its middle, from which styles are drawn at first, 0 to 1.

    :func:`~legged_envs.mdp.gait_curriculum.widen_gait_commands` raises it for each gait.
    """
    velocity: str = "velocity"
    """Name of the velocity command. While the command is zero, all feet should stand."""

    def build(self, env: Env) -> "GaitCommand":
        """Make the gait commands of all environments of ``env``.

        Raises:
            ValueError: A field is wrong, or the robot has no such legs. The message names it.
        """
        return GaitCommand(self, env)

    def check(self, robot: RobotCfg) -> None:
        """Check all fields against a robot.

        Raises:
            ValueError: A field is wrong. The message names it.
        """
        if sorted(self.legs) != sorted(robot.foot_names):
            raise ValueError(
                f"GaitCommandCfg.legs must be the four feet of {robot.name}, "
                f"{', '.join(robot.foot_names)}, got {self.legs}"
            )
        if not self.gaits:
            raise ValueError(f"GaitCommandCfg.gaits must name at least one of {', '.join(GAITS)}")
        check_known("GaitCommandCfg.gaits: there is no gait", self.gaits, GAITS, "gaits")
        check_range("GaitCommandCfg.period", self.period, above=0.0)
        check_range("GaitCommandCfg.clearance", self.clearance, above=0.0)
        check_range("GaitCommandCfg.height", self.height, above=0.0)
        check_range("GaitCommandCfg.pitch", self.pitch)
        check_range("GaitCommandCfg.resampling_time_s", self.resampling_time_s, above=0.0)
        check_number("GaitCommandCfg.level", self.level, 0.0, 1.0)


class GaitCommand(CommandTerm):
    """The gait and style of each environment, and the time in the stride of each foot.

    Args:
        cfg: Gaits, ranges of styles and of the times for which they are kept.
        env: Environment that the commands are for.

    Raises:
        ValueError: A field of ``cfg`` is wrong. The message names it.
    """

    STATE = (
        "value",
        "moving",
        "still",
        "level",
        "gait_time",
        "foot_phase",
        "contact_schedule",
        "gait_index",
        "stride_time",
        "_resampling",
    )

    def __init__(self, cfg: GaitCommandCfg, env: Env):
        cfg.check(env.sim.robot)
        self.cfg = cfg
        """Configuration of the commands: gaits and ranges."""
        self._env = env
        self._random = env.random.stream("command/gait")
        self._resampling = Timer(env.num_envs, env.step_dt, env.device)
        self._offsets = self._tensor([GAITS[name] for name in cfg.gaits])
        bounds = self._tensor([getattr(cfg, name) for name in STYLE])
        self._middle = bounds.mean(1)
        self._half_width = 0.5 * (bounds[:, 1] - bounds[:, 0])
        added_offsets = {
            cfg.legs[0]: (1.0, 1.0, 1.0),
            cfg.legs[1]: (0.0, 1.0, 0.0),
            cfg.legs[2]: (0.0, 0.0, 1.0),
            cfg.legs[3]: (1.0, 0.0, 0.0),
        }
        foot_names = env.sim.robot.foot_names
        sides = {
            cfg.legs[0]: (1.0, 1.0),
            cfg.legs[1]: (1.0, -1.0),
            cfg.legs[2]: (-1.0, 1.0),
            cfg.legs[3]: (-1.0, -1.0),
        }

        self.phase_offsets = self._tensor([added_offsets[name] for name in foot_names])
        """1 for each of the offsets (θ1, θ2, θ3) that a foot's phase contains. Shape: (num_feet,
        3)."""
        self.sides = self._tensor([sides[name] for name in foot_names])
        """Signs of x (front 1, rear −1) and y (left 1, right −1) of each foot. Shape:
        (num_feet, 2)."""
        self._hip_places: dict[tuple[float, float], torch.Tensor] = {}

        self.level = torch.full(
            (len(cfg.gaits),), cfg.level, dtype=torch.float32, device=env.device
        )
        """Share of each range from which the styles of each gait are drawn now.

        Shape: (num_gaits,), in the order of ``cfg.gaits``.
        """
        self.gait_time = torch.zeros(
            env.num_envs, len(cfg.gaits), dtype=torch.float32, device=env.device
        )
        """Time for which each gait was commanded in the present episode, s. Shape: (num_envs,
        num_gaits)."""
        self.gait_index = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
        """Index in ``cfg.gaits`` of the gait that was drawn last. Shape: (num_envs,), int64."""
        self.stride_time = torch.zeros(env.num_envs, dtype=torch.float32, device=env.device)
        """Time t in the stride, in strides, in [0, 1). Shape: (num_envs,)."""
        first = torch.cat((self._offsets[0], self._middle))

        self.value = first.expand(env.num_envs, -1).clone()
        """Present command of each environment. Shape: (num_envs, 7).

        Columns: offsets θ1, θ2 and θ3 of the gait, in strides; period, s; clearance, m; height of
        the base, m; pitch of the base, rad.
        """
        self.moving = torch.ones(env.num_envs, dtype=torch.float32, device=env.device)
        self.still = torch.zeros_like(self.moving)
        self._follow_time()

    def _tensor(self, rows: list[tuple[float, ...]]) -> torch.Tensor:
        return torch.tensor(rows, dtype=torch.float32, device=self._env.device)

    @property
    def offsets(self) -> torch.Tensor:
        """Offsets θ1, θ2 and θ3 of the present gaits, in strides. Shape: (num_envs, 3)."""
        return self.value[:, :3]

    @property
    def period(self) -> torch.Tensor:
        """Commanded duration of a stride, s. Shape: (num_envs,)."""
        return self.value[:, 3]

    @property
    def clearance(self) -> torch.Tensor:
        """Commanded height of a foot above the ground in mid-swing, m. Shape: (num_envs,)."""
        return self.value[:, 4]

    @property
    def height(self) -> torch.Tensor:
        """Commanded height of the base above the ground, m. Shape: (num_envs,)."""
        return self.value[:, 5]

    @property
    def pitch(self) -> torch.Tensor:
        """Commanded pitch of the base, rad, positive with the nose down. Shape: (num_envs,)."""
        return self.value[:, 6]

    def hip_places(self, length: float, width: float) -> torch.Tensor:
        """Return the place below the hip of each foot, relative to the base, m.

        Args:
            length: Distance of front and rear feet, m.
            width: Distance of left and right feet, m.

        Returns:
            Places, the same tensor in each step. Shape: (num_feet, 2).
        """
        places = self._hip_places.get((length, width))
        if places is None:
            size = torch.tensor((length, width), dtype=torch.float32, device=self._env.device)
            places = 0.5 * size * self.sides
            self._hip_places[length, width] = places
        return places

    def average_shared(self, average: Average) -> None:
        """Average the levels of the gaits over the processes of a training."""
        self.level = average(self.level)

    def reset(self, env_ids: torch.Tensor) -> None:
        """Draw gaits, styles and phases for ``env_ids`` (n,), which start an episode."""
        time = self._random.uniform(0.0, 1.0, 1, env_ids).squeeze(1)
        self.stride_time = self.stride_time.index_copy(0, env_ids, time)
        self.gait_time = self.gait_time.index_fill(0, env_ids, 0.0)
        self._draw(env_ids)

    def _draw(self, env_ids: torch.Tensor) -> None:
        """Draw gaits and styles for ``env_ids`` (n,), and start their timers."""
        # Six numbers in [0, 1): gait, the four numbers of the style, time to the next draw.
        draw = self._random.uniform(0.0, 1.0, 6, env_ids)
        gait = (draw[:, 0] * len(self.cfg.gaits)).long()
        level = self.level[gait].unsqueeze(1)
        style = self._middle + (2.0 * draw[:, 1:5] - 1.0) * level * self._half_width
        command = torch.cat((self._offsets[gait], style), dim=1)
        # Tensors that terms read are replaced, not written: readers may hold the tensors of the
        # last step.
        self.gait_index = self.gait_index.index_copy(0, env_ids, gait)
        self.value = self.value.index_copy(0, env_ids, command)
        shortest, longest = self.cfg.resampling_time_s
        self._resampling.start(env_ids, shortest + draw[:, 5] * (longest - shortest))

    def on_placed(self, env_ids: torch.Tensor) -> None:
        """Compute what follows from the commands of ``env_ids`` (n,), which start an episode."""
        self._follow_time()
        self._follow_velocity()

    def hold(self, command: torch.Tensor) -> None:
        """Set fixed commands, which are kept until the next reset of each environment.

        Args:
            command: Columns as in :attr:`value`. Shape: (7,) for all environments, or
                (num_envs, 7).
        """
        # A copy: the caller may write to its tensor later.
        self.value = command.to(self.value).expand_as(self.value).clone()
        self._resampling.stop()
        self._follow_time()
        self._follow_velocity()

    def hold_gait(self, gait: str | None = None, **style: float | None) -> None:
        """Set a fixed gait or style in all environments, which are kept until their next reset.

        Args:
            gait: Name of the gait, of ``cfg.gaits``. None: the present gaits stay.
            **style: New ``period`` (s), ``clearance`` (m), ``height`` (m) or ``pitch`` (rad). None,
                or a name that is not given: the present values stay.

        Raises:
            ValueError: The gait or a name is unknown, or a number is outside its range.
        """
        value = self.value.clone()
        if gait is not None:
            check_choice("hold_gait: gait", gait, self.cfg.gaits)
            value[:, :3] = self._tensor([GAITS[gait]])
        for name, number in style.items():
            check_choice("hold_gait: style", name, STYLE)
            if number is None:
                continue
            low, high = getattr(self.cfg, name)
            check_number(f"hold_gait: {name}", number, low, high)
            value[:, 3 + STYLE.index(name)] = number
        self.hold(value)

    def advance(self) -> None:
        """Advance the strides by one control step, and draw the commands that are due."""
        step_dt = self._env.step_dt
        share = torch.nn.functional.one_hot(self.gait_index, len(self.cfg.gaits)).float()
        self.gait_time = self.gait_time + share * step_dt
        self.stride_time = (self.stride_time + step_dt / self.period).remainder_(1.0)
        due = self._resampling.advance()
        if due is not None:
            self._draw(due)
        self._follow_time()
        self._follow_velocity()

    def _follow_time(self) -> None:
        """Compute what follows from the time of the stride, and from the gait."""
        phase = self.stride_time.unsqueeze(1) + self.offsets @ self.phase_offsets.T

        self.foot_phase = phase.remainder_(1.0)
        """Phase of each foot: it should stand below 0.5, and swing above. Shape: (num_envs,
        num_feet)."""
        self.contact_schedule = contact_probability(self.foot_phase)
        """Probability that each foot should be on the ground. Shape: (num_envs, num_feet).

        It is the value of :func:`contact_probability`, or 1 while the velocity command is zero.
        """

    def _follow_velocity(self) -> None:
        """Let all feet stand where the velocity command is zero."""
        terms = self._env.commands.terms
        check_known(
            "GaitCommandCfg.velocity: there is no command", (self.cfg.velocity,), terms, "commands"
        )
        velocity = terms[self.cfg.velocity]
        self.moving = velocity.moving
        self.still = velocity.still
        swings = (1.0 - self.contact_schedule) * self.moving.unsqueeze(1)
        self.contact_schedule = 1.0 - swings


def contact_probability(phase: torch.Tensor) -> torch.Tensor:
    """Return the probability that feet should be on the ground, smooth in their phases.

    C(φ) = Φ(φ) (1 − Φ(φ − 0.5)) + Φ(φ − 1) (1 − Φ(φ − 1.5)), with the distribution function Φ of a
    normal distribution with standard deviation :data:`KAPPA`. The paper writes it with von Mises
    distributions; the formula is taken from its code (``_step_contact_targets``).

    Args:
        phase: φ, in [0, 1). Shape: any.

    Returns:
        Probabilities in [0, 1]. Shape: as ``phase``.
    """
    ndtr = torch.special.ndtr
    landed = ndtr(phase / KAPPA)
    left = ndtr((phase - STANCE) / KAPPA)
    lands_again = ndtr((phase - 1.0) / KAPPA)
    leaves_again = ndtr((phase - 1.0 - STANCE) / KAPPA)
    return landed * (1.0 - left) + lands_again * (1.0 - leaves_again)
