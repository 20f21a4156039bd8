"""Motions of waist and arms while base and feet follow a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from legged_envs.robots import RobotCfg
from tools.motions.choreography import Choreography, Plan
from tools.motions.gait import smooth_step


@dataclass(frozen=True)
class Reach:
    """Joints go elsewhere, stay there and come back; each way has minimum jerk."""

    joints: Mapping[str, float]
    """Distance of each joint from its position in the plan, rad."""

    start: float
    """When the joints leave the plan, s."""

    arrive: float
    """When they arrive, s."""

    leave: float
    """When they start to come back, s."""

    end: float
    """When they are back, s."""

    def offsets(self, times: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return what each joint adds to the plan at ``times`` (T,), rad."""
        there = smooth_step((times - self.start) / (self.arrive - self.start))
        back = smooth_step((times - self.leave) / (self.end - self.leave))
        return {joint: way * (there - back) for joint, way in self.joints.items()}


@dataclass(frozen=True)
class Swing:
    """Joints go to and fro: amplitude · sin 2π (t / period − phase)."""

    joints: Mapping[str, float]
    """Amplitude of each joint, rad."""

    period: float
    """Duration of one swing, s."""

    phase: float = 0.0
    """Phase at which the sine is 0 and rises, in periods."""

    during: tuple[float, float] | None = None
    """When it begins and ends, s; it grows and dies away over one period each. None: for ever."""

    def offsets(self, times: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return what each joint adds to the plan at ``times`` (T,), rad."""
        phase = times / self.period - self.phase
        swing = torch.sin(2.0 * torch.pi * phase)
        if self.during is not None:
            start, end = self.during
            growth = smooth_step((times - start) / self.period)
            decay = smooth_step((end - times) / self.period)
            swing = swing * growth * decay
        return {joint: amplitude * swing for joint, amplitude in self.joints.items()}


@dataclass(frozen=True)
class Gesturing:
    """A choreography with gestures of the joints that move no foot."""

    choreography: Choreography
    """The plan of base and feet."""

    robot: RobotCfg
    """Robot with the joints."""

    gestures: tuple[Reach | Swing, ...]
    """Offsets that are added to the joints, rad."""

    def __post_init__(self) -> None:
        """Raise a ValueError for gestures of joints that the robot lacks."""
        names = self.robot.joint_names
        for gesture in self.gestures:
            for joint in gesture.joints:
                if joint not in names:
                    raise ValueError(
                        f"robot {self.robot.name!r} has no joint {joint!r}; "
                        f"joints: {', '.join(names)}"
                    )

    def __call__(self, times: torch.Tensor) -> Plan:
        """Return the plan at ``times`` (T,), s."""
        plan = self.choreography(times)
        joint_pos = plan.joint_pos.clone()
        for gesture in self.gestures:
            for joint, offset in gesture.offsets(times).items():
                column = self.robot.joint_names.index(joint)
                joint_pos[:, column] += offset
        return replace(plan, joint_pos=joint_pos)
