import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch

UNIT_TOLERANCE = 1e-3  # how far the length of a quaternion may be from 1; text files with four decimals stay below
FIELDS = {
    "root": ("root_pos_w", "root_quat_w", "root_lin_vel_w", "root_ang_vel_b"),
    "joint": ("joint_pos", "joint_vel"),
    "body": ("body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w"),
}
"""The numbers of each frame of a :class:`Motion`."""


class MotionError(ValueError):
    """A motion that cannot be used; the message names the file, the row and the field."""


@dataclass(frozen=True, eq=False)
class Motion:
    """A clip of T frames at a constant frame rate, of a robot with J joints and B bodies, as every loader makes it.
    Frame i is at time i / frame_rate. Names and frames are those of :class:`~legged_envs.sim.Simulation`. MotionError
    for less than two frames, wrong shapes, dtypes other than float32, numbers that are not finite, quaternions that are
    not unit, a frame rate that is not positive, a negative weight, repeated names."""

    name: str
    robot: str
    frame_rate: float
    """Name of the :class:`~legged_envs.robots.RobotCfg` that moves, and frames per second."""
    joint_names: tuple[str, ...]
    body_names: tuple[str, ...]
    root_pos_w: torch.Tensor
    root_quat_w: torch.Tensor
    root_lin_vel_w: torch.Tensor
    root_ang_vel_b: torch.Tensor
    joint_pos: torch.Tensor
    joint_vel: torch.Tensor
    """Pose of the base, velocity of its origin, angular velocity in its own frame, (T, 3 or 4), and joints, (T, J)."""
    body_pos_w: torch.Tensor
    body_quat_w: torch.Tensor
    body_lin_vel_w: torch.Tensor
    body_ang_vel_w: torch.Tensor
    """Poses of all bodies, velocities of their origins, and their angular velocities. Shape: (T, B, 3 or 4)."""
    valid: torch.Tensor
    """Whether a frame may be imitated. Shape: (T,), bool."""
    loop: bool = False
    """Whether the last frame is the first of the next repetition, up to a displacement and a turn on the ground."""
    weight: float = 1.0
    source: str = ""
    """Weight with which the clip is drawn, and the file or function it is from, for error messages."""

    def __post_init__(self) -> None:
        check_frame_rate(self.frame_rate, self.origin)
        require(
            0.0 <= self.weight < math.inf,
            self.origin,
            "weight",
            "finite and not negative",
            self.weight,
        )
        for field, names in (("joint_names", self.joint_names), ("body_names", self.body_names)):
            require(
                0 < len(set(names)) == len(names), self.origin, field, "unique and not empty", names
            )
        frames = {field: getattr(self, field) for fields in FIELDS.values() for field in fields}
        check_frames(frames, self.joint_names, self.body_names, self.origin, torch.float32)
        expected, got = (
            f"({self.num_frames},) torch.bool",
            f"{tuple(self.valid.shape)} {self.valid.dtype}",
        )
        require(got == expected, self.origin, "valid", expected, got)

    @property
    def origin(self) -> str:
        """What errors call it: the file that it is from, or its name."""
        return self.source or f"motion {self.name!r}"

    @property
    def num_frames(self) -> int:
        """Number of frames."""
        return len(self.root_pos_w)

    @property
    def duration(self) -> float:
        """Time from the first to the last frame, s."""
        return (self.num_frames - 1) / self.frame_rate


def require(fine: bool, origin: str, field: str, expected: str, got: object) -> None:
    """Raise MotionError unless ``fine``; it says that ``field`` of ``origin`` must be ``expected``, and is ``got``."""
    if not fine:
        raise MotionError(f"{origin}: {field} must be {expected}, got {got}")


def check_frame_rate(frame_rate: float, origin: str) -> None:
    require(
        math.isfinite(frame_rate) and frame_rate > 0.0,
        origin,
        "frame rate",
        "finite and positive",
        frame_rate,
    )


def check_keys(
    found: Collection[str], required: Sequence[str], origin: str, optional: Sequence[str] = ()
) -> None:
    known = (*required, *optional)
    problems = [f"lacks field {key!r}" for key in required if key not in found]
    problems += [f"has the unknown field {key!r}" for key in found if key not in known]
    if problems:
        raise MotionError(f"{origin}: {problems[0]}; expected {', '.join(known)}")


def check_frames(
    fields: Mapping[str, torch.Tensor],
    joint_names: Sequence[str],
    body_names: Sequence[str],
    origin: str,
    dtype: torch.dtype = torch.float64,
) -> None:
    """Raise MotionError unless ``fields`` (T, …) are frames of one motion, T at least 2, with shapes as in a Motion."""
    num_frames = (*next(iter(fields.values())).shape, 0)[0]
    require(num_frames >= 2, origin, "a motion", "at least 2 frames", num_frames)
    for field, values in fields.items():
        axes = "wxyz" if "quat" in field else "xyz"
        columns = {"root": (axes,), "joint": (joint_names,), "body": (body_names, axes)}[
            field.split("_")[0]
        ]
        expected, got = (
            f"{(num_frames, *map(len, columns))} {dtype}",
            f"{tuple(values.shape)} {values.dtype}",
        )
        require(got == expected, origin, field, expected, got)
        if len(bad := (~values.isfinite()).nonzero()):
            frame, *place = bad[0].tolist()
            column = ".".join(names[i] for names, i in zip(columns, place, strict=True))
            number = values[(frame, *place)].item()
            raise MotionError(
                f"{origin}: frame {frame}: {field}[{column}] must be a finite number, got {number}"
            )
        if axes == "wxyz":
            check_unit(values, origin, field)


def check_unit(
    quaternions: torch.Tensor, origin: str, field: str, row: str = "frame", first: int = 0
) -> None:
    """Raise MotionError at the first of ``quaternions`` (T, …, 4) not of length 1; rows count from ``first``."""
    length = torch.linalg.vector_norm(quaternions, dim=-1)
    if len(bad := ((length - 1.0).abs() > UNIT_TOLERANCE).nonzero()):
        place = tuple(bad[0].tolist())
        got = f"{quaternions[place].tolist()} of length {length[place].item():.4g}"
        require(False, f"{origin}: {row} {place[0] + first}", field, "a unit quaternion", got)
