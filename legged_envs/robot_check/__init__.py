"""Report on a robot: what it is like as it stands in its default pose, and what is wrong with it."""

from legged_envs.robot_check.raised_gains import raise_gains
from legged_envs.robot_check.report import Report

__all__ = ["Report", "raise_gains"]
