"""Reference motions as a command: imitate this clip from here on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from legged_envs import rotation
from legged_envs.checks import check_known, check_number
from legged_envs.configuration import Configuration
from legged_envs.mdp.commands import CommandTerm
from legged_envs.mdp.context import Env
from legged_envs.motions import Motion, MotionLibrary, MotionPlayer, MotionSample, shipped_motions
from legged_envs.motions.starts import StartCfg, StartSampler
from legged_envs.robots import RobotCfg

MOVING_SPEED = 0.1  # a reference whose base moves faster than this asks the robot to move (m/s and rad/s together)
JOINT_VEL_SCALE, ANG_VEL_SCALE = 0.05, 0.25  # in the window, as in the policy's own observation


@dataclass
class MotionCommandCfg(Configuration):
    """Each episode imitates a clip from a drawn time on, or has no reference at all."""

    motions: Callable[[RobotCfg], Sequence[Motion]] = shipped_motions
    """Gives the clips, all of one frame rate: for your own, ``MotionFiles(("kick.npz",))`` or a function of yours."""
    clips: tuple[str, ...] = ()
    """Names of the clips to imitate; empty for all of them."""
    key_bodies: tuple[str, ...] = ()
    """Bodies whose position in the base frame is to be that of the reference; empty for the feet."""
    window: tuple[int, ...] = (1, 2, 4, 8)
    """Which control steps ahead the reference observation shows; the first must be 1."""
    reference_fraction: float = 0.7
    """Probability that an episode has a reference; the others follow the velocity command."""
    end: Literal["clip", "loop", "hold"] = "clip"
    """What follows the end of a clip: see :class:`MotionLibrary`."""
    starts: StartCfg = field(default_factory=StartCfg)
    """Where episodes start. Adaptive starts depend on all failures so far, also those before a seeded ``reset``."""

    def build(self, env: Env) -> "MotionCommand":
        """Make the motion commands of an environment; ValueError, naming the field or the clip, if the window or a
        fraction makes no sense, or a clip does not fit the robot."""
        return MotionCommand(self, env)

    def load(self, robot: RobotCfg) -> list[Motion]:
        """The clips of ``robot`` to imitate; ValueError if there is none of one of the names."""
        motions = list(self.motions(robot))
        names = [motion.name for motion in motions]
        check_known("MotionCommandCfg.clips: there is no clip", self.clips, names, "clips")
        return [motion for motion in motions if not self.clips or motion.name in self.clips]


class MotionCommand(CommandTerm):
    """The reference of every environment: its target one control step ahead, and a window of the steps to come. After a
    step the robot should be where the ``target_…`` of before the step said; those of the bodies are one physics step
    older, as are the simulation's own body positions. Without a reference (``available`` 0), also where a frame of the
    window is not valid, the window is 0, and the targets are those of a clip that plays on unseen. The command's
    ``value`` is the window frame after frame, see :meth:`frame_sizes`. ValueError, naming the field, if ``cfg`` makes
    no sense."""

    STATE = ("player", "_sampler", "_has_reference", "_pinned", "_withheld")

    def __init__(self, cfg: MotionCommandCfg, env: Env):
        if not cfg.window or cfg.window[0] != 1 or list(cfg.window) != sorted(set(cfg.window)):
            raise ValueError(
                f"MotionCommandCfg.window must rise from 1, e.g. (1, 2, 4, 8), got {cfg.window}"
            )
        check_number("MotionCommandCfg.reference_fraction", cfg.reference_fraction, 0.0, 1.0)
        self.cfg, self._env = cfg, env
        robot, device = env.sim.robot, env.device
        library = MotionLibrary(cfg.load(robot), robot, device, cfg.end)
        self.key_bodies = cfg.key_bodies or robot.foot_names
        """Names of the bodies of ``target_key_pos_b`` and, for terms, of ``RobotState.bodies``."""
        self.player = MotionPlayer(library, env.num_envs)
        """Which clip each environment imitates and the time in it, that of the robots' present state."""
        self._body_ids = library.body_ids(robot.base_body, *self.key_bodies)
        self._sampler = StartSampler(library, cfg.starts)
        self._random = env.random.stream("command/motion")
        self._window = torch.tensor(cfg.window, dtype=torch.float64, device=device) * env.step_dt
        self._body_offset = env.step_dt - env.sim.cfg.dt
        self._has_reference = torch.ones(env.num_envs, dtype=torch.bool, device=device)
        self._pinned: tuple[torch.Tensor, ...] | None = None
        self._withheld: torch.Tensor | None = None
        env.robot.bodies(self.key_bodies)
        self._set(self._targets(torch.arange(env.num_envs, device=device)))

    available: torch.Tensor
    """1 where there is a reference to imitate, else 0. Shape: (num_envs,), float32."""
    window_root_pos_w: torch.Tensor
    window_root_quat_w: torch.Tensor
    """Base positions [m] and orientations of the window, the target first. Shape: (num_envs, len(window), 3 or 4)."""
    target_gravity: torch.Tensor
    target_lin_vel_b: torch.Tensor
    target_ang_vel_b: torch.Tensor
    """Direction of gravity, velocity [m/s] and angular velocity [rad/s] in the base frame. Shape: (num_envs, 3)."""
    target_joint_pos: torch.Tensor
    target_joint_vel: torch.Tensor
    """Shape: (num_envs, num_joints), in rad and rad/s."""
    target_key_pos_b: torch.Tensor
    """Positions of the key bodies in the base frame, m. Shape: (num_envs, num_key_bodies, 3)."""

    @property
    def frame_sizes(self) -> dict[str, int]:
        """Lengths of a window frame's parts: joint positions relative to the default pose [rad], joint velocities
        [rad/s] · 0.05, gravity and velocity [m/s] in the base frame, angular velocity [rad/s] · 0.25, height [m]."""
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
        """From their next reset on, let every environment start at its time [s] of its clip, a number in
        ``player.library.names``, (num_envs,) or (); ValueError for another shape, an unknown clip or infinite time."""
        n, names = self._env.num_envs, self.player.library.names
        for name, values in (("clips", clips), ("times", times)):
            if values.shape not in ((), (n,)):
                raise ValueError(
                    f"pin needs {name} of shape () or ({n},), got {tuple(values.shape)}"
                )
        if not times.isfinite().all():
            raise ValueError(f"times must be finite, got {times.tolist()}")
        if not ((clips >= 0) & (clips < len(names)) & (clips == clips.floor())).all():
            known = ", ".join(f"{i} {name}" for i, name in enumerate(names))
            raise ValueError(f"clips must be whole numbers of {known}; got {clips.tolist()}")
        self._pinned = tuple(
            each.to(self._env.device).expand(n).clone() for each in (clips.long(), times.double())
        )

    def withhold(self, mask: torch.Tensor) -> None:
        """From their next reset on, leave the environments of ``mask`` (num_envs,) bool without a reference; ValueError
        for another shape or type."""
        if mask.shape != (self._env.num_envs,) or mask.dtype != torch.bool:
            got = f"{tuple(mask.shape)} {mask.dtype}"
            raise ValueError(f"withhold needs a mask ({self._env.num_envs},) torch.bool, got {got}")
        self._withheld = mask.to(self._env.device).clone()

    def release(self) -> None:
        """Undo :meth:`pin` and :meth:`withhold`: starts are drawn again."""
        self._pinned = self._withheld = None

    def end_episodes(self, env_ids: torch.Tensor) -> None:
        if self.cfg.starts.adaptive:
            failed = self._env.terminations.terminated[env_ids] & self._has_reference[env_ids]
            self._sampler.record(self.player.clip[env_ids], self.player.time[env_ids], failed)

    def reset(self, env_ids: torch.Tensor) -> None:
        clips, times = self._sampler.draw(self._random, env_ids)
        has_reference = (
            self._random.uniform(0.0, 1.0, 1, env_ids).squeeze(1) < self.cfg.reference_fraction
        )
        if self._pinned is not None:
            clips, times = (values[env_ids] for values in self._pinned)
            has_reference = torch.ones_like(has_reference)
        if self._withheld is not None:
            has_reference = has_reference & ~self._withheld[env_ids]
        self.player.start(env_ids, clips, times)
        self._has_reference = self._has_reference.index_copy(0, env_ids, has_reference)
        targets = self._targets(env_ids)
        self._set(
            {
                name: getattr(self, name).index_copy(0, env_ids, rows)
                for name, rows in targets.items()
            }
        )

    def advance(self) -> None:
        self.player.advance(self._env.step_dt)
        self._set(self._targets(slice(None)))

    def start_pose(self, env_ids: torch.Tensor) -> tuple[torch.Tensor, MotionSample]:
        """Those of ``env_ids`` with a reference (m,), and that reference at their present time (m, …)."""
        env_ids = env_ids[self._has_reference[env_ids]]
        return env_ids, self.player.sample(env_ids=env_ids)

    def _set(self, targets: dict[str, torch.Tensor]) -> None:
        vars(self).update(
            {name: value.contiguous() for name, value in targets.items()}
        )  # compiled terms trust strides

    def _targets(self, env_ids: torch.Tensor | slice) -> dict[str, torch.Tensor]:
        window = self.player.sample(self._window, env_ids)
        available = self._has_reference[env_ids] & window.valid.all(dim=1)
        to_base = rotation.conjugate(window.root_quat_w)
        lin_vel = rotation.rotate(to_base, window.root_lin_vel_w)
        gravity = rotation.rotate(to_base, lin_vel.new_tensor((0.0, 0.0, -1.0)))
        joint_pos, height = (
            window.joint_pos - self._env.robot.default_joint_pos,
            window.root_pos_w[..., 2:],
        )
        joint_vel, ang_vel = (
            window.joint_vel * JOINT_VEL_SCALE,
            window.root_ang_vel_b * ANG_VEL_SCALE,
        )
        frames = torch.cat((joint_pos, joint_vel, gravity, lin_vel, ang_vel, height), dim=-1)
        visible = available.float()
        speed = window.root_lin_vel_w[:, 0].norm(dim=1) + window.root_ang_vel_b[:, 0].norm(dim=1)
        moving = (speed > MOVING_SPEED).float()
        clip, body_time = self.player.clip[env_ids], self.player.time[env_ids] + self._body_offset
        bodies = self.player.library.sample_bodies(clip, body_time, self._body_ids)
        ways = bodies.pos_w[:, 1:] - bodies.pos_w[:, :1]
        return {
            "value": (frames * visible[:, None, None]).flatten(1),
            "moving": moving,
            "still": 1.0 - moving,
            "available": visible,
            "window_root_pos_w": window.root_pos_w,
            "window_root_quat_w": window.root_quat_w,
            "target_gravity": gravity[:, 0],
            "target_lin_vel_b": lin_vel[:, 0],
            "target_ang_vel_b": window.root_ang_vel_b[:, 0],
            "target_joint_pos": window.joint_pos[:, 0],
            "target_joint_vel": window.joint_vel[:, 0],
            "target_key_pos_b": rotation.rotate(rotation.conjugate(bodies.quat_w[:, :1]), ways),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from ``state_dict``, of which targets and window follow; KeyError if a part is missing."""
        super().load_state_dict(state)
        self._set(self._targets(slice(None)))


def motion_command(commands: Any, name: str = "motion") -> "MotionCommand":
    """The motion command ``name`` of a :class:`~legged_envs.managers.CommandManager`; ValueError if it has none."""
    term = commands.terms.get(name)
    if not isinstance(term, MotionCommand):
        raise ValueError(
            f"the task has no motion command {name!r}; its commands: {', '.join(commands.terms)}"
        )
    return term
