"""A library of reference clips of one robot, from which poses at any times are sampled."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

# It gathers rows of a tensor by their numbers, several times as fast as indexing does.
from torch.nn.functional import embedding

from legged_envs import rotation
from legged_envs.checks import check_choice, check_known
from legged_envs.motions.kinematics import body_names
from legged_envs.motions.motion import Motion, MotionError, require
from legged_envs.robots import RobotCfg
from legged_envs.tables import Table, TableRepr

End = Literal["clip", "loop", "hold"]
"""Behaviour of a library after the last frame of a clip.

``"loop"`` repeats all clips, ``"hold"`` holds the last pose of all clips, and ``"clip"`` treats
each clip by its field ``Motion.loop``.
"""
ON_FRAME = 1e-4
"""Distance of a time from a frame below which it is rounded to the frame, in frames.

With rounding errors in the times, control steps then still read exact frames.
"""


@dataclass(frozen=True, eq=False)
class MotionSample:
    """Pose and velocities of base and joints in reference clips, from :meth:`MotionLibrary.sample`.

    Shapes start with the shape of the sampled times, written as (…). J is the number of joints.
    """

    root_pos_w: torch.Tensor
    """Position of the base, m. Shape: (…, 3)."""
    root_quat_w: torch.Tensor
    """Orientation of the base, (w, x, y, z). Shape: (…, 4)."""
    root_lin_vel_w: torch.Tensor
    """Velocity of the base's origin in the world frame, m/s. Shape: (…, 3)."""
    root_ang_vel_b: torch.Tensor
    """Angular velocity of the base in the base frame, rad/s. Shape: (…, 3)."""
    joint_pos: torch.Tensor
    """Joint positions, rad. Shape: (…, J)."""
    joint_vel: torch.Tensor
    """Joint velocities, rad/s. Shape: (…, J)."""
    valid: torch.Tensor
    """True if the frames before and after the time are valid, so that the robot may imitate the
    sample. Shape: (…), bool."""
    ended: torch.Tensor
    """True if the time is at or after the last frame of a clip that does not loop. Shape: (…),
    bool."""

    def __getitem__(self, index: Any) -> "MotionSample":
        """Return the sample with ``index`` applied to the first dimensions of all tensors."""
        return MotionSample(
            root_pos_w=self.root_pos_w[index],
            root_quat_w=self.root_quat_w[index],
            root_lin_vel_w=self.root_lin_vel_w[index],
            root_ang_vel_b=self.root_ang_vel_b[index],
            joint_pos=self.joint_pos[index],
            joint_vel=self.joint_vel[index],
            valid=self.valid[index],
            ended=self.ended[index],
        )


@dataclass(frozen=True, eq=False)
class BodySample:
    """Poses and velocities of bodies in reference clips, from :meth:`MotionLibrary.sample_bodies`.

    Shapes start with the shape of the sampled times, written as (…), and the number b of bodies.
    """

    pos_w: torch.Tensor
    """Positions of the bodies' origins in the world frame, m. Shape: (…, b, 3)."""
    quat_w: torch.Tensor
    """Orientations in the world frame, (w, x, y, z). Shape: (…, b, 4)."""
    lin_vel_w: torch.Tensor
    """Velocities of the bodies' origins in the world frame, m/s. Shape: (…, b, 3)."""
    ang_vel_w: torch.Tensor
    """Angular velocities in the world frame, rad/s. Shape: (…, b, 3)."""


@dataclass(frozen=True)
class _FramePosition:
    """The two frames around each sampled time. All tensors have the shape of the times."""

    clips: torch.Tensor
    """Index of the clip of each time, int64."""
    low: torch.Tensor
    """Index of the last frame at or before each time, among the frames of all clips, int64."""
    high: torch.Tensor
    """Index of the first frame at or after each time, among the frames of all clips, int64."""
    blend: torch.Tensor
    """Time since frame ``low`` as a fraction of the time between two frames, in [0, 1), float32."""
    cycle: torch.Tensor
    """Number of completed repetitions of a clip that loops, 0 for other clips, float32."""
    outside: torch.Tensor
    """True for times before the first or after the last frame of a clip that does not loop."""
    ended: torch.Tensor
    """True for times at or after the last frame of a clip that does not loop."""


class MotionLibrary(TableRepr):
    """Reference clips of one robot on one device, from which poses at any times are sampled.

    Between two frames, positions and velocities are interpolated linearly, and orientations along
    the shorter arc.

    A clip that does not loop stays in its last pose after its end, and in its first pose before
    time 0. Its velocities there are 0. A clip that loops is repeated. Each repetition starts where
    the one before has ended: it is moved over the ground and turned about z. Clips that were not
    made for this have a jump in their pose at each repetition.

    Args:
        motions: The clips, all with the same frame rate.
        robot: Robot of the clips.
        device: Device of all tensors.
        end: Behaviour after the last frame. ``"loop"`` repeats all clips. ``"hold"`` repeats none.
            ``"clip"`` repeats those with :attr:`Motion.loop`.

    Raises:
        MotionError: A clip does not fit the robot, or has the name of another clip or another frame
            rate.
        ValueError: ``end`` is unknown.
    """

    def __init__(
        self,
        motions: Sequence[Motion],
        robot: RobotCfg,
        device: str | torch.device = "cpu",
        end: End = "clip",
    ):
        # Checked first, so that a wrong clip allocates nothing on the device.
        check_choice("end", end, get_args(End))
        _check_clips(motions, robot)
        self.robot = robot
        """Robot of the clips."""
        self.device = torch.device(device)
        """Device of all tensors."""
        self.num_clips = len(motions)
        """Number of clips."""
        self.names = tuple(motion.name for motion in motions)
        """Names of the clips, in the order of their indices."""
        self.body_names = motions[0].body_names
        """Names of the robot's bodies, the base first."""
        self.frame_rate = motions[0].frame_rate
        """Frame rate of all clips, Hz."""

        # Lists first: a tensor of Python floats in float32 rounds each of them once.
        durations = [motion.duration for motion in motions]
        weights = [motion.weight for motion in motions]
        num_frames = [motion.num_frames for motion in motions]
        loops = [motion.loop if end == "clip" else end == "loop" for motion in motions]

        self.duration = torch.tensor(durations, dtype=torch.float32, device=device)
        """Time from the first to the last frame of each clip, s. Shape: (num_clips,)."""
        self.weight = torch.tensor(weights, dtype=torch.float32, device=device)
        """Relative probability with which a start sampler draws each clip. Shape: (num_clips,)."""
        self.num_frames = torch.tensor(num_frames, device=device)
        """Number of frames of each clip. Shape: (num_clips,), int64."""
        self.loops = torch.tensor(loops, device=device)
        """True for clips that are repeated after their end. Shape: (num_clips,), bool."""
        self.first_frame = self.num_frames.cumsum(0) - self.num_frames
        """Index of each clip's first frame among the frames of all clips. Shape: (num_clips,),
        int64."""
        self.valid = self._join(motions, "valid")
        """True for each frame that a robot may imitate.

        The frames of all clips follow one another. Shape: (number of frames of all clips,), bool.
        """
        # Row 0 of each frame in the large tensors is the base.
        self._base = torch.zeros(1, dtype=torch.int64, device=device)
        self._store_frames(motions)
        self._measure_repetitions()

    def _join(self, motions: Sequence[Motion], field: str) -> torch.Tensor:
        """Return a field of all clips, one after the other."""
        return torch.cat([getattr(motion, field) for motion in motions]).to(self.device)

    def _join_with_base(self, motions: Sequence[Motion], field: str) -> torch.Tensor:
        """Return a field with 1 + B rows for each frame: the base, then the bodies."""
        base = self._join(motions, f"root_{field}").unsqueeze(1)
        bodies = self._join(motions, f"body_{field}")
        return torch.cat((base, bodies), dim=1).flatten(0, 1)

    def _store_frames(self, motions: Sequence[Motion]) -> None:
        """Lay out the frames in few large tensors, so that a sample takes few gathers."""
        # The base is also body 0, which has its angular velocity in the world frame.
        ang_vel = self._join(motions, "body_ang_vel_w")
        ang_vel = torch.cat((ang_vel[:, :1], ang_vel), dim=1).flatten(0, 1)
        pos = self._join_with_base(motions, "pos_w")
        lin_vel = self._join_with_base(motions, "lin_vel_w")
        self._vectors = torch.cat((pos, lin_vel, ang_vel), dim=-1)
        self._quats = self._join_with_base(motions, "quat_w")
        joint_fields = ("joint_pos", "joint_vel", "root_ang_vel_b")
        self._joints = torch.cat([self._join(motions, field) for field in joint_fields], dim=1)

    def _measure_repetitions(self) -> None:
        """Measure how clips that loop move and turn on the ground from one repetition to the
        next."""
        width = 1 + len(self.body_names)
        first = self.first_frame * width
        last = (self.first_frame + self.num_frames - 1) * width
        turn = rotation.multiply(self._quats[last], rotation.conjugate(self._quats[first]))
        # rad. Shape: (num_clips,).
        self._repetition_turn = rotation.twist_about_z(turn) * self.loops
        start = self._vectors[first, :2]
        end = self._vectors[last, :2]
        # After that turn, m. Shape: (num_clips, 2).
        step = end - _turn_planar(start, self._repetition_turn)
        self._repetition_step = step * self.loops.unsqueeze(1)
        # For clips on the spot, each sample is spared the displacement.
        self._repetitions_move = bool(self._repetition_turn.any() or self._repetition_step.any())

    def _describe(self) -> str:
        return f"{self.robot.name!r}, {self.num_clips} clips: {', '.join(self.names)}"

    def _as_tables(self) -> list[Table]:
        header = ("clip", "duration [s]", "frames", "loops", "weight")
        rows = zip(
            self.names,
            self.duration.tolist(),
            self.num_frames.tolist(),
            self.loops.tolist(),
            self.weight.tolist(),
            strict=True,
        )
        return [(repr(self), header, list(rows))]

    def clip_ids(self, *names: str) -> torch.Tensor:
        """Return the indices of clips in the library by their names.

        Shape: (len(names),), int64.

        Raises:
            ValueError: The library has no clip with one of the names.
        """
        check_known("there is no clip", names, self.names, "clips")
        return torch.tensor([self.names.index(name) for name in names], device=self.device)

    def body_ids(self, *names: str) -> torch.Tensor:
        """Return the indices of bodies by their names, for :meth:`sample_bodies`.

        Shape: (len(names),), int64.

        Raises:
            ValueError: The robot has no body with one of the names.
        """
        check_known(f"robot {self.robot.name!r} has no body", names, self.body_names, "bodies")
        return torch.tensor([self.body_names.index(name) for name in names], device=self.device)

    def sample(self, clips: torch.Tensor, times: torch.Tensor) -> MotionSample:
        """Return the pose and the velocities of base and joints at times in clips.

        ``clips`` and ``times`` are broadcast. The shapes of the result start with theirs.

        Args:
            clips: Index of the clip of each time, int64.
            times: Times since the first frame of the clip, s. They can be outside of the clip.
        """
        position = self._locate(clips, times)
        # The base is row 0 of each frame.
        base = self._sample_rows(position, self._base)
        low = embedding(position.low, self._joints)
        high = embedding(position.high, self._joints)
        # The base's angular velocity is stored with the joints, because it is in the base frame:
        # repetitions that turn about z do not change it.
        joints = torch.lerp(low, high, position.blend.unsqueeze(-1))
        num_joints = self.robot.num_joints
        # Held poses are at rest.
        joints[..., num_joints:].masked_fill_(position.outside.unsqueeze(-1), 0.0)
        joint_pos, joint_vel, ang_vel_b = joints.split((num_joints, num_joints, 3), dim=-1)
        return MotionSample(
            root_pos_w=base.pos_w[..., 0, :],
            root_quat_w=base.quat_w[..., 0, :],
            root_lin_vel_w=base.lin_vel_w[..., 0, :],
            root_ang_vel_b=ang_vel_b,
            joint_pos=joint_pos,
            joint_vel=joint_vel,
            valid=self.valid[position.low] & self.valid[position.high],
            ended=position.ended,
        )

    def sample_bodies(
        self, clips: torch.Tensor, times: torch.Tensor, bodies: torch.Tensor | None = None
    ) -> BodySample:
        """Return the poses and the velocities of bodies at times in clips.

        ``clips`` and ``times`` are broadcast. The shapes of the result start with theirs.

        Args:
            clips: Index of the clip of each time, int64.
            times: Times since the first frame of the clip, s. They can be outside of the clip.
            bodies: Indices of b bodies, from :meth:`body_ids`. Shape: (b,). None: all bodies.
        """
        if bodies is None:
            bodies = self.body_ids(*self.body_names)
        return self._sample_rows(self._locate(clips, times), 1 + bodies)

    def _locate(self, clips: torch.Tensor, times: torch.Tensor) -> _FramePosition:
        """Find the frames around ``times``."""
        clips, times = torch.broadcast_tensors(clips, times)
        last = (self.num_frames[clips] - 1).double()
        # In float64, for long times.
        frame = times.double() * self.frame_rate
        nearest = frame.round()
        frame = torch.where((frame - nearest).abs() < ON_FRAME, nearest, frame)
        loops = self.loops[clips]
        ended = ~loops & (frame >= last)
        # Also below 0: a time before the start of a loop is in its repetition −1.
        cycle = torch.floor(frame / last) * loops
        frame = frame - cycle * last
        outside = (frame < 0.0) | (frame > last)
        frame = frame.clamp(torch.zeros_like(last), last)
        # On a frame, low and high are the same frame, and the blend is 0.
        below = frame.floor()
        first = self.first_frame[clips]
        return _FramePosition(
            clips=clips,
            low=first + below.long(),
            high=first + frame.ceil().long(),
            blend=(frame - below).float(),
            cycle=cycle.float(),
            outside=outside,
            ended=ended,
        )

    def _sample_rows(self, position: _FramePosition, rows: torch.Tensor) -> BodySample:
        """Sample some ``rows`` (b,) of each frame: 0 for the base, 1 + i for body i."""
        width = 1 + len(self.body_names)
        low = (position.low * width).unsqueeze(-1) + rows
        high = (position.high * width).unsqueeze(-1) + rows
        blend = position.blend.unsqueeze(-1)
        low_vectors = embedding(low, self._vectors)
        high_vectors = embedding(high, self._vectors)
        vectors = torch.lerp(low_vectors, high_vectors, blend.unsqueeze(-1))
        low_quats = embedding(low, self._quats)
        high_quats = embedding(high, self._quats)
        quats = rotation.slerp(low_quats, high_quats, blend)
        if self._repetitions_move:
            vectors, quats = self._apply_repetitions(position, vectors, quats)
        # Held poses are at rest.
        vectors[..., 3:].masked_fill_(position.outside[..., None, None], 0.0)
        pos, lin_vel, ang_vel = vectors.split(3, dim=-1)
        return BodySample(pos_w=pos, quat_w=quats, lin_vel_w=lin_vel, ang_vel_w=ang_vel)

    def _apply_repetitions(
        self, position: _FramePosition, vectors: torch.Tensor, quats: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Apply the displacement of k repetitions: p → R^k p + (1 + R + … + R^(k−1)) s.

        R is the turn of a repetition and s its step.
        """
        half_turn = self._repetition_turn[position.clips] / 2.0
        turn = self._repetition_turn[position.clips] * position.cycle
        # The sum of the first k powers of R is R^((k−1)/2) sin(kα/2) / sin(α/2), also for negative
        # k.
        is_straight = half_turn.sin().abs() < 1e-6
        sine = torch.where(is_straight, 1.0, half_turn.sin())
        many_sine = (half_turn * position.cycle).sin()
        ratio = torch.where(is_straight, position.cycle, many_sine / sine)
        step = self._repetition_step[position.clips]
        turned_step = _turn_planar(step, half_turn * (position.cycle - 1.0))
        shift = turned_step * ratio.unsqueeze(-1)
        moved = vectors.unflatten(-1, (3, 3))
        planar = _turn_planar(moved[..., :2], turn[..., None, None])
        # Only the first of the three vectors is a position.
        planar[..., 0, :] += shift.unsqueeze(-2)
        moved = torch.cat((planar, moved[..., 2:]), dim=-1).flatten(-2)
        # Only position, velocities and orientation turn; heights and velocities along z stay.
        turned_quats = rotation.multiply(rotation.from_yaw(turn).unsqueeze(-2), quats)
        return moved, turned_quats


def _turn_planar(planar: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """Return vectors (…, 2) turned by ``angle`` (…,), rad."""
    x, y = planar.unbind(-1)
    cosine = angle.cos()
    sine = angle.sin()
    return torch.stack((cosine * x - sine * y, sine * x + cosine * y), dim=-1)


def _check_clips(motions: Sequence[Motion], robot: RobotCfg) -> None:
    if not motions:
        raise MotionError("a library needs at least one motion, got none")
    robot_fields = {
        "robot": robot.name,
        "joint_names": robot.joint_names,
        "body_names": body_names(robot),
    }
    first = motions[0]
    # Name of each clip → its file, so that the error about a repeated name gives both files.
    origins: dict[str, str] = {}
    for motion in motions:
        # Names, not only their number: columns in another order would be wrong without an error.
        for field, expected in robot_fields.items():
            got = getattr(motion, field)
            wanted = f"{expected!r} for {robot.name!r}"
            require(got == expected, motion.origin, field, wanted, repr(got))
        if motion.name in origins:
            raise MotionError(
                f"{motion.origin}: name must differ from the name of {origins[motion.name]}, got "
                f"{motion.name!r}"
            )
        origins[motion.name] = motion.origin
        if motion.frame_rate != first.frame_rate:
            raise MotionError(
                f"{motion.origin}: frame_rate must be {first.frame_rate:g}, as in "
                f"{first.origin}; use legged_envs.motions.resample on one of them, "
                f"got {motion.frame_rate:g}"
            )
