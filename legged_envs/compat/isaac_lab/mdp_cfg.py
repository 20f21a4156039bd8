"""Configurations of commands and actions with the names and fields of Isaac Lab's ``mdp``."""

import math
from dataclasses import MISSING
from typing import Any

from legged_envs.checks import check_choice, match_names
from legged_envs.configuration import configclass
from legged_envs.mdp.actions import JointAction, JointPositionCfg
from legged_envs.mdp.commands import VelocityCommandCfg


@configclass
class UniformVelocityCommandCfg:
    """A :class:`~legged_envs.mdp.commands.VelocityCommandCfg` in Isaac Lab's words."""

    @configclass
    class Ranges:
        """Ranges of the parts of a velocity command."""

        lin_vel_x: Any = MISSING
        """Range of vx, m/s."""
        lin_vel_y: Any = MISSING
        """Range of vy, m/s."""
        ang_vel_z: Any = MISSING
        """Range of ωz, rad/s."""
        heading: tuple[float, float] | None = (-math.pi, math.pi)
        """Range of the heading, rad; None only without ``heading_command``."""

    asset_name: str = "robot"
    """This setting has no effect: the first robot has the command."""
    resampling_time_range: Any = MISSING
    """Range of the time for which a command is kept, s."""
    rel_standing_envs: float = 0.0
    """Probability that a command is zero."""
    rel_heading_envs: float = 1.0
    """Probability that a command steers towards a heading."""
    heading_command: bool = False
    """True if ωz steers towards a drawn heading."""
    heading_control_stiffness: float = 1.0
    """ωz per angle to the heading, (rad/s)/rad."""
    ranges: Any = MISSING
    """Ranges of the command, a :class:`Ranges`."""
    debug_vis: bool = False
    """This setting has no effect."""

    def translated(self) -> VelocityCommandCfg:
        """Return the configuration of this package's velocity command.

        Raises:
            ValueError: If ``heading_command`` is set and there is no range of headings.
        """
        headings = self.ranges.heading
        if headings is None:
            if self.heading_command:
                raise ValueError(
                    "UniformVelocityCommandCfg: heading_command=True needs ranges.heading, such as "
                    "(-math.pi, math.pi), got None"
                )
            headings = VelocityCommandCfg.heading_range  # not used
        return VelocityCommandCfg(
            lin_vel_x=self.ranges.lin_vel_x,
            lin_vel_y=self.ranges.lin_vel_y,
            ang_vel_z=self.ranges.ang_vel_z,
            resampling_time_s=self.resampling_time_range,
            standing_fraction=self.rel_standing_envs,
            small_command=0.0,
            heading=self.heading_command,
            heading_stiffness=self.heading_control_stiffness,
            heading_range=headings,
            heading_fraction=self.rel_heading_envs,
        )


@configclass
class JointPositionActionCfg:
    """A :class:`~legged_envs.mdp.actions.JointPositionCfg` in Isaac Lab's words."""

    asset_name: str = "robot"
    """This setting has no effect: the first robot has the action."""
    joint_names: Any = MISSING
    """Joints, as names or regular expressions."""
    scale: float | dict[str, float] = 1.0
    """Change of the target by an action of 1, rad: of all joints, or by name or expression."""
    use_default_offset: bool = True
    """True: targets are relative to the default pose."""
    debug_vis: bool = False
    """This setting has no effect."""

    def build(self, env: Any) -> JointAction:
        """Make the action term of an environment.

        Raises:
            ValueError: If ``use_default_offset`` is not True, an expression matches no joint, or
                two of ``joint_names`` match the same one. Of several scales, the last one counts.
        """
        check_choice("JointPositionActionCfg.use_default_offset", self.use_default_offset, (True,))
        _, joints = match_names("joint", self.joint_names, env.sim.robot.joint_names)
        scale_of = dict.fromkeys(joints, 1.0)
        by_pattern = self.scale if isinstance(self.scale, dict) else {".*": self.scale}
        for pattern, scale in by_pattern.items():
            _, names = match_names("joint", pattern, joints)
            for name in names:
                scale_of[name] = scale
        cfg = JointPositionCfg(scale=tuple(scale_of.values()), joints=tuple(joints))
        return cfg.build(env)
