"""The motion command: imitate a reference motion (a clip) from a given time of the clip on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from legged_envs import rotation
from legged_envs.checks import check_known, check_number
from legged_envs.configuration import Configuration
from legged_envs.mdp.commands import CommandTerm
from legged_envs.mdp.context import Average, Commands, Env
from legged_envs.mdp.motion_targets import MotionTargets, foot_columns
from legged_envs.motions import (
    BodySample,
    Motion,
    MotionLibrary,
    MotionPlayer,
    MotionSample,
    load_motions,
    shipped_motions,
)
from legged_envs.motions.starts import StartCfg, StartSampler
from legged_envs.robots import RobotCfg

MOVING_SPEED = 0.1
"""Sum ‖v‖ + ‖ω‖ of the reference base's linear speed, m/s, and angular speed, rad/s, above which
the command counts as "move"."""
JOINT_VEL_SCALE = 0.05
"""Scale of joint velocities in ``MotionCommand.value``: as in the proprioceptive observations."""
ANG_VEL_SCALE = 0.25
"""Scale of angular velocities in ``MotionCommand.value``: as in the proprioceptive observations."""


@dataclass
class MotionCommandCfg(Configuration):
    """Configuration of a command to imitate motion clips.

    Each episode starts at a drawn time of a drawn clip, or has no clip to imitate.
    """

    motions: Callable[[RobotCfg], Sequence[Motion]] | dict[str, Any] = shipped_motions
    """Function that loads the clips of a robot, for example ``MotionFiles(("kick.npz",))``.

    A dict has its fields, as JSON holds them. All clips must have the same frame rate.
    """
    clips: tuple[str, ...] = ()
    """Names of the clips to imitate. Empty: all clips."""
    key_bodies: tuple[str, ...] = ()
    """Names of key bodies: bodies with a target position relative to the base. Empty: the feet."""
    window: tuple[int, ...] = (1, 2, 4, 8)
    """Control steps ahead of the present for which the policy observes the reference.

    One frame of the observation for each entry. The first entry must be 1.
    """
    reference_fraction: float = 0.7
    """Probability that an episode imitates a clip, 0 to 1. Others follow the velocity command."""
    end: Literal["clip", "loop", "hold"] = "clip"
    """Behaviour after the last frame of a clip.

    ``"loop"``: start again. ``"hold"``: stay in the last frame. ``"clip"``: start again if
    ``Motion.loop`` of the clip is True, otherwise hold.
    """
    starts: StartCfg = field(default_factory=StartCfg)
    """Choice of the clip and the time in it at which an episode starts.

    Adaptive starts prefer times at which episodes fail. Adaptive starts use all failures since the
    environment was made; a ``reset`` with a seed does not clear them.
    """

    def build(self, env: Env) -> "MotionCommand":
        """Make the motion command of all environments of ``env``.

        Raises:
            ValueError: A field is wrong, a clip does not fit the robot, or the scene has a terrain.
                The message names the field or the clip.
        """
        return MotionCommand(self, env)

    def check(self) -> None:
        """Check ``window`` and ``reference_fraction``.

        Raises:
            ValueError: A field is wrong. The message names it.
        """
        rises = list(self.window) == sorted(set(self.window))
        if not self.window or self.window[0] != 1 or not rises:
            raise ValueError(
                f"MotionCommandCfg.window must rise from 1, e.g. (1, 2, 4, 8), got {self.window}"
            )
        check_number("MotionCommandCfg.reference_fraction", self.reference_fraction, 0.0, 1.0)

    def load(self, robot: RobotCfg) -> list[Motion]:
        """Load the clips that a robot should imitate, restricted to ``clips``.

        Raises:
            ValueError: There is no clip with one of the names.
        """
        motions = load_motions(self.motions, robot)
        if not self.clips:
            return motions
        names = [motion.name for motion in motions]
        check_known("MotionCommandCfg.clips: there is no clip", self.clips, names, "clips")
        return [motion for motion in motions if motion.name in self.clips]


class MotionCommand(CommandTerm):
    """The clip that each environment imitates: the reference one and more control steps ahead.

    The attributes ``target_…`` have the reference one control step ahead. A perfect imitation
    reaches them at the end of the next step. Targets of bodies are one physics step older, like the
    body positions of the simulation, so that both can be compared.

    ``value`` is the window: the reference at each of ``cfg.window`` control steps ahead, as one row
    of numbers for the policy. :attr:`frame_sizes` describes the parts of each frame of it.

    An environment without a reference has ``available`` 0 and a window of zeros. Do not use its
    targets: they are from a clip that the environment does not imitate. The same is true for an
    environment with an invalid frame in its window.

    Args:
        cfg: Clips, window and choice of the starts.
        env: Environment with the robot that imitates.

    Raises:
        ValueError: A field of ``cfg`` is wrong, or the scene has a terrain. The message names it.
    """

    STATE = ("player", "_sampler", "_has_reference", "_pinned", "_withheld")
    OPTIONAL = ("_pinned", "_withheld")

    available: torch.Tensor
    """1 where there is a reference to imitate, otherwise 0. Shape: (num_envs,), float32."""
    window_root_pos_w: torch.Tensor
    """Positions of the reference's base at the times of the window, world frame, m.

    Shape: (num_envs, len(window), 3). Entry 0 is one control step ahead.
    """
    window_root_quat_w: torch.Tensor
    """Orientations (w, x, y, z) of the reference's base at the times of the window, world frame.

    Shape: (num_envs, len(window), 4). Entry 0 is one control step ahead.
    """
    target_gravity: torch.Tensor
    """Target of the projected gravity: unit vector in the base frame. Shape: (num_envs, 3)."""
    target_lin_vel_b: torch.Tensor
    """Target of the base's linear velocity in the base frame, m/s. Shape: (num_envs, 3)."""
    target_ang_vel_b: torch.Tensor
    """Target of the base's angular velocity in the base frame, rad/s. Shape: (num_envs, 3)."""
    target_joint_pos: torch.Tensor
    """Target joint positions, rad. Shape: (num_envs, num_joints)."""
    target_joint_vel: torch.Tensor
    """Target joint velocities, rad/s. Shape: (num_envs, num_joints)."""
    target_key_pos_b: torch.Tensor
    """Target positions of the key bodies in the base frame, m. Shape: (num_envs, num_key_bodies,
    3)."""
    target_key_height: torch.Tensor
    """Target heights of the key bodies above the ground, m. Shape: (num_envs, num_key_bodies)."""

    def __init__(self, cfg: MotionCommandCfg, env: Env):
        cfg.check()
        if cfg.reference_fraction > 0.0 and env.sim.ground is not None:
            raise ValueError("clips are for flat ground: leave scene.terrain or the command out")
        robot = env.sim.robot
        device = env.device

        self.cfg = cfg
        """Configuration: clips, window and choice of the starts."""
        self._env = env
        library = MotionLibrary(cfg.load(robot), robot, device, cfg.end)

        self.key_bodies = cfg.key_bodies or robot.foot_names
        """Names of the key bodies, in the order of ``target_key_pos_b``."""
        self.foot_columns = foot_columns(self.key_bodies, robot.foot_names)
        """Indices of the feet in the key bodies. Empty: not all feet are key bodies."""
        self.player = MotionPlayer(library, env.num_envs)
        """Player with the clip of each environment and the time in it.

        This is the time of the robot's present state, one control step before the targets.
        """
        self._body_ids = library.body_ids(robot.base_body, *self.key_bodies)
        self._sampler = StartSampler(library, cfg.starts)
        self._random = env.random.stream("command/motion")
        # In float64, as the times of the player.
        self._window = torch.tensor(cfg.window, dtype=torch.float64, device=device) * env.step_dt
        self._has_reference = torch.ones(env.num_envs, dtype=torch.bool, device=device)
        self._pinned: tuple[torch.Tensor, ...] | None = None
        self._withheld: torch.Tensor | None = None
        # The robot then keeps the poses of these bodies up to date.
        env.robot.bodies(self.key_bodies)
        self._set(self._compute_targets(torch.arange(env.num_envs, device=device)))

    @property
    def frame_sizes(self) -> dict[str, int]:
        """Name → length of each part of one frame of ``value``, in the order of the parts.

        The parts are: joint positions relative to the default pose, rad; joint velocities,
        0.05 · rad/s; unit gravity vector, linear velocity, m/s, and angular velocity, 0.25 · rad/s,
        of the base in its frame; height of the base, m.
        """
        joints = self._env.sim.robot.num_joints
        return {
            "joint_pos": joints,
            "joint_vel": joints,
            "gravity": 3,
            "lin_vel": 3,
            "ang_vel": 3,
            "height": 1,
        }

    def pin(self, clips: torch.Tensor, times: torch.Tensor) -> None:
        """Fix the clip and time at which each environment starts, from its next reset on.

        :meth:`release` undoes it.

        Args:
            clips: Indices into ``player.library.names``. Shape: (num_envs,) or ().
            times: Times since the first frame, s. Shape: (num_envs,) or ().

        Raises:
            ValueError: A shape is wrong, there is no clip with an index, or a time is not finite.
        """
        num_envs = self._env.num_envs
        names = self.player.library.names
        for name, values in (("clips", clips), ("times", times)):
            if values.shape not in ((), (num_envs,)):
                raise ValueError(
                    f"pin needs {name} of shape () or ({num_envs},), got {tuple(values.shape)}"
                )
        if not times.isfinite().all():
            raise ValueError(f"times must be finite, got {times.tolist()}")
        is_whole = clips == clips.floor()
        if not ((clips >= 0) & (clips < len(names)) & is_whole).all():
            # Numbers with names: callers know the names.
            known = ", ".join(f"{i} {name}" for i, name in enumerate(names))
            raise ValueError(f"clips must be whole numbers of {known}; got {clips.tolist()}")
        device = self._env.device
        self._pinned = (
            clips.long().to(device).expand(num_envs).clone(),
            times.double().to(device).expand(num_envs).clone(),
        )

    def withhold(self, mask: torch.Tensor) -> None:
        """Give environments no clip to imitate, from their next reset on.

        :meth:`release` undoes it.

        Args:
            mask: True for environments without a clip. Shape: (num_envs,), bool.

        Raises:
            ValueError: The mask has another shape or dtype.
        """
        num_envs = self._env.num_envs
        if mask.shape != (num_envs,) or mask.dtype != torch.bool:
            raise ValueError(
                f"withhold needs a mask ({num_envs},) torch.bool, "
                f"got {tuple(mask.shape)} {mask.dtype}"
            )
        self._withheld = mask.to(self._env.device).clone()

    def release(self) -> None:
        """Undo :meth:`pin` and :meth:`withhold`: later resets draw clips and times again."""
        self._pinned = None
        self._withheld = None

    def end_episodes(self, env_ids: torch.Tensor) -> None:
        """Count at which times of their clips the episodes of ``env_ids`` (n,) failed.

        Adaptive starts use these counts.
        """
        if self.cfg.starts.adaptive:
            terminated = self._env.terminations.terminated[env_ids]
            # Without a reference a fall is not the fault of a place in a clip.
            failed = terminated & self._has_reference[env_ids]
            clips = self.player.clip[env_ids]
            times = self.player.time[env_ids]
            self._sampler.record(clips, times, failed)

    def average_shared(self, average: Average) -> None:
        """Average the failures that adaptive starts count over the processes of a training."""
        self._sampler.set_failures(average(self._sampler.failures))

    def reset(self, env_ids: torch.Tensor) -> None:
        """Draw a clip and a time in it for ``env_ids`` (n,), which start an episode."""
        # Drawn also where starts are pinned: the stream does not depend on it.
        clips, times = self._sampler.draw(self._random, env_ids)
        share = self._random.uniform(0.0, 1.0, 1, env_ids).squeeze(1)
        has_reference = share < self.cfg.reference_fraction
        if self._pinned is not None:
            pinned_clips, pinned_times = self._pinned
            clips = pinned_clips[env_ids]
            times = pinned_times[env_ids]
            has_reference = torch.ones_like(has_reference)
        if self._withheld is not None:
            has_reference = has_reference & ~self._withheld[env_ids]
        self.player.start(env_ids, clips, times)
        self._has_reference = self._has_reference.index_copy(0, env_ids, has_reference)
        self._set_rows(env_ids, self._compute_targets(env_ids))

    def advance(self) -> None:
        """Advance all clips by one control step, and update the targets and the window."""
        self.player.advance(self._env.step_dt)
        # A slice: indices of all environments would copy all rows.
        self._set(self._compute_targets(slice(None)))

    def start_pose(self, env_ids: torch.Tensor) -> tuple[torch.Tensor, MotionSample]:
        """Return the clip's state at its present time, at which an event can place the robots.

        Args:
            env_ids: Indices of environments that start an episode. Shape: (n,).

        Returns:
            Indices of the environments in ``env_ids`` with a clip, (m,), and their states in their
            clips, (m, …).
        """
        followers = env_ids[self._has_reference[env_ids]]
        return followers, self.player.sample(env_ids=followers)

    def _set(self, targets: MotionTargets) -> None:
        """Set the tensors of all environments."""
        # Contiguous: the rounding of sums depends on strides, and must not depend on the way here.
        self.value = targets.value.contiguous()
        self.moving = targets.moving.contiguous()
        self.still = 1.0 - self.moving
        self.available = targets.available.contiguous()
        self.window_root_pos_w = targets.window_root_pos_w.contiguous()
        self.window_root_quat_w = targets.window_root_quat_w.contiguous()
        self.target_gravity = targets.target_gravity.contiguous()
        self.target_lin_vel_b = targets.target_lin_vel_b.contiguous()
        self.target_ang_vel_b = targets.target_ang_vel_b.contiguous()
        self.target_joint_pos = targets.target_joint_pos.contiguous()
        self.target_joint_vel = targets.target_joint_vel.contiguous()
        self.target_key_pos_b = targets.target_key_pos_b.contiguous()
        self.target_key_height = targets.target_key_height.contiguous()

    def _set_rows(self, env_ids: torch.Tensor, rows: MotionTargets) -> None:
        """Set the tensors of ``env_ids`` (n,)."""

        def with_rows(tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            return tensor.index_copy(0, env_ids, values)

        self._set(
            MotionTargets(
                value=with_rows(self.value, rows.value),
                moving=with_rows(self.moving, rows.moving),
                available=with_rows(self.available, rows.available),
                window_root_pos_w=with_rows(self.window_root_pos_w, rows.window_root_pos_w),
                window_root_quat_w=with_rows(self.window_root_quat_w, rows.window_root_quat_w),
                target_gravity=with_rows(self.target_gravity, rows.target_gravity),
                target_lin_vel_b=with_rows(self.target_lin_vel_b, rows.target_lin_vel_b),
                target_ang_vel_b=with_rows(self.target_ang_vel_b, rows.target_ang_vel_b),
                target_joint_pos=with_rows(self.target_joint_pos, rows.target_joint_pos),
                target_joint_vel=with_rows(self.target_joint_vel, rows.target_joint_vel),
                target_key_pos_b=with_rows(self.target_key_pos_b, rows.target_key_pos_b),
                target_key_height=with_rows(self.target_key_height, rows.target_key_height),
            )
        )

    def _compute_targets(self, env_ids: torch.Tensor | slice) -> MotionTargets:
        """Compute the tensors of ``env_ids`` (n,) at the present time of their clips."""
        window = self.player.sample(self._window, env_ids)
        # A policy that sees a part of a reference would not know which part.
        available = self._has_reference[env_ids] & window.valid.all(dim=1)
        visible = available.float()
        to_base = rotation.conjugate(window.root_quat_w)
        lin_vel = rotation.rotate(to_base, window.root_lin_vel_w)
        gravity = rotation.rotate(to_base, lin_vel.new_tensor((0.0, 0.0, -1.0)))
        joint_pos = window.joint_pos - self._env.robot.default_joint_pos
        joint_vel = window.joint_vel * JOINT_VEL_SCALE
        ang_vel = window.root_ang_vel_b * ANG_VEL_SCALE
        height = window.root_pos_w[..., 2:]
        # In the order of frame_sizes.
        frames = torch.cat((joint_pos, joint_vel, gravity, lin_vel, ang_vel, height), dim=-1)
        linear_speed = window.root_lin_vel_w[:, 0].norm(dim=1)
        angular_speed = window.root_ang_vel_b[:, 0].norm(dim=1)
        bodies = self._sample_bodies(env_ids)
        # Body 0 of the sample is the base.
        base_to_body = bodies.pos_w[:, 1:] - bodies.pos_w[:, :1]
        body_to_base = rotation.conjugate(bodies.quat_w[:, :1])
        return MotionTargets(
            value=(frames * visible[:, None, None]).flatten(1),
            moving=(linear_speed + angular_speed > MOVING_SPEED).float(),
            available=visible,
            window_root_pos_w=window.root_pos_w,
            window_root_quat_w=window.root_quat_w,
            target_gravity=gravity[:, 0],
            target_lin_vel_b=lin_vel[:, 0],
            target_ang_vel_b=window.root_ang_vel_b[:, 0],
            target_joint_pos=window.joint_pos[:, 0],
            target_joint_vel=window.joint_vel[:, 0],
            target_key_pos_b=rotation.rotate(body_to_base, base_to_body),
            target_key_height=bodies.pos_w[:, 1:, 2],
        )

    def _sample_bodies(self, env_ids: torch.Tensor | slice) -> BodySample:
        """Sample the base and the key bodies at the time of the simulation's own body positions."""
        # They are one physics step older than the control step; a training changes its duration.
        offset = self._env.step_dt * (1.0 - 1.0 / self._env.decimation)
        clips = self.player.clip[env_ids]
        times = self.player.time[env_ids] + offset
        return self.player.library.sample_bodies(clips, times, self._body_ids)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from ``state_dict``, and compute the targets and the window again.

        Raises:
            KeyError: A part of the state is missing.
        """
        super().load_state_dict(state)
        self._set(self._compute_targets(slice(None)))


def motion_command(commands: Commands, name: str = "motion") -> "MotionCommand":
    """Return a motion command of an environment by name, and check its type.

    Args:
        commands: The commands of an environment (:class:`~legged_envs.managers.CommandManager`).
        name: Name of the command in ``TaskCfg.commands``.

    Raises:
        ValueError: There is no motion command with that name.
    """
    term = commands.terms.get(name)
    if not isinstance(term, MotionCommand):
        raise ValueError(
            f"the task has no motion command {name!r}; its commands: {', '.join(commands.terms)}"
        )
    return term
