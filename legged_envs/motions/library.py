"""Many clips of one robot on a device, sampled at arbitrary times."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch.nn.functional import embedding  # rows by number, several times as fast as an index

from legged_envs import rotation
from legged_envs.checks import check_choice, check_known
from legged_envs.motions.kinematics import body_names, continuous
from legged_envs.motions.motion import Motion, MotionError, check_frame_rate, require
from legged_envs.robots import RobotCfg
from legged_envs.state import Stateful
from legged_envs.tables import Table, TableRepr

End = Literal["clip", "loop", "hold"]
ON_FRAME = 1e-4  # a time this close to a frame, in frames, is that frame: control steps then read frames, not mixtures


@dataclass(frozen=True, eq=False)
class MotionSample:
    """The reference at some times. Fields as in :class:`Motion`, shapes start with that of the times asked for."""

    root_pos_w: torch.Tensor
    root_quat_w: torch.Tensor
    root_lin_vel_w: torch.Tensor
    root_ang_vel_b: torch.Tensor
    joint_pos: torch.Tensor
    joint_vel: torch.Tensor
    valid: torch.Tensor
    ended: torch.Tensor
    """Whether all frames of the sample may be imitated, and whether a clip that does not repeat is at its last one."""

    def __getitem__(self, index: object) -> "MotionSample":
        return MotionSample(**{field: values[index] for field, values in vars(self).items()})


@dataclass(frozen=True, eq=False)
class BodySample:
    """Bodies at some times, as in :class:`Motion`. Shapes: that of the times, then (number of bodies, 3 or 4)."""

    pos_w: torch.Tensor
    quat_w: torch.Tensor
    lin_vel_w: torch.Tensor
    ang_vel_w: torch.Tensor
    """m, (w, x, y, z), m/s and rad/s."""


@dataclass(frozen=True)
class _Times:
    """Where times lie among the frames of their clips, tensors of the times' shape: ``blend`` in [0, 1) of the way from
    frame ``low`` to ``high`` of all clips' frames, after ``cycle`` repetitions, both float32; ``outside`` is a time
    before or after a clip that does not repeat, ``ended`` one at or after its last frame."""

    clips: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    blend: torch.Tensor
    cycle: torch.Tensor
    outside: torch.Tensor
    ended: torch.Tensor


class MotionLibrary(TableRepr):
    """Clips of one robot at one frame rate, sampled at any times. Between two frames positions and velocities are
    interpolated linearly and rotations along the shorter arc. After its last frame a clip is *held* (the last pose at
    rest, likewise the first pose before time 0) or *looped*: the first frame follows, moved and turned on the ground to
    where the last one was. ``end`` says which: ``"loop"`` and ``"hold"`` treat all alike, ``"clip"`` does as each
    :attr:`Motion.loop` says; a clip that was not made for it jumps where it loops. MotionError where a clip does not
    fit ``robot``, or has the name of another or another frame rate; ValueError for another ``end``, and for a body that
    the robot has not got."""

    def __init__(
        self,
        motions: Sequence[Motion],
        robot: RobotCfg,
        device: str | torch.device = "cpu",
        end: End = "clip",
    ):
        check_choice("end", end, get_args(End))
        _check_clips(motions, robot)
        self.robot, self.device, self.num_clips = robot, torch.device(device), len(motions)
        self.names = tuple(motion.name for motion in motions)
        self.body_names, self.frame_rate = motions[0].body_names, motions[0].frame_rate
        self.duration = torch.tensor(
            [motion.duration for motion in motions], dtype=torch.float32, device=device
        )
        self.weight = torch.tensor(
            [motion.weight for motion in motions], dtype=torch.float32, device=device
        )
        self.num_frames = torch.tensor([motion.num_frames for motion in motions], device=device)
        loops = [motion.loop if end == "clip" else end == "loop" for motion in motions]
        self.loops = torch.tensor(loops, device=device)
        """What each :class:`Motion` says, and whether ``end`` has it looped. Shape: (num_clips,)."""
        self.first_frame = self.num_frames.cumsum(0) - self.num_frames
        """Place of each clip's first frame among all frames. Shape: (num_clips,)."""
        self._base = torch.zeros(1, dtype=torch.int64, device=device)
        self._store(motions)

    def _store(self, motions: Sequence[Motion]) -> None:
        """Lay the frames of all clips one after the other: few large tensors, so that a sample takes few gathers."""

        def joined(field: str) -> torch.Tensor:
            return torch.cat([getattr(motion, field) for motion in motions]).to(self.device)

        def with_base(field: str) -> torch.Tensor:
            """Rows of each frame: the base's, then those of all bodies."""
            return torch.cat(
                (joined(f"root_{field}").unsqueeze(1), joined(f"body_{field}")), dim=1
            ).flatten(0, 1)

        self.valid = joined(
            "valid"
        )  # whether each frame may be imitated, (total number of frames,)
        ang_vel = joined("body_ang_vel_w")
        ang_vel = torch.cat((ang_vel[:, :1], ang_vel), dim=1).flatten(0, 1)
        self._vectors = torch.cat((with_base("pos_w"), with_base("lin_vel_w"), ang_vel), dim=-1)
        self._quats = with_base("quat_w")
        self._joints = torch.cat(
            [joined(field) for field in ("joint_pos", "joint_vel", "root_ang_vel_b")], dim=1
        )
        width = 1 + len(self.body_names)
        first, last = self.first_frame * width, (self.first_frame + self.num_frames - 1) * width
        turn = rotation.multiply(self._quats[last], rotation.conjugate(self._quats[first]))
        self._turn = rotation.twist_about_z(turn) * self.loops
        """How much each clip turns from one repetition to the next, rad. Shape: (num_clips,)."""
        start, end = self._vectors[first, :2], self._vectors[last, :2]
        self._step = (end - _turned(start, self._turn)) * self.loops.unsqueeze(1)
        """How far it moves on the ground after that turn, m. Shape: (num_clips, 2)."""
        self._moves_on = bool(self._turn.any() or self._step.any())

    def _describe(self) -> str:
        return f"{self.robot.name!r}, {self.num_clips} clips: {', '.join(self.names)}"

    def _as_tables(self) -> list[Table]:
        columns = (
            self.duration.tolist(),
            self.num_frames.tolist(),
            self.loops.tolist(),
            self.weight.tolist(),
        )
        header = ("clip", "duration [s]", "frames", "loops", "weight")
        return [(repr(self), header, [*zip(self.names, *columns, strict=True)])]

    def clip_ids(self, *names: str) -> torch.Tensor:
        """Numbers of the clips ``names``, (n,) int64; ValueError if there is no such clip."""
        check_known("there is no clip", names, self.names, "clips")
        return torch.tensor([self.names.index(name) for name in names], device=self.device)

    def body_ids(self, *names: str) -> torch.Tensor:
        """Numbers of bodies by name, for :meth:`sample_bodies`. Shape: (len(names),)."""
        check_known(f"robot {self.robot.name!r} has no body", names, self.body_names, "bodies")
        return torch.tensor([self.body_names.index(name) for name in names], device=self.device)

    def sample(self, clips: torch.Tensor, times: torch.Tensor) -> MotionSample:
        """Base and joints of ``clips`` at ``times``, s; the shapes broadcast."""
        at, num_joints = self._locate(clips, times), self.robot.num_joints
        base = self._bodies_at(at, self._base)
        joints = torch.lerp(
            embedding(at.low, self._joints),
            embedding(at.high, self._joints),
            at.blend.unsqueeze(-1),
        )
        joints[..., num_joints:].masked_fill_(at.outside.unsqueeze(-1), 0.0)
        joint_pos, joint_vel, ang_vel_b = joints.split((num_joints, num_joints, 3), dim=-1)
        pos, quat, lin_vel = (
            values[..., 0, :] for values in (base.pos_w, base.quat_w, base.lin_vel_w)
        )
        valid = self.valid[at.low] & self.valid[at.high]
        return MotionSample(pos, quat, lin_vel, ang_vel_b, joint_pos, joint_vel, valid, at.ended)

    def sample_bodies(
        self, clips: torch.Tensor, times: torch.Tensor, bodies: torch.Tensor | None = None
    ) -> BodySample:
        """Some bodies, by :meth:`body_ids`, or all, of ``clips`` at ``times``, s; the shapes of both broadcast."""
        bodies = self.body_ids(*self.body_names) if bodies is None else bodies
        return self._bodies_at(self._locate(clips, times), 1 + bodies)

    def _locate(self, clips: torch.Tensor, times: torch.Tensor) -> _Times:
        """Find the frames around ``times``. In float64, for long times."""
        clips, times = torch.broadcast_tensors(clips, times)
        last = (self.num_frames[clips] - 1).double()
        frame = times.double() * self.frame_rate
        nearest = frame.round()
        frame = torch.where((frame - nearest).abs() < ON_FRAME, nearest, frame)
        loops = self.loops[clips]
        ended = ~loops & (frame >= last)
        cycle = torch.floor(frame / last) * loops
        frame = frame - cycle * last
        outside = (frame < 0.0) | (frame > last)
        frame = frame.clamp(torch.zeros_like(last), last)
        below = frame.floor()
        first = self.first_frame[clips]
        low, high = first + below.long(), first + frame.ceil().long()
        return _Times(clips, low, high, (frame - below).float(), cycle.float(), outside, ended)

    def _bodies_at(self, at: _Times, columns: torch.Tensor) -> BodySample:
        """The bodies ``columns`` (b,) of the frames' rows: 0 for the base, 1 + i for body i."""
        width, blend = 1 + len(self.body_names), at.blend.unsqueeze(-1)
        low, high = (
            (at.low * width).unsqueeze(-1) + columns,
            (at.high * width).unsqueeze(-1) + columns,
        )
        vectors = torch.lerp(
            embedding(low, self._vectors), embedding(high, self._vectors), blend.unsqueeze(-1)
        )
        quats = rotation.slerp(embedding(low, self._quats), embedding(high, self._quats), blend)
        if self._moves_on:
            vectors, quats = self._move_on(at, vectors, quats)
        vectors[..., 3:].masked_fill_(at.outside[..., None, None], 0.0)
        pos, lin_vel, ang_vel = vectors.split(3, dim=-1)
        return BodySample(pos, quats, lin_vel, ang_vel)

    def _move_on(
        self, at: _Times, vectors: torch.Tensor, quats: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Apply the displacement of k repetitions: p → R^k p + (1 + R + … + R^(k−1)) s for turn R, step s."""
        half_turn = self._turn[at.clips] / 2.0
        turn = self._turn[at.clips] * at.cycle
        # The sum of the first k powers of R is R^((k−1)/2) sin(kα/2) / sin(α/2), also for negative k.
        straight = half_turn.sin().abs() < 1e-6
        sine = torch.where(straight, 1.0, half_turn.sin())
        ratio = torch.where(straight, at.cycle, (half_turn * at.cycle).sin() / sine)
        shift = _turned(self._step[at.clips], half_turn * (at.cycle - 1.0)) * ratio.unsqueeze(-1)
        moved = vectors.unflatten(-1, (3, 3))
        planar = _turned(moved[..., :2], turn[..., None, None])
        planar[..., 0, :] += shift.unsqueeze(-2)
        moved = torch.cat((planar, moved[..., 2:]), dim=-1).flatten(-2)
        return moved, rotation.multiply(rotation.from_yaw(turn).unsqueeze(-2), quats)


class MotionPlayer(Stateful):
    """Which clip of a library each environment imitates, and where in it it is."""

    STATE = ("clip", "time")

    def __init__(self, library: MotionLibrary, num_envs: int):
        self.library = library
        self.clip = torch.zeros(num_envs, dtype=torch.int64, device=library.device)
        self.time = torch.zeros(num_envs, dtype=torch.float64, device=library.device)
        """Time since the clip's first frame, s; it goes on past the end. Shape of both: (num_envs,)."""

    @property
    def phase(self) -> torch.Tensor:
        """Part of the clip played, in [0, 1]; a looping clip starts again at 0. Shape: (num_envs,), float32."""
        played = self.time / self.library.duration[self.clip]
        return torch.where(
            self.library.loops[self.clip], played - played.floor(), played.clamp(0.0, 1.0)
        ).float()

    def start(self, env_ids: torch.Tensor, clips: torch.Tensor, times: torch.Tensor) -> None:
        """Put ``env_ids`` at ``times`` of ``clips``, s; ValueError if there is no such clip. Shapes: (n,)."""
        if len(clips) and not 0 <= int(clips.min()) <= int(clips.max()) < self.library.num_clips:
            raise ValueError(
                f"clips must be in [0, {self.library.num_clips}), got {clips.tolist()}"
            )
        self.clip[env_ids] = clips
        self.time[env_ids] = times.double()

    def advance(self, dt: float) -> None:
        """Let ``dt`` s pass in every environment."""
        self.time += dt

    def sample(
        self, offsets: torch.Tensor | None = None, env_ids: torch.Tensor | slice = slice(None)
    ) -> MotionSample:
        """The reference of n environments, default all, (n, …), or with ``offsets`` (K,) from now, s, (n, K, …)."""
        clip, time = self.clip[env_ids], self.time[env_ids]
        if offsets is None:
            return self.library.sample(clip, time)
        return self.library.sample(clip.unsqueeze(1), time.unsqueeze(1) + offsets)


def resample(motion: Motion, robot: RobotCfg, frame_rate: float) -> Motion:
    """The motion interpolated at another frame rate; it loses up to one new frame at its end if it does not loop.
    MotionError for a frame rate that is not positive and finite, or that does not divide a loop into whole frames."""
    check_frame_rate(frame_rate, motion.origin)
    frames = motion.duration * frame_rate
    closes = not motion.loop or abs(frames - round(frames)) <= 1e-6 * frames
    expected = f"such that the loop of {motion.duration:g} s lasts a whole number of frames"
    require(closes, motion.origin, "frame rate", expected, f"{frame_rate:g} Hz")
    times = torch.arange(int(frames + 1e-6) + 1, dtype=torch.float64) / frame_rate
    library, clip = MotionLibrary([motion], robot, end="hold"), torch.zeros(1, dtype=torch.long)
    bodies = {
        f"body_{field}": values
        for field, values in vars(library.sample_bodies(clip, times)).items()
    }
    sampled: dict[str, Any] = vars(library.sample(clip, times)) | bodies
    del sampled["ended"]
    sampled |= {field: continuous(values) for field, values in sampled.items() if "quat" in field}
    return replace(motion, frame_rate=frame_rate, **sampled)


def _turned(planar: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """Vectors (..., 2) turned by ``angle`` (...,) rad."""
    x, y = planar.unbind(-1)
    cosine, sine = angle.cos(), angle.sin()
    return torch.stack((cosine * x - sine * y, sine * x + cosine * y), dim=-1)


def _check_clips(motions: Sequence[Motion], robot: RobotCfg) -> None:
    if not motions:
        raise MotionError("a library needs at least one motion, got none")
    fitting = {
        "robot": robot.name,
        "joint_names": robot.joint_names,
        "body_names": body_names(robot),
    }
    first, origins = motions[0], dict[str, str]()
    for motion in motions:
        for field, expected in fitting.items():
            got = getattr(motion, field)
            require(
                got == expected, motion.origin, field, f"{expected!r} for {robot.name!r}", repr(got)
            )
        unlike = f"unlike that of {origins.get(motion.name)}"
        require(motion.name not in origins, motion.origin, "name", unlike, repr(motion.name))
        origins[motion.name] = motion.origin
        expected = f"{first.frame_rate:g} as that of {first.origin}; use legged_envs.motions.resample on one of them"
        require(
            motion.frame_rate == first.frame_rate,
            motion.origin,
            "frame_rate",
            expected,
            f"{motion.frame_rate:g}",
        )
