"""Many clips of one robot on a device, sampled at arbitrary times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import body_names
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.robots import RobotCfg

_ON_FRAME = 1e-4
"""A time this close to a frame, in frames, is that frame: control steps then read frames and not mixtures of two."""


@dataclass(frozen=True, eq=False)
class MotionSample:
    """The reference at some times. Fields as in :class:`Motion`, shapes start with that of the times asked for."""

    root_pos_w: torch.Tensor
    root_quat_w: torch.Tensor
    root_lin_vel_w: torch.Tensor
    root_ang_vel_b: torch.Tensor
    joint_pos: torch.Tensor
    joint_vel: torch.Tensor
    body_pos_w: torch.Tensor
    body_quat_w: torch.Tensor
    body_lin_vel_w: torch.Tensor
    body_ang_vel_w: torch.Tensor
    valid: torch.Tensor
    """Whether every frame that the sample was made of may be imitated."""
    ended: torch.Tensor
    """Whether the clip does not repeat and has come to its last frame."""

    def __getitem__(self, index: object) -> MotionSample:
        """The same of some of the times."""
        return MotionSample(**{field.name: getattr(self, field.name)[index] for field in fields(self)})


@dataclass(frozen=True)
class _Place:
    """Where times lie among the frames."""

    low: torch.Tensor
    high: torch.Tensor
    blend: torch.Tensor
    cycle: torch.Tensor
    """How often the clip was repeated before."""
    inside: torch.Tensor
    ended: torch.Tensor


class MotionLibrary:
    """Clips of one robot at one frame rate.

    Between two frames positions and velocities are interpolated linearly and rotations along the shorter arc. After
    its last frame a clip is *held* (the last pose at rest, likewise the first pose before time 0) or *looped*: the
    first frame follows, moved on the ground to where the last one was, so that a walking robot walks on and a turning
    one turns on.

    Args:
        motions: The clips.
        robot: The robot that they must fit.
        device: Where the frames are kept and samples are made.
        end: ``"loop"`` and ``"hold"`` treat all clips alike, ``"clip"`` does as each :attr:`Motion.loop` says. A clip
            that was not made to be looped jumps where it starts again.
        bodies: Bodies to sample, default all of the robot's.

    Raises:
        MotionError: A clip is of another robot, has other joints or bodies, a name or a frame rate differs.
    """

    def __init__(
        self,
        motions: Sequence[Motion],
        robot: RobotCfg,
        device: str | torch.device = "cpu",
        end: Literal["clip", "loop", "hold"] = "clip",
        bodies: Sequence[str] | None = None,
    ):
        if end not in ("clip", "loop", "hold"):
            raise ValueError(f"end must be 'clip', 'loop' or 'hold', got {end!r}")
        _check_clips(motions, robot)
        self.robot = robot
        self.device = torch.device(device)
        self.names = tuple(motion.name for motion in motions)
        """Names of the clips, in their order."""
        self.frame_rate = motions[0].frame_rate
        """Frames per second of all clips."""
        self.body_names = _known_bodies(robot, bodies)
        """Bodies of the samples."""
        self.duration = torch.tensor([motion.duration for motion in motions], device=self.device)
        """s. Shape: (num_clips,)."""
        self.loops = torch.tensor([motion.loop if end == "clip" else end == "loop" for motion in motions]).to(device)
        """Whether each clip is looped. Shape: (num_clips,)."""
        self.weight = torch.tensor([motion.weight for motion in motions], device=self.device)
        """See :attr:`Motion.weight`. Shape: (num_clips,)."""
        lengths = torch.tensor([motion.num_frames for motion in motions])
        self.num_frames = lengths.to(device)
        """Shape: (num_clips,)."""
        self.first_frame = (lengths.cumsum(0) - lengths).to(device)
        """Place of each clip's first frame among all frames. Shape: (num_clips,)."""
        self._store(motions, [body_names(robot).index(name) for name in self.body_names])

    @property
    def num_clips(self) -> int:
        """Number of clips."""
        return len(self.names)

    def clip_ids(self, *names: str) -> torch.Tensor:
        """Numbers of clips by name, for :meth:`sample`. Shape: (len(names),)."""
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise ValueError(f"there is no clip {unknown[0]!r}; clips: {', '.join(self.names)}")
        return torch.tensor([self.names.index(name) for name in names], device=self.device)

    def sample(self, clips: torch.Tensor, times: torch.Tensor) -> MotionSample:
        """The reference of ``clips`` at ``times``, s from their first frames; the shapes broadcast.

        Times may be anything: before 0, and as far after the end as float32 or float64 carries.
        """
        clips, times = torch.broadcast_tensors(clips, times)
        place = self._locate(clips, times)
        blend = place.blend.unsqueeze(-1)
        vectors = torch.lerp(self._vectors[place.low], self._vectors[place.high], blend.unsqueeze(-1))
        joints = torch.lerp(self._joints[place.low], self._joints[place.high], blend)
        quats = rotation.slerp(self._quats[place.low], self._quats[place.high], blend)
        if self._moves_on:
            vectors, quats = self._move_on(clips, place.cycle, vectors, quats)
        b, j = len(self.body_names), self.robot.num_joints
        at_rest = ~place.inside
        vectors[..., 1 + b :, :].masked_fill_(at_rest[..., None, None], 0.0)
        joints[..., j:].masked_fill_(at_rest[..., None], 0.0)
        return MotionSample(
            root_pos_w=vectors[..., 0, :],
            root_quat_w=quats[..., 0, :],
            root_lin_vel_w=vectors[..., 1 + b, :],
            root_ang_vel_b=joints[..., 2 * j :],
            joint_pos=joints[..., :j],
            joint_vel=joints[..., j : 2 * j],
            body_pos_w=vectors[..., 1 : 1 + b, :],
            body_quat_w=quats[..., 1:, :],
            body_lin_vel_w=vectors[..., 2 + b : 2 + 2 * b, :],
            body_ang_vel_w=vectors[..., 2 + 2 * b :, :],
            valid=self.valid[place.low] & self.valid[place.high],
            ended=place.ended,
        )

    def _store(self, motions: Sequence[Motion], bodies: list[int]) -> None:
        """Lay all frames one after the other: few large tensors, so that a sample takes few gathers."""

        def joined(field: str) -> torch.Tensor:
            return torch.cat([getattr(motion, field) for motion in motions]).to(self.device)

        of_root = {field: joined(field).unsqueeze(1) for field in ("root_pos_w", "root_lin_vel_w", "root_quat_w")}
        of_bodies = {
            field: joined(f"body_{field}")[:, bodies] for field in ("pos_w", "lin_vel_w", "ang_vel_w", "quat_w")
        }
        self._vectors = torch.cat(
            (
                of_root["root_pos_w"],
                of_bodies["pos_w"],
                of_root["root_lin_vel_w"],
                of_bodies["lin_vel_w"],
                of_bodies["ang_vel_w"],
            ),
            dim=1,
        )
        self._quats = torch.cat((of_root["root_quat_w"], of_bodies["quat_w"]), dim=1)
        self._joints = torch.cat([joined(field) for field in ("joint_pos", "joint_vel", "root_ang_vel_b")], dim=1)
        self.valid = joined("valid")
        """Whether each frame may be imitated. Shape: (total number of frames,)."""
        first, last = self.first_frame, self.first_frame + self.num_frames - 1
        turn = rotation.multiply(self._quats[last, 0], rotation.conjugate(self._quats[first, 0]))
        self._turn = rotation.twist_about_z(turn) * self.loops
        start, end = self._vectors[first, 0, :2], self._vectors[last, 0, :2]
        self._step = (end - _turned(start, self._turn)) * self.loops.unsqueeze(1)
        self._moves_on = bool((self._turn != 0.0).any() or (self._step != 0.0).any())

    def _locate(self, clips: torch.Tensor, times: torch.Tensor) -> _Place:
        """Find the frames around ``times``. In float64, for long times."""
        last = (self.num_frames[clips] - 1).double()
        frame = times.double() * self.frame_rate
        nearest = frame.round()
        frame = torch.where((frame - nearest).abs() < _ON_FRAME, nearest, frame)
        loops = self.loops[clips]
        ended = ~loops & (frame >= last)
        cycle = torch.floor(frame / last) * loops
        frame = frame - cycle * last
        inside = (frame >= 0.0) & (frame <= last)
        frame = frame.clamp(torch.zeros_like(last), last)
        below = frame.floor()
        first = self.first_frame[clips]
        return _Place(
            low=first + below.long(),
            high=first + frame.ceil().long(),
            blend=(frame - below).float(),
            cycle=cycle.float(),
            inside=inside,
            ended=ended,
        )

    def _move_on(
        self, clips: torch.Tensor, cycle: torch.Tensor, vectors: torch.Tensor, quats: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Apply the displacement of ``cycle`` repetitions: p → R^k p + (1 + R + … + R^(k−1)) s for turn R, step s."""
        half_turn = self._turn[clips] / 2.0
        turn = self._turn[clips] * cycle
        # The sum of the first k powers of R is R^((k−1)/2) sin(kα/2) / sin(α/2), also for negative k.
        straight = half_turn.sin().abs() < 1e-6
        ratio = torch.where(straight, cycle, (half_turn * cycle).sin() / torch.where(straight, 1.0, half_turn.sin()))
        shift = _turned(self._step[clips], half_turn * (cycle - 1.0)) * ratio.unsqueeze(-1)
        planar = _turned(vectors[..., :2], turn.unsqueeze(-1))
        planar[..., : 1 + len(self.body_names), :] += shift.unsqueeze(-2)
        moved = torch.cat((planar, vectors[..., 2:]), dim=-1)
        return moved, rotation.multiply(rotation.from_yaw(turn).unsqueeze(-2), quats)


def _turned(planar: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """Vectors (..., 2) turned by ``angle`` (...,) rad."""
    x, y = planar.unbind(-1)
    cosine, sine = angle.cos(), angle.sin()
    return torch.stack((cosine * x - sine * y, sine * x + cosine * y), dim=-1)


def _known_bodies(robot: RobotCfg, bodies: Sequence[str] | None) -> tuple[str, ...]:
    known = body_names(robot)
    chosen = known if bodies is None else tuple(bodies)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise ValueError(f"robot {robot.name!r} has no body {unknown[0]!r}; bodies: {', '.join(known)}")
    return chosen


def _check_clips(motions: Sequence[Motion], robot: RobotCfg) -> None:
    if not motions:
        raise MotionError("a library needs at least one motion, got none")
    for field, expected in (
        ("robot", robot.name),
        ("joint_names", robot.joint_names),
        ("body_names", body_names(robot)),
    ):
        for motion in motions:
            if getattr(motion, field) != expected:
                got = getattr(motion, field)
                raise MotionError(f"{motion.origin}: {field} must be {expected!r} for {robot.name!r}, got {got!r}")
    seen: dict[str, Motion] = {}
    for motion in motions:
        if motion.name in seen:
            raise MotionError(f"{motion.origin}: {seen[motion.name].origin} has the name {motion.name!r} already")
        seen[motion.name] = motion
        if motion.frame_rate != motions[0].frame_rate:
            raise MotionError(
                f"{motion.origin}: frame_rate is {motion.frame_rate:g} but that of {motions[0].origin} is "
                f"{motions[0].frame_rate:g}; use legged_envs.motions.resample on one of them"
            )
