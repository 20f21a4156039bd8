"""Values from which a report calls a property of a robot a problem."""

from dataclasses import dataclass

from legged_envs.sim.gains import FULL_LOAD


@dataclass(frozen=True)
class ReportLimits:
    """Values from which a property of a robot is a problem. ``docs/physics.md`` has the reasons."""

    height_tolerance: float = 0.01
    """Largest error of a height: of a foot above the ground, of the points of a sole, of
    ``foot_radius``, m."""
    max_sinking: float = 0.15
    """Largest sinking of the base, as a fraction of the robot's height."""
    max_sag: float = 0.3
    """Largest sag of a joint, rad."""
    max_load: float = FULL_LOAD
    """Largest torque of a joint, as a fraction of its limit."""
    min_end_distance: float = 0.01
    """Smallest distance of a default position to the end of its range, rad."""
    min_ball_radius: float = 0.015
    """Smallest radius of the ball or capsule of a foot, m: smaller ones catch on rough ground."""
    min_overlap: float = 1e-3
    """Depth from which two overlapping collision shapes are listed, m."""


LIMITS = ReportLimits()
"""Limits of ``legged-envs check``."""
