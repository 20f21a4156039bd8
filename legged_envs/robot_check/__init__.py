"""Report on a robot: its masses, joints, feet and stance, and what is wrong with them."""

from legged_envs.robot_check.raised_gains import raise_gains
from legged_envs.robot_check.report import Report

__all__ = ["Report", "raise_gains"]
