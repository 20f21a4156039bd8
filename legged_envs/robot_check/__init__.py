"""Report on a robot for ``legged-envs check``: masses, joints, stance, feet, and its problems."""

from legged_envs.robot_check.raised_gains import raise_gains
from legged_envs.robot_check.report import Report

__all__ = ["Report", "raise_gains"]
