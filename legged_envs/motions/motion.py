"""A reference clip of one robot, and the checks of its numbers that every loader makes."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch

UNIT_TOLERANCE = 1e-3
"""Largest difference of a quaternion's length from 1.

Quaternions that were rounded to four decimals in a text file have smaller ones.
"""
FIELDS = {
    "root": ("root_pos_w", "root_quat_w", "root_lin_vel_w", "root_ang_vel_b"),
    "joint": ("joint_pos", "joint_vel"),
    "body": ("body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w"),
}
"""Names of the fields of a :class:`Motion` that have numbers for each frame.

``"root"`` belongs to the base, ``"joint"`` to the joints, ``"body"`` to the bodies.
"""


class MotionError(ValueError):
    """Error about a reference motion that cannot be used.

    The message names the file, the row or frame, and the field.
    """


@dataclass(frozen=True, eq=False)
class Motion:
    """A reference clip: T frames of a robot with J joints and B bodies at a constant frame rate.

    Frame i is at time i / ``frame_rate``. World z is up. Quaternions are (w, x, y, z). ``_w`` is
    the world frame, ``_b`` the base frame. All tensors with numbers are float32.

    Raises:
        MotionError: There are fewer than two frames, a shape is wrong, a dtype is not float32, a
            number is not finite, a quaternion is not a unit quaternion, the frame rate is not
            positive, the weight is negative, or names are repeated.
    """

    name: str
    """Name of the clip."""
    robot: str
    """Name of the robot, ``RobotCfg.name``."""
    frame_rate: float
    """Frames per second."""
    joint_names: tuple[str, ...]
    """Names of the J joints, in the order of the columns of ``joint_pos`` and ``joint_vel``."""
    body_names: tuple[str, ...]
    """Names of the B bodies, the base first."""
    root_pos_w: torch.Tensor
    """Position of the base in the world frame, m. Shape: (T, 3)."""
    root_quat_w: torch.Tensor
    """Orientation of the base in the world frame, (w, x, y, z). Shape: (T, 4)."""
    root_lin_vel_w: torch.Tensor
    """Velocity of the base's origin in the world frame, m/s. Shape: (T, 3)."""
    root_ang_vel_b: torch.Tensor
    """Angular velocity of the base in the base frame, rad/s. Shape: (T, 3)."""
    joint_pos: torch.Tensor
    """Joint positions, rad. Shape: (T, J)."""
    joint_vel: torch.Tensor
    """Joint velocities, rad/s. Shape: (T, J)."""
    body_pos_w: torch.Tensor
    """Positions of the bodies' origins in the world frame, m. Shape: (T, B, 3)."""
    body_quat_w: torch.Tensor
    """Orientations of the bodies in the world frame, (w, x, y, z). Shape: (T, B, 4)."""
    body_lin_vel_w: torch.Tensor
    """Velocities of the bodies' origins in the world frame, m/s. Shape: (T, B, 3)."""
    body_ang_vel_w: torch.Tensor
    """Angular velocities of the bodies in the world frame, rad/s. Shape: (T, B, 3)."""
    valid: torch.Tensor
    """True for frames that a robot may imitate. No episode starts next to the others, in which a
    recording is wrong, for example. Shape: (T,), bool."""
    loop: bool = False
    """True if the clip can be repeated: its last frame is the first frame of the next repetition.

    The two frames may differ by a displacement over the ground and a turn about z.
    """
    weight: float = 1.0
    """Probability with which episodes start in this clip, relative to other clips of a library."""
    source: str = ""
    """File or function from which the clip was made. It is used in error messages."""

    def __post_init__(self) -> None:
        check_frame_rate(self.frame_rate, self.origin)
        weight_is_fine = 0.0 <= self.weight < math.inf
        require(weight_is_fine, self.origin, "weight", "finite and not negative", self.weight)
        self._check_names("joint_names", self.joint_names)
        self._check_names("body_names", self.body_names)
        # A motion that a user makes by hand is checked like one from a file.
        frames = {}
        for fields in FIELDS.values():
            for field in fields:
                frames[field] = getattr(self, field)
        check_frames(frames, self.joint_names, self.body_names, self.origin, torch.float32)
        expected = f"({self.num_frames},) torch.bool"
        got = f"{tuple(self.valid.shape)} {self.valid.dtype}"
        require(got == expected, self.origin, "valid", expected, got)

    def _check_names(self, field: str, names: tuple[str, ...]) -> None:
        is_fine = 0 < len(set(names)) == len(names)
        require(is_fine, self.origin, field, "unique and not empty", names)

    @property
    def origin(self) -> str:
        """Name of the clip in error messages: ``source``, or ``name`` if there is no source."""
        return self.source or f"motion {self.name!r}"

    @property
    def num_frames(self) -> int:
        """Number T of frames."""
        return len(self.root_pos_w)

    @property
    def duration(self) -> float:
        """Time from the first to the last frame, s."""
        return (self.num_frames - 1) / self.frame_rate


def require(is_fine: bool, origin: str, field: str, expected: str, got: object) -> None:
    """Raise a MotionError unless ``is_fine``.

    Args:
        is_fine: Result of the check.
        origin: File, and row, of the motion.
        field: Field that was checked.
        expected: Allowed values of the field, as the message continues after "must be".
        got: Value of the field.
    """
    if not is_fine:
        raise MotionError(f"{origin}: {field} must be {expected}, got {got}")


def check_frame_rate(frame_rate: float, origin: str) -> None:
    """Raise a MotionError unless ``frame_rate``, Hz, is finite and positive."""
    is_fine = math.isfinite(frame_rate) and frame_rate > 0.0
    require(is_fine, origin, "frame rate", "finite and positive", frame_rate)


def check_keys(
    found: Collection[str], required: Sequence[str], origin: str, optional: Sequence[str] = ()
) -> None:
    """Raise a MotionError if the keys of a motion file are wrong.

    Args:
        found: Keys of the file.
        required: Keys that the file must have.
        origin: File of the motion, for error messages.
        optional: Further keys that the file may have.
    """
    # Missing keys are reported first. A misspelt key is also a missing one, and the message about
    # the missing key shows the right spelling.
    known = (*required, *optional)
    for key in required:
        if key not in found:
            raise MotionError(f"{origin}: lacks field {key!r}; expected {', '.join(known)}")
    for key in found:
        if key not in known:
            raise MotionError(
                f"{origin}: has the unknown field {key!r}; expected {', '.join(known)}"
            )


def check_frames(
    fields: Mapping[str, torch.Tensor],
    joint_names: Sequence[str],
    body_names: Sequence[str],
    origin: str,
    dtype: torch.dtype = torch.float64,
) -> None:
    """Check the shapes and numbers of some fields of one motion with T frames.

    Args:
        fields: Names and values of some fields of a :class:`Motion`. Shapes: (T, …).
        joint_names: Names of the columns of ``joint_pos`` and ``joint_vel``.
        body_names: Names of the bodies.
        origin: File of the motion, for error messages.
        dtype: Expected dtype.

    Raises:
        MotionError: T is below 2, a shape or dtype is wrong, a number is not finite or a quaternion
            is not a unit quaternion. The message names the frame and the column.
    """
    # The first field decides the number of frames; the others must have the same.
    first_field = next(iter(fields.values()))
    num_frames = first_field.shape[0] if first_field.ndim > 0 else 0
    require(num_frames >= 2, origin, "a motion", "at least 2 frames", num_frames)
    for field, values in fields.items():
        columns = _columns(field, joint_names, body_names)
        shape = (num_frames, *(len(names) for names in columns))
        expected = f"{shape} {dtype}"
        got = f"{tuple(values.shape)} {values.dtype}"
        require(got == expected, origin, field, expected, got)
        _check_finite(field, values, columns, origin)
        if "quat" in field:
            check_unit(values, origin, field)


def _columns(
    field: str, joint_names: Sequence[str], body_names: Sequence[str]
) -> tuple[Sequence[str], ...]:
    """Return the names along each axis of a field, except for the axis of the frames."""
    axes = "wxyz" if "quat" in field else "xyz"
    if field in FIELDS["joint"]:
        return (joint_names,)
    if field in FIELDS["body"]:
        return (body_names, axes)
    return (axes,)


def _check_finite(
    field: str, values: torch.Tensor, columns: tuple[Sequence[str], ...], origin: str
) -> None:
    not_finite = (~values.isfinite()).nonzero()
    if len(not_finite) == 0:
        return
    frame, *place = not_finite[0].tolist()
    column = ".".join(names[i] for names, i in zip(columns, place, strict=True))
    number = values[(frame, *place)].item()
    raise MotionError(
        f"{origin}: frame {frame}: {field}[{column}] must be a finite number, got {number}"
    )


def check_unit(
    quaternions: torch.Tensor, origin: str, field: str, row: str = "frame", first: int = 0
) -> None:
    """Check that quaternions have length 1.

    Args:
        quaternions: Quaternions over time, in any order of components. Shape: (T, …, 4).
        origin: File of the motion, for error messages.
        field: Name of the quaternions in error messages.
        row: Name of a row in error messages, such as ``"frame"`` or ``"line"``.
        first: Number of the first row in error messages.

    Raises:
        MotionError: A length differs from 1 by more than ``UNIT_TOLERANCE``. The message names the
            first row with one.
    """
    # A zero quaternion, as of a missing body, is found here too.
    length = torch.linalg.vector_norm(quaternions, dim=-1)
    not_unit = ((length - 1.0).abs() > UNIT_TOLERANCE).nonzero()
    if len(not_unit) == 0:
        return
    place = tuple(not_unit[0].tolist())
    raise MotionError(
        f"{origin}: {row} {place[0] + first}: {field} must be a unit quaternion, "
        f"got {quaternions[place].tolist()} of length {length[place].item():.4g}"
    )
