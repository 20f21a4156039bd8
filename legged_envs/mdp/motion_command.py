"""Reference motions as a command: imitate this clip from here on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from legged_envs import rotation
from legged_envs.checks import check_known, check_number
from legged_envs.configuration import Configuration
from legged_envs.mdp.commands import CommandTerm
from legged_envs.mdp.context import Commands, Env
from legged_envs.motions import (
    BodySample,
    Motion,
    MotionLibrary,
    MotionPlayer,
    MotionSample,
    shipped_motions,
)
from legged_envs.motions.starts import StartCfg, StartSampler
from legged_envs.robots import RobotCfg

MOVING_SPEED = 0.1
"""Speed of a reference's base, m/s and rad/s together, above which it asks the robot to move."""
JOINT_VEL_SCALE = 0.05
"""Factor of joint velocities in the window, as in the policy's own observation."""
ANG_VEL_SCALE = 0.25
"""Factor of angular velocities in the window, as in the policy's own observation."""


@dataclass
class MotionCommandCfg(Configuration):
    """Each episode imitates a clip from a drawn time on, or has no reference at all."""

    motions: Callable[[RobotCfg], Sequence[Motion]] = shipped_motions
    """Function that gives the clips of a robot, all of one frame rate, such as
    ``MotionFiles(("kick.npz",))``."""
    clips: tuple[str, ...] = ()
    """Names of the clips to imitate. Empty: all clips."""
    key_bodies: tuple[str, ...] = ()
    """Bodies with a target position in the base frame. Empty: the feet."""
    window: tuple[int, ...] = (1, 2, 4, 8)
    """Numbers of control steps ahead that the reference observation shows. The first must be 1."""
    reference_fraction: float = 0.7
    """Probability that an episode has a reference. Others follow the velocity command."""
    end: Literal["clip", "loop", "hold"] = "clip"
    """Behaviour after the end of a clip (:class:`~legged_envs.motions.MotionLibrary`)."""
    starts: StartCfg = field(default_factory=StartCfg)
    """Choice of the places where episodes start. Adaptive starts depend on all failures so far,
    also those before a seeded ``reset``."""

    def build(self, env: Env) -> "MotionCommand":
        """Make the motion commands of an environment.

        Raises:
            ValueError: The window or a fraction is wrong, or a clip does not fit the robot. The
                message names the field or the clip.
        """
        return MotionCommand(self, env)

    def check(self) -> None:
        """Check the window and the fraction.

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
        """Load the clips of a robot to imitate.

        Raises:
            ValueError: There is no clip with one of the names.
        """
        motions = list(self.motions(robot))
        if not self.clips:
            return motions
        names = [motion.name for motion in motions]
        check_known("MotionCommandCfg.clips: there is no clip", self.clips, names, "clips")
        return [motion for motion in motions if motion.name in self.clips]


@dataclass(frozen=True)
class _Targets:
    """Values of the tensors of a :class:`MotionCommand` for n environments."""

    value: torch.Tensor
    moving: torch.Tensor
    available: torch.Tensor
    window_root_pos_w: torch.Tensor
    window_root_quat_w: torch.Tensor
    target_gravity: torch.Tensor
    target_lin_vel_b: torch.Tensor
    target_ang_vel_b: torch.Tensor
    target_joint_pos: torch.Tensor
    target_joint_vel: torch.Tensor
    target_key_pos_b: torch.Tensor


class MotionCommand(CommandTerm):
    """The reference of every environment: a target one control step ahead, and later steps.

    After a step the robot should be where the ``target_…`` of before the step were. Targets of
    bodies are one physics step older, as are the simulation's own body positions.

    An environment without a reference has ``available`` 0 and a window of 0, and its targets are
    those of a clip that plays without effect. It is the same where a frame of the window is not
    valid.

    ``value`` is the window, frame after frame; :attr:`frame_sizes` has the parts of a frame.

    Args:
        cfg: The clips, the window and the starts.
        env: The environment.

    Raises:
        ValueError: A field of ``cfg`` is wrong. The message names it.
    """

    STATE = ("player", "_sampler", "_has_reference", "_pinned", "_withheld")

    available: torch.Tensor
    """1 where there is a reference to imitate, else 0. Shape: (num_envs,), float32."""
    window_root_pos_w: torch.Tensor
    """Base positions of the window, m, the target first. Shape: (num_envs, len(window), 3)."""
    window_root_quat_w: torch.Tensor
    """Base orientations of the window, (w, x, y, z), the target first.
    Shape: (num_envs, len(window), 4)."""
    target_gravity: torch.Tensor
    """Target of the unit gravity vector in the base frame. Shape: (num_envs, 3)."""
    target_lin_vel_b: torch.Tensor
    """Target of the base's velocity in its frame, m/s. Shape: (num_envs, 3)."""
    target_ang_vel_b: torch.Tensor
    """Target of the base's angular velocity in its frame, rad/s. Shape: (num_envs, 3)."""
    target_joint_pos: torch.Tensor
    """Target joint positions, rad. Shape: (num_envs, num_joints)."""
    target_joint_vel: torch.Tensor
    """Target joint velocities, rad/s. Shape: (num_envs, num_joints)."""
    target_key_pos_b: torch.Tensor
    """Target positions of the key bodies in the base frame, m. Shape: (num_envs, num_key_bodies,
    3)."""

    def __init__(self, cfg: MotionCommandCfg, env: Env):
        cfg.check()
        robot = env.sim.robot
        device = env.device

        self.cfg = cfg
        """The clips, the window and the starts."""
        self._env = env
        library = MotionLibrary(cfg.load(robot), robot, device, cfg.end)

        self.key_bodies = cfg.key_bodies or robot.foot_names
        """Names of the bodies of ``target_key_pos_b``, for ``RobotState.bodies``."""
        self.player = MotionPlayer(library, env.num_envs)
        """Clip of each environment and the time in it, which is that of the robots' present
        state."""
        self._body_ids = library.body_ids(robot.base_body, *self.key_bodies)
        self._sampler = StartSampler(library, cfg.starts)
        self._random = env.random.stream("command/motion")
        # In float64, as the times of the player.
        self._window = torch.tensor(cfg.window, dtype=torch.float64, device=device) * env.step_dt
        # The simulation's body positions are one physics step older than the control step.
        self._body_offset = env.step_dt - env.sim.cfg.dt
        self._has_reference = torch.ones(env.num_envs, dtype=torch.bool, device=device)
        self._pinned: tuple[torch.Tensor, ...] | None = None
        self._withheld: torch.Tensor | None = None
        # The robot then keeps the poses of these bodies up to date.
        env.robot.bodies(self.key_bodies)
        self._set(self._compute_targets(torch.arange(env.num_envs, device=device)))

    @property
    def frame_sizes(self) -> dict[str, int]:
        """Length of each part of a window frame, in its order.

        The parts are joint positions relative to the default pose, rad; joint velocities, rad/s ·
        0.05; gravity and velocity, m/s, in the base frame; angular velocity, rad/s · 0.25; height,
        m.
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
        """Let environments start at given times of given clips from their next reset on.

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
        """Leave environments without a reference from their next reset on.

        Args:
            mask: True for these environments. Shape: (num_envs,), bool.

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
        """Undo :meth:`pin` and :meth:`withhold`: starts are drawn again."""
        self._pinned = None
        self._withheld = None

    def end_episodes(self, env_ids: torch.Tensor) -> None:
        """Record the failures of ``env_ids`` (n,) for adaptive starts."""
        if self.cfg.starts.adaptive:
            terminated = self._env.terminations.terminated[env_ids]
            # Without a reference a fall is not the fault of a place in a clip.
            failed = terminated & self._has_reference[env_ids]
            clips = self.player.clip[env_ids]
            times = self.player.time[env_ids]
            self._sampler.record(clips, times, failed)

    def reset(self, env_ids: torch.Tensor) -> None:
        """Draw a start for ``env_ids`` (n,)."""
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
        """Let one control step pass."""
        self.player.advance(self._env.step_dt)
        # A slice: indices of all environments would copy all rows.
        self._set(self._compute_targets(slice(None)))

    def start_pose(self, env_ids: torch.Tensor) -> tuple[torch.Tensor, MotionSample]:
        """Return the environments with a reference, and their references at the present time.

        Args:
            env_ids: Indices of environments. Shape: (n,).

        Returns:
            Indices of those with a reference, (m,), and the reference of each, (m, …).
        """
        followers = env_ids[self._has_reference[env_ids]]
        return followers, self.player.sample(env_ids=followers)

    def _set(self, targets: _Targets) -> None:
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

    def _set_rows(self, env_ids: torch.Tensor, rows: _Targets) -> None:
        """Set the tensors of ``env_ids`` (n,)."""

        def with_rows(tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            return tensor.index_copy(0, env_ids, values)

        self._set(
            _Targets(
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
            )
        )

    def _compute_targets(self, env_ids: torch.Tensor | slice) -> _Targets:
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
        return _Targets(
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
        )

    def _sample_bodies(self, env_ids: torch.Tensor | slice) -> BodySample:
        """Sample the base and the key bodies at the time of the simulation's own body positions."""
        clips = self.player.clip[env_ids]
        times = self.player.time[env_ids] + self._body_offset
        return self.player.library.sample_bodies(clips, times, self._body_ids)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from ``state_dict``; targets and window follow from it.

        Raises:
            KeyError: A part of the state is missing.
        """
        super().load_state_dict(state)
        self._set(self._compute_targets(slice(None)))


def motion_command(commands: Commands, name: str = "motion") -> "MotionCommand":
    """Return a motion command by name.

    Args:
        commands: The commands of an environment (:class:`~legged_envs.managers.CommandManager`).
        name: Name of the command.

    Raises:
        ValueError: There is no motion command with that name.
    """
    term = commands.terms.get(name)
    if not isinstance(term, MotionCommand):
        raise ValueError(
            f"the task has no motion command {name!r}; its commands: {', '.join(commands.terms)}"
        )
    return term
