"""Limits beyond which the report of ``legged-envs check`` lists a problem."""

from dataclasses import dataclass

from legged_envs.sim.gains import FULL_LOAD


@dataclass(frozen=True)
class ReportLimits:
    """Limits beyond which a property of a robot is a problem. ``docs/physics.md`` has the reasons.

    The robot is measured in its default pose, and after it has stood on its own gains for 2 s with
    its base held upright.
    """

    height_tolerance: float = 0.01
    """Largest error of a height, m.

    It applies to the height of a foot above the ground, the height difference within a sole, and
    ``RobotCfg.foot_radius``. Other bodies must be higher than this above the ground.
    """
    max_sinking: float = 0.15
    """Largest height that the base loses while the robot stands, as a fraction of
    ``RobotCfg.base_height``."""
    max_sag: float = 0.3
    """Largest deviation of a joint from its default position while the robot stands, rad."""
    max_load: float = FULL_LOAD
    """Largest torque of a joint while the robot stands, as a fraction of the joint's limit."""
    min_end_distance: float = 0.01
    """Smallest distance of a joint's default position to the nearer end of its range, rad."""
    max_range: float = 20.0
    """Largest width of the range of a joint, rad. Wider ones are likely in degrees."""
    min_ball_radius: float = 0.015
    """Smallest radius of a foot's ball or capsule, m. Smaller ones catch on rough ground."""
    min_travel: float = 0.4
    """Smallest part of its range through which a joint follows its target, in the air."""
    min_upright: float = 0.5
    """Height of the base's z axis, a unit vector, below which a dropped robot has fallen."""
    min_drop_height: float = 0.5
    """Height of the base below which a dropped robot has fallen, as a fraction of
    ``RobotCfg.base_height``."""
    min_overlap: float = 1e-3
    """Depth above which two overlapping collision shapes are listed, m. They are not a problem."""


LIMITS = ReportLimits()
"""Limits that the report of ``legged-envs check`` applies."""
