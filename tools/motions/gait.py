"""Periodic gaits: when and where feet stand, and how the body moves with them.

The base follows a constant velocity and turning rate over the ground. A foot stands where its neutral place under the
base is at the middle of its stance, and swings from one such place to the next. What the base does besides follows
from simple mechanics: it flies on a parabola while no foot stands, and sways as an inverted pendulum over the side
that stands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from legged_envs import rotation
from tools.motions.choreography import Plan, Stance

GRAVITY = 9.81
"""m/s²."""

REST = 0.08
"""Part of a swing, at its start and at its end, in which the foot moves up and down only: it does not scrape."""


@dataclass(frozen=True)
class Gait:
    """When feet stand, and how the body moves with them. Phases are in periods."""

    period: float
    """Time of a stride, s."""
    duty: float
    """Part of the period that a foot stands."""
    touchdown: tuple[float, ...]
    """Phase at which each foot touches down."""
    swing_height: float
    """Height of a foot in the middle of its swing, m."""
    base_height: float
    """Height of the base while feet stand (at touch-down where the gait has flight phases), m."""
    velocity: tuple[float, float] = (0.0, 0.0)
    """Of the base in its heading frame, m/s."""
    turning_rate: float = 0.0
    """rad/s."""
    contacts: int = 2
    """How many groups of feet stand one after the other in a period. Less standing than that means flight between."""
    pitch: float = 0.0
    """Largest pitch, rad: nose down in the middle of the first foot's stance, nose up half a period later."""
    sway: bool = False
    """Whether left and right sides stand in turn, so that the base sways towards the side that stands."""

    def __post_init__(self) -> None:
        """Reject a gait that cannot be."""
        if not (self.period > 0.0 and 0.0 < self.duty < 1.0 and self.contacts >= 1):
            raise ValueError(f"a gait needs period > 0, 0 < duty < 1 and contacts ≥ 1, got {self}")


@dataclass(frozen=True)
class Walk:
    """The choreography of a gait from a stance. The clip starts at phase 0 above the origin, heading along x."""

    gait: Gait
    stance: Stance

    def __call__(self, times: torch.Tensor) -> Plan:
        """The plan at ``times`` (T,), s."""
        gait = self.gait
        foot_pos, foot_yaw = self._feet(times)
        ground, yaw = self._course(times)
        sideways = self._sway(times)
        offset = torch.stack((-sideways * yaw.sin(), sideways * yaw.cos()), dim=-1)
        pitch = gait.pitch * torch.cos(
            2.0 * torch.pi * (times / gait.period - self._middle_of_first_stance())
        )
        return Plan(
            root_pos_w=torch.cat((ground + offset, self._height(times).unsqueeze(-1)), dim=-1),
            root_quat_w=rotation.multiply(rotation.from_yaw(yaw), rotation.from_pitch(pitch)),
            foot_pos_w=foot_pos,
            foot_quat_w=rotation.from_yaw(foot_yaw),
            joint_pos=self.stance.joint_pos.repeat(len(times), 1),
        )

    def _middle_of_first_stance(self) -> float:
        return self.gait.touchdown[0] + self.gait.duty / 2.0

    def _course(self, times: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Where the base would be without swaying: place on the ground (..., 2) and yaw (...,)."""
        half_yaw = 0.5 * self.gait.turning_rate * times
        chord = torch.sinc(half_yaw / torch.pi) * times
        forward, left = self.gait.velocity
        x = chord * (forward * half_yaw.cos() - left * half_yaw.sin())
        y = chord * (forward * half_yaw.sin() + left * half_yaw.cos())
        return torch.stack((x, y), dim=-1), 2.0 * half_yaw

    def _footholds(self, stride: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Place (T, num_feet, 2) and yaw (T, num_feet) of each foot in its ``stride`` (T, num_feet)."""
        gait = self.gait
        touchdown = torch.tensor(gait.touchdown, dtype=torch.float64)
        ground, yaw = self._course((stride + touchdown + gait.duty / 2.0) * gait.period)
        x, y = self.stance.foot_pos[:, 0], self.stance.foot_pos[:, 1]
        neutral = torch.stack(
            (x * yaw.cos() - y * yaw.sin(), x * yaw.sin() + y * yaw.cos()), dim=-1
        )
        return ground + neutral, yaw

    def _feet(self, times: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Foot origins (T, num_feet, 3) and yaws (T, num_feet)."""
        gait = self.gait
        phase = times.unsqueeze(1) / gait.period - torch.tensor(gait.touchdown, dtype=torch.float64)
        stride = phase.floor()
        swing = ((phase - stride - gait.duty) / (1.0 - gait.duty)).clamp(min=0.0)
        start, start_yaw = self._footholds(stride)
        end, end_yaw = self._footholds(stride + 1.0)
        done = smooth_step((swing - REST) / (1.0 - 2.0 * REST))
        ground = torch.lerp(start, end, done.unsqueeze(-1))
        lift = gait.swing_height * torch.sin(torch.pi * swing).square()
        height = self.stance.foot_pos[:, 2] + lift
        return torch.cat((ground, height.unsqueeze(-1)), dim=-1), torch.lerp(
            start_yaw, end_yaw, done
        )

    def _height(self, times: torch.Tensor) -> torch.Tensor:
        """Height of the base: a parabola in flight, half a sine wave that meets it at the same speed in stance."""
        gait = self.gait
        hop = gait.period / gait.contacts
        standing = gait.duty * gait.period
        flight = hop - standing
        if flight <= 1e-9:
            return torch.full_like(times, gait.base_height)
        take_off = GRAVITY * flight / 2.0
        since = torch.remainder(times - gait.touchdown[0] * gait.period, hop)
        down = -take_off * standing / torch.pi * torch.sin(torch.pi * since / standing)
        up = take_off * (since - standing) - GRAVITY / 2.0 * (since - standing).square()
        return gait.base_height + torch.where(since < standing, down, up)

    def _sway(self, times: torch.Tensor) -> torch.Tensor:
        """Sideways motion of an inverted pendulum that changes its foot twice a period, m, positive to the left."""
        gait = self.gait
        if not gait.sway:
            return torch.zeros_like(times)
        side = float(self.stance.foot_pos[0, 1])  # the first foot stands in the first half
        rate = math.sqrt(GRAVITY / gait.base_height)
        since = (
            torch.remainder(times / gait.period - self._middle_of_first_stance() + 0.25, 1.0)
            * gait.period
        )
        half = gait.period / 2.0
        sign = torch.where(since < half, 1.0, -1.0)
        from_middle = torch.remainder(since, half) - half / 2.0
        return side * sign * (1.0 - torch.cosh(rate * from_middle) / math.cosh(rate * half / 2.0))


def smooth_step(part: torch.Tensor) -> torch.Tensor:
    """From 0 to 1 with neither speed nor acceleration at the ends (minimum jerk, Flash & Hogan 1985)."""
    part = part.clamp(0.0, 1.0)
    return part**3 * (10.0 - 15.0 * part + 6.0 * part**2)
