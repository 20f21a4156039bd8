"""Vectors, quaternions, matrices and poses of `isaacgym.gymapi`, and their arithmetic.

Results are computed in float64 and rounded to float32, as which the records hold them.
"""

import math
from typing import ClassVar, Self, overload

import numpy as np

from legged_envs.compat.isaac_gym.record import Record

VEC3_DTYPE = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4")])
"""Fields of a vector in arrays of NumPy."""

QUAT_DTYPE = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("w", "<f4")])
"""Fields of a quaternion in arrays of NumPy."""


class Vec3(Record):
    """A vector with the components x, y and z.

    Vectors are added and subtracted, and multiplied and divided by numbers.
    """

    FIELDS: ClassVar = {"x": 0.0, "y": 0.0, "z": 0.0}

    dtype: ClassVar = VEC3_DTYPE
    """Fields of a vector in arrays of NumPy."""

    @property
    def values(self) -> tuple[float, float, float]:
        """The components (x, y, z)."""
        return self.x, self.y, self.z

    def __add__(self, other: "Vec3") -> "Vec3":
        x = self.x + other.x
        y = self.y + other.y
        z = self.z + other.z
        return Vec3(x, y, z)

    def __sub__(self, other: "Vec3") -> "Vec3":
        x = self.x - other.x
        y = self.y - other.y
        z = self.z - other.z
        return Vec3(x, y, z)

    def __mul__(self, factor: float) -> "Vec3":
        if isinstance(factor, Record):
            return NotImplemented
        x, y, z = self.values
        return Vec3(x * factor, y * factor, z * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> "Vec3":
        if isinstance(divisor, Record):
            return NotImplemented
        x, y, z = self.values
        return Vec3(x / divisor, y / divisor, z / divisor)

    def __neg__(self) -> "Vec3":
        x, y, z = self.values
        return Vec3(-x, -y, -z)

    def dot(self, other: "Vec3") -> float:
        """Return the scalar product."""
        x, y, z = self.values
        other_x, other_y, other_z = other.values
        return x * other_x + y * other_y + z * other_z

    def cross(self, other: "Vec3") -> "Vec3":
        """Return the vector product."""
        x, y, z = self.values
        other_x, other_y, other_z = other.values
        product_x = y * other_z - z * other_y
        product_y = z * other_x - x * other_z
        product_z = x * other_y - y * other_x
        return Vec3(product_x, product_y, product_z)

    def length_sq(self) -> float:
        """Return the square of the length."""
        return self.dot(self)

    def length(self) -> float:
        """Return the length."""
        return math.sqrt(self.length_sq())

    def normalize(self) -> "Vec3":
        """Return the vector with the length 1. A vector of zeros stays one."""
        length = self.length()
        return self / (length or 1.0)

    @staticmethod
    def from_buffer(buffer: np.ndarray) -> "Vec3":
        """Return the vector of an array with the fields ``dtype``, or of three numbers."""
        return Vec3(*_read_floats(buffer, 3))


class Quat(Record):
    """A quaternion with the components x, y, z and w. A product a · b is the rotation b, then the
    rotation a."""

    FIELDS: ClassVar = {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}

    dtype: ClassVar = QUAT_DTYPE
    """Fields of a quaternion in arrays of NumPy."""

    @property
    def values(self) -> tuple[float, float, float, float]:
        """The components (x, y, z, w)."""
        return self.x, self.y, self.z, self.w

    def __add__(self, other: "Quat") -> "Quat":
        x = self.x + other.x
        y = self.y + other.y
        z = self.z + other.z
        w = self.w + other.w
        return Quat(x, y, z, w)

    def __sub__(self, other: "Quat") -> "Quat":
        x = self.x - other.x
        y = self.y - other.y
        z = self.z - other.z
        w = self.w - other.w
        return Quat(x, y, z, w)

    def __neg__(self) -> "Quat":
        x, y, z, w = self.values
        return Quat(-x, -y, -z, -w)

    @overload
    def __mul__(self, other: "Quat") -> "Quat": ...

    @overload
    def __mul__(self, other: float) -> "Quat": ...

    def __mul__(self, other: "Quat | float") -> "Quat":
        px, py, pz, pw = self.values
        if not isinstance(other, Quat):
            return Quat(px * other, py * other, pz * other, pw * other)
        qx, qy, qz, qw = other.values
        x = pw * qx + px * qw + py * qz - pz * qy
        y = pw * qy - px * qz + py * qw + pz * qx
        z = pw * qz + px * qy - py * qx + pz * qw
        w = pw * qw - px * qx - py * qy - pz * qz
        return Quat(x, y, z, w)

    def inverse(self) -> "Quat":
        """Return the inverse rotation of a unit quaternion."""
        x, y, z, w = self.values
        return Quat(-x, -y, -z, w)

    def normalize(self) -> "Quat":
        """Return the quaternion with the length 1."""
        x, y, z, w = self.values
        length = math.sqrt(x**2 + y**2 + z**2 + w**2)
        factor = 1.0 / (length or 1.0)
        return self * factor

    def rotate(self, vector: Vec3) -> Vec3:
        """Return a rotated vector."""
        axis = Vec3(self.x, self.y, self.z)
        turn = axis.cross(vector) * 2.0
        second_turn = axis.cross(turn)
        return vector + turn * self.w + second_turn

    @staticmethod
    def from_axis_angle(axis: Vec3, angle: float) -> "Quat":
        """Return the rotation by an angle, rad, about an axis of any length above 0."""
        unit = axis.normalize()
        half = angle / 2
        sine = math.sin(half)
        w = math.cos(half)
        return Quat(unit.x * sine, unit.y * sine, unit.z * sine, w)

    @staticmethod
    def from_euler_zyx(x: float, y: float, z: float) -> "Quat":
        """Return the rotation by x about the axis x, then y about the axis y, then z about the axis
        z of the world, rad."""
        about_x = Quat.from_axis_angle(Vec3(1.0, 0.0, 0.0), x)
        about_y = Quat.from_axis_angle(Vec3(0.0, 1.0, 0.0), y)
        about_z = Quat.from_axis_angle(Vec3(0.0, 0.0, 1.0), z)
        return about_z * about_y * about_x

    def to_euler_zyx(self) -> tuple[float, float, float]:
        """Return the angles (x, y, z) of which ``from_euler_zyx`` makes this rotation, rad."""
        x, y, z, w = self.values
        # Sines and cosines of the angles about x and z are these numbers up to a common factor.
        sine_x = 2 * (w * x + y * z)
        cosine_x = 1 - 2 * (x * x + y * y)
        sine_y = 2 * (w * y - z * x)
        sine_z = 2 * (w * z + x * y)
        cosine_z = 1 - 2 * (y * y + z * z)
        # Rounding may lead slightly beyond 1.
        sine_y = min(max(sine_y, -1.0), 1.0)
        angle_x = math.atan2(sine_x, cosine_x)
        angle_y = math.asin(sine_y)
        angle_z = math.atan2(sine_z, cosine_z)
        return angle_x, angle_y, angle_z

    @staticmethod
    def from_buffer(buffer: np.ndarray) -> "Quat":
        """Return the quaternion of an array with the fields ``dtype``, or of four numbers."""
        return Quat(*_read_floats(buffer, 4))


class Transform(Record):
    """A pose: the position ``p``, m, and the orientation ``r``. A product a · b is the pose b in
    the frame of a."""

    FIELDS: ClassVar = {"p": Vec3(), "r": Quat()}

    dtype: ClassVar = np.dtype([("p", VEC3_DTYPE), ("r", QUAT_DTYPE)])
    """Fields of a pose in arrays of NumPy."""

    def __mul__(self, other: "Transform") -> "Transform":
        position = self.transform_point(other.p)
        orientation = self.r * other.r
        return Transform(position, orientation)

    def inverse(self) -> "Transform":
        """Return the inverse pose."""
        back = self.r.inverse()
        position = -back.rotate(self.p)
        return Transform(position, back)

    def transform_point(self, point: Vec3) -> Vec3:
        """Return a point of this frame in the outer frame: rotated, then moved."""
        rotated = self.r.rotate(point)
        return rotated + self.p

    def transform_vector(self, vector: Vec3) -> Vec3:
        """Return a vector of this frame in the outer frame: rotated."""
        return self.r.rotate(vector)

    def transform_points(self, points: np.ndarray) -> np.ndarray:
        """Return points of this frame in the outer frame, in an array like the given one.

        Args:
            points: An array with the fields of ``Vec3.dtype``, or of the shape (n, 3).
        """
        offset = np.array(self.p.values)
        return _map_vectors(self, points, offset)

    def transform_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors of this frame in the outer frame, in an array like the given one.

        Args:
            vectors: An array with the fields of ``Vec3.dtype``, or of the shape (n, 3).
        """
        return _map_vectors(self, vectors, np.zeros(3))

    @staticmethod
    def from_buffer(buffer: np.ndarray) -> "Transform":
        """Return the pose of an array with the fields ``dtype``, or of seven numbers."""
        values = _read_floats(buffer, 7)
        position = Vec3(*values[:3])
        orientation = Quat(*values[3:])
        return Transform(position, orientation)


class Mat33(Record):
    """A matrix of three rows and columns. The fields are its columns."""

    FIELDS: ClassVar = {"x": Vec3(), "y": Vec3(), "z": Vec3()}

    def to_array(self) -> np.ndarray:
        """Return the matrix as an array. Shape: (3, 3)."""
        columns = (self.x.values, self.y.values, self.z.values)
        return np.column_stack(columns)

    @classmethod
    def from_array(cls, matrix: np.ndarray) -> Self:
        """Return the matrix of an array. Shape: (3, 3)."""
        x, y, z = np.asarray(matrix, float).T
        return cls(Vec3(*x), Vec3(*y), Vec3(*z))


class SpatialForce(Record):
    """A force, N, and a torque, N·m."""

    FIELDS: ClassVar = {"force": Vec3(), "torque": Vec3()}


class Velocity(Record):
    """A linear velocity, m/s, and an angular velocity, rad/s."""

    FIELDS: ClassVar = {"linear": Vec3(), "angular": Vec3()}

    dtype: ClassVar = np.dtype([("linear", VEC3_DTYPE), ("angular", VEC3_DTYPE)])
    """Fields of a velocity in arrays of NumPy."""


def _read_floats(buffer: np.ndarray, count: int) -> list[float]:
    """Return the numbers of an array of float32, or of an array with float32 fields."""
    array = np.asarray(buffer)
    if array.dtype.fields is not None:
        records = array.reshape(-1)
        array = records.view(np.float32)
    numbers = array.astype(float).ravel()
    values: list[float] = numbers.tolist()
    if len(values) != count:
        raise ValueError(f"from_buffer takes {count} numbers, got {len(values)}: give one record")
    return values


def _map_vectors(pose: Transform, vectors: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Return rotated vectors, moved by an offset, in an array like the given one."""
    given = np.asarray(vectors)
    plain = given
    if given.dtype.fields is not None:
        plain = np.stack((given["x"], given["y"], given["z"]), axis=-1)
    columns = []
    for axis in (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0)):
        columns.append(pose.r.rotate(axis).values)
    matrix = np.array(columns)
    rotated = plain.astype(float) @ matrix + offset
    if given.dtype.fields is None:
        return rotated.astype(given.dtype)
    result = np.empty_like(given)
    for i, name in enumerate(("x", "y", "z")):
        result[name] = rotated[..., i]
    return result
