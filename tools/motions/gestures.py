"""What waist and arms do while base and feet follow a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from legged_envs.robots import RobotCfg
from tools.motions.choreography import Choreography, Plan
from tools.motions.gait import smooth_step


@dataclass(frozen=True)
class Reach:
    """Joints go elsewhere, stay there and come back; each way is of minimum jerk."""

    joints: Mapping[str, float]
    """Where to, as a distance from where the plan has the joint, rad."""
    start: float
    """s."""
    arrive: float
    """s."""
    leave: float
    """s."""
    end: float
    """s."""

    def offsets(self, times: torch.Tensor) -> dict[str, torch.Tensor]:
        """What each joint adds to the plan at ``times`` (T,), rad."""
        there = smooth_step((times - self.start) / (self.arrive - self.start))
        back = smooth_step((times - self.leave) / (self.end - self.leave))
        return {joint: way * (there - back) for joint, way in self.joints.items()}


@dataclass(frozen=True)
class Swing:
    """Joints go to and fro: amplitude · sin 2π (t / period − phase)."""

    joints: Mapping[str, float]
    """Amplitudes, rad."""
    period: float
    """s."""
    phase: float = 0.0
    """In periods."""
    during: tuple[float, float] | None = None
    """When it begins and ends, growing and dying away over one period each, s. None goes on for ever."""

    def offsets(self, times: torch.Tensor) -> dict[str, torch.Tensor]:
        """What each joint adds to the plan at ``times`` (T,), rad."""
        swing = torch.sin(2.0 * torch.pi * (times / self.period - self.phase))
        if self.during is not None:
            start, end = self.during
            swing = (
                swing
                * smooth_step((times - start) / self.period)
                * smooth_step((end - times) / self.period)
            )
        return {joint: amplitude * swing for joint, amplitude in self.joints.items()}


@dataclass(frozen=True)
class Gesturing:
    """A choreography with gestures: what they add to its joints that move no foot."""

    choreography: Choreography
    robot: RobotCfg
    gestures: tuple[Reach | Swing, ...]

    def __post_init__(self) -> None:
        """Reject gestures of joints that the robot lacks."""
        known = self.robot.joint_names
        unknown = [
            joint for gesture in self.gestures for joint in gesture.joints if joint not in known
        ]
        if unknown:
            raise ValueError(
                f"robot {self.robot.name!r} has no joint {unknown[0]!r}; joints: {', '.join(known)}"
            )

    def __call__(self, times: torch.Tensor) -> Plan:
        """The plan at ``times`` (T,), s."""
        plan = self.choreography(times)
        joint_pos = plan.joint_pos.clone()
        for gesture in self.gestures:
            for joint, offset in gesture.offsets(times).items():
                joint_pos[:, self.robot.joint_names.index(joint)] += offset
        return replace(plan, joint_pos=joint_pos)
