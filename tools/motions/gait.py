"""Periodic gaits: when and where feet stand, and how the body moves with them.

The base follows a constant velocity and turning rate over the ground. A foot stands where its
neutral place under the base is at the middle of its stance, and swings from one of these places to
the next. The rest of the base's motion follows from simple mechanics: it flies on a parabola while
no foot stands, and sways as an inverted pendulum over the side that stands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from legged_envs import rotation
from tools.motions.choreography import Plan, Stance

GRAVITY = 9.81
"""m/s²"""

REST = 0.08
"""Part of a swing, at its start and at its end, in which the foot only moves up and down.

So it does not scrape over the ground.
"""

NO_FLIGHT = 1e-9
"""Time of flight up to which a gait has none, s."""


@dataclass(frozen=True)
class Gait:
    """When feet stand, and how the body moves with them. Phases are in periods."""

    period: float
    """Duration of a stride, s."""

    duty: float
    """Part of the period in which a foot stands."""

    touchdown: tuple[float, ...]
    """Phase at which each foot touches down."""

    swing_height: float
    """Height of a foot in the middle of its swing, m."""

    base_height: float
    """Height of the base while feet stand (at touch-down if the gait has flight phases), m."""

    velocity: tuple[float, float] = (0.0, 0.0)
    """Velocity of the base in its heading frame, forward and left, m/s."""

    turning_rate: float = 0.0
    """Turning rate of the base, rad/s."""

    contacts: int = 2
    """Number of groups of feet that stand one after the other in a period.

    If they stand for less than the period, the robot flies between.
    """

    pitch: float = 0.0
    """Largest pitch, rad: nose down in the middle of the first foot's stance, then nose up."""

    sway: bool = False
    """True if left and right sides stand in turn; the base sways towards the side that stands."""

    def __post_init__(self) -> None:
        """Raise a ValueError for a gait that cannot be."""
        if not (self.period > 0.0 and 0.0 < self.duty < 1.0 and self.contacts >= 1):
            raise ValueError(f"a gait needs period > 0, 0 < duty < 1 and contacts ≥ 1, got {self}")

    @property
    def middle_of_first_stance(self) -> float:
        """Phase of the middle of the first foot's stance."""
        return self.touchdown[0] + self.duty / 2.0


@dataclass(frozen=True)
class Walk:
    """The choreography of a gait from a stance.

    The clip starts at phase 0 above the origin, heading along x.
    """

    gait: Gait
    """The gait."""

    stance: Stance
    """The stance, which gives the neutral places of the feet."""

    def __call__(self, times: torch.Tensor) -> Plan:
        """Return the plan at ``times`` (T,), s."""
        foot_pos, foot_yaw = self._feet(times)
        ground, yaw = self._course(times)
        sideways = self._sway(times)
        # Sideways is to the left of the heading.
        to_x = -yaw.sin()
        to_y = yaw.cos()
        x = ground[:, 0] + sideways * to_x
        y = ground[:, 1] + sideways * to_y
        height = self._height(times)
        heading = rotation.from_yaw(yaw)
        tilt = rotation.from_pitch(self._pitch(times))
        return Plan(
            root_pos_w=torch.stack((x, y, height), dim=-1),
            root_quat_w=rotation.multiply(heading, tilt),
            foot_pos_w=foot_pos,
            foot_quat_w=rotation.from_yaw(foot_yaw),
            joint_pos=self.stance.joint_pos.repeat(len(times), 1),
        )

    def _pitch(self, times: torch.Tensor) -> torch.Tensor:
        """Return the pitch of the base, rad."""
        phase = times / self.gait.period - self.gait.middle_of_first_stance
        return self.gait.pitch * torch.cos(2.0 * torch.pi * phase)

    def _course(self, times: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return where the base is without swaying: place on the ground (..., 2) and yaw (...,)."""
        half_yaw = 0.5 * self.gait.turning_rate * times
        # At a constant turning rate the way is an arc; its chord points along half of the yaw.
        chord = torch.sinc(half_yaw / torch.pi) * times
        forward, left = self.gait.velocity
        cos = half_yaw.cos()
        sin = half_yaw.sin()
        x = chord * (forward * cos - left * sin)
        y = chord * (forward * sin + left * cos)
        return torch.stack((x, y), dim=-1), 2.0 * half_yaw

    def _footholds(self, stride: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return place (T, num_feet, 2) and yaw (T, num_feet) of each foot in its ``stride``."""
        gait = self.gait
        touchdown = torch.tensor(gait.touchdown, dtype=torch.float64)
        half_stance = gait.duty / 2.0
        middle_of_stance = stride + touchdown + half_stance
        ground, yaw = self._course(middle_of_stance * gait.period)
        x = self.stance.foot_pos[:, 0]
        y = self.stance.foot_pos[:, 1]
        cos = yaw.cos()
        sin = yaw.sin()
        neutral_x = x * cos - y * sin
        neutral_y = x * sin + y * cos
        neutral = torch.stack((neutral_x, neutral_y), dim=-1)
        return ground + neutral, yaw

    def _feet(self, times: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return foot origins (T, num_feet, 3) and yaws (T, num_feet)."""
        gait = self.gait
        touchdown = torch.tensor(gait.touchdown, dtype=torch.float64)
        phase = times.unsqueeze(1) / gait.period - touchdown
        stride = phase.floor()
        # 0 during the stance, then from 0 to 1 during the swing.
        airborne = phase - stride - gait.duty
        swing = airborne / (1.0 - gait.duty)
        swing = swing.clamp(min=0.0)
        start, start_yaw = self._footholds(stride)
        end, end_yaw = self._footholds(stride + 1.0)
        moving_time = 1.0 - 2.0 * REST
        done = smooth_step((swing - REST) / moving_time)
        ground = torch.lerp(start, end, done.unsqueeze(-1))
        lift = torch.sin(torch.pi * swing).square()
        lift = gait.swing_height * lift
        height = self.stance.foot_pos[:, 2] + lift
        foot_pos = torch.cat((ground, height.unsqueeze(-1)), dim=-1)
        foot_yaw = torch.lerp(start_yaw, end_yaw, done)
        return foot_pos, foot_yaw

    def _height(self, times: torch.Tensor) -> torch.Tensor:
        """Return the height of the base, m.

        It is a parabola in flight, and half a sine wave that meets it at the same speed in stance.
        """
        gait = self.gait
        hop = gait.period / gait.contacts
        standing = gait.duty * gait.period
        flight = hop - standing
        if flight <= NO_FLIGHT:
            return torch.full_like(times, gait.base_height)
        take_off_speed = GRAVITY * flight / 2.0
        first_touchdown = gait.touchdown[0] * gait.period
        since = torch.remainder(times - first_touchdown, hop)
        wave = torch.sin(torch.pi * since / standing)
        depth = -take_off_speed * standing / torch.pi
        down = depth * wave
        airborne = since - standing
        fallen = GRAVITY / 2.0 * airborne.square()
        up = take_off_speed * airborne - fallen
        rise = torch.where(since < standing, down, up)
        return gait.base_height + rise

    def _sway(self, times: torch.Tensor) -> torch.Tensor:
        """Return the sideways motion of the base, m, positive to the left.

        The motion is the motion of an inverted pendulum that changes its foot twice per period.
        """
        gait = self.gait
        if not gait.sway:
            return torch.zeros_like(times)
        side = float(self.stance.foot_pos[0, 1])  # the first foot stands in the first half
        rate = math.sqrt(GRAVITY / gait.base_height)
        phase = times / gait.period - gait.middle_of_first_stance + 0.25
        since = torch.remainder(phase, 1.0) * gait.period
        half = gait.period / 2.0
        sign = torch.where(since < half, 1.0, -1.0)
        quarter = half / 2.0
        from_middle = torch.remainder(since, half) - quarter
        largest = math.cosh(rate * half / 2.0)
        pendulum = torch.cosh(rate * from_middle)
        return side * sign * (1.0 - pendulum / largest)


def smooth_step(part: torch.Tensor) -> torch.Tensor:
    """Return a way from 0 to 1 with neither speed nor acceleration at its ends.

    It has minimum jerk (Flash & Hogan 1985).

    Args:
        part: Part of the time that has passed; below 0 and above 1 the way rests.
    """
    part = part.clamp(0.0, 1.0)
    return part**3 * (10.0 - 15.0 * part + 6.0 * part**2)
