"""One reference motion of one robot, in memory: the format that every loader makes and everything else reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

UNIT_TOLERANCE = 1e-3
"""How far the length of a quaternion may be from 1. Text files with four decimals stay below."""


class MotionError(ValueError):
    """A motion that cannot be used; the message names the file, the row and the field."""


@dataclass(frozen=True, eq=False)
class Motion:
    """A clip of T frames at a constant frame rate, of a robot with J joints and B bodies.

    Frame i is at time i / frame_rate, so the clip lasts (T − 1) / frame_rate. World z is up, quaternions are
    (w, x, y, z), ``_w`` is the world frame and ``_b`` the base frame; the names are those of
    :class:`~legged_envs.sim.Simulation`. Numbers are float32, also in frames that are not valid.
    """

    name: str
    robot: str
    """Name of the :class:`~legged_envs.robots.RobotCfg` that moves."""
    frame_rate: float
    """Frames per second."""
    joint_names: tuple[str, ...]
    body_names: tuple[str, ...]
    root_pos_w: torch.Tensor
    """Base position, m. Shape: (T, 3)."""
    root_quat_w: torch.Tensor
    """Base orientation. Shape: (T, 4)."""
    root_lin_vel_w: torch.Tensor
    """Velocity of the base origin, m/s. Shape: (T, 3)."""
    root_ang_vel_b: torch.Tensor
    """Angular velocity of the base in its own frame, rad/s. Shape: (T, 3)."""
    joint_pos: torch.Tensor
    """rad. Shape: (T, J)."""
    joint_vel: torch.Tensor
    """rad/s. Shape: (T, J)."""
    body_pos_w: torch.Tensor
    """Body origins, m. Shape: (T, B, 3)."""
    body_quat_w: torch.Tensor
    """Body orientations. Shape: (T, B, 4)."""
    body_lin_vel_w: torch.Tensor
    """Velocities of the body origins, m/s. Shape: (T, B, 3)."""
    body_ang_vel_w: torch.Tensor
    """Angular velocities of the bodies, rad/s. Shape: (T, B, 3)."""
    valid: torch.Tensor
    """Whether a frame may be imitated. Shape: (T,), bool."""
    loop: bool = False
    """Whether the last frame is the first of the next repetition, up to a displacement and a turn on the ground."""
    weight: float = 1.0
    """How often the clip is drawn, relative to others."""
    source: str = ""
    """Where the clip comes from, for error messages: a file or a function."""

    def __post_init__(self) -> None:
        """Reject a motion that contradicts itself or holds numbers that are none."""
        if not (math.isfinite(self.frame_rate) and self.frame_rate > 0.0):
            raise MotionError(f"{self.origin}: frame rate must be finite and positive, got {self.frame_rate}")
        if not (math.isfinite(self.weight) and self.weight >= 0.0):
            raise MotionError(f"{self.origin}: weight must be finite and not negative, got {self.weight}")
        for field, names in (("joint_names", self.joint_names), ("body_names", self.body_names)):
            if not names or len(set(names)) != len(names):
                raise MotionError(f"{self.origin}: {field} must be unique and not empty, got {names}")
        if self.num_frames < 2:
            raise MotionError(f"{self.origin}: a motion needs at least 2 frames, got {self.num_frames}")
        for field, columns in self._columns().items():
            self._check_shape(field, columns)
            check_finite(getattr(self, field).flatten(1), columns, self.origin, field)
            if "quat" in field:
                check_unit(getattr(self, field).unflatten(-1, (-1, 4)).flatten(1, -2), self.origin, field)
        if self.valid.shape != (self.num_frames,) or self.valid.dtype != torch.bool:
            expected = f"({self.num_frames},) torch.bool"
            raise MotionError(
                f"{self.origin}: valid must be {expected}, got {tuple(self.valid.shape)} {self.valid.dtype}"
            )

    @property
    def origin(self) -> str:
        """What error messages call the motion."""
        return self.source or f"motion {self.name!r}"

    @property
    def num_frames(self) -> int:
        """T."""
        return len(self.root_pos_w)

    @property
    def duration(self) -> float:
        """Time from the first to the last frame, s."""
        return (self.num_frames - 1) / self.frame_rate

    def _columns(self) -> dict[str, list[str]]:
        """Names of the numbers of a frame, per field."""
        joints, bodies = list(self.joint_names), self.body_names
        in_world = {"root_pos_w": "xyz", "root_quat_w": "wxyz", "root_lin_vel_w": "xyz", "root_ang_vel_b": "xyz"}
        per_body = {"body_pos_w": "xyz", "body_quat_w": "wxyz", "body_lin_vel_w": "xyz", "body_ang_vel_w": "xyz"}
        return {
            **{field: list(axes) for field, axes in in_world.items()},
            "joint_pos": joints,
            "joint_vel": joints,
            **{field: [f"{body}.{axis}" for body in bodies for axis in axes] for field, axes in per_body.items()},
        }

    def _check_shape(self, field: str, columns: list[str]) -> None:
        values = getattr(self, field)
        shape: tuple[int, ...] = (self.num_frames, len(columns))
        if field.startswith("body"):
            shape = (self.num_frames, len(self.body_names), len(columns) // len(self.body_names))
        if values.shape != shape or values.dtype != torch.float32:
            got = f"{tuple(values.shape)} {values.dtype}"
            raise MotionError(f"{self.origin}: {field} must be {shape} torch.float32, got {got}")


def check_finite(
    values: torch.Tensor, columns: Sequence[str], origin: str, field: str, row: str = "frame", first: int = 0
) -> None:
    """Raise MotionError at the first number of ``values`` (T, len(columns)) that is NaN or infinite.

    Args:
        columns: Names of the columns.
        origin: The file.
        field: What the table is.
        row: What a row is called in the file.
        first: Number of the first row in the file.
    """
    bad = (~torch.isfinite(values)).nonzero()
    if len(bad):
        i, j = bad[0].tolist()
        raise MotionError(
            f"{origin}: {row} {i + first}: {field}[{columns[j]}] must be a finite number, got {values[i, j].item()}"
        )


def check_unit(quaternions: torch.Tensor, origin: str, field: str, row: str = "frame", first: int = 0) -> None:
    """Raise MotionError at the first quaternion of ``quaternions`` (T, n, 4) that is not of length 1."""
    length = torch.linalg.vector_norm(quaternions, dim=-1)
    bad = ((length - 1.0).abs() > UNIT_TOLERANCE).nonzero()
    if len(bad):
        i, j = bad[0].tolist()
        raise MotionError(
            f"{origin}: {row} {i + first}: {field} must be a unit quaternion, got {quaternions[i, j].tolist()} "
            f"of length {length[i, j].item():.4g}"
        )
