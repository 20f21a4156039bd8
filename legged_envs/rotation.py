"""Rotations as unit quaternions (w, x, y, z): torch tensors of shape (..., 4).

Functions accept any float type and any device. Three dots in a shape are any leading dimensions.
"""

import torch
from torch import Tensor
from torch.linalg import cross, vector_norm

FULL_TURN = 2.0 * torch.pi
"""Angle of a full turn, rad."""


def multiply(p: Tensor, q: Tensor) -> Tensor:
    """Return the quaternion product p · q: the rotation q followed by the rotation p.

    Shapes: (..., 4), which broadcast.
    """
    pw, px, py, pz = p.unbind(-1)
    qw, qx, qy, qz = q.unbind(-1)
    w = pw * qw - px * qx - py * qy - pz * qz
    x = pw * qx + px * qw + py * qz - pz * qy
    y = pw * qy - px * qz + py * qw + pz * qx
    z = pw * qz + px * qy - py * qx + pz * qw
    return torch.stack((w, x, y, z), dim=-1)


def conjugate(q: Tensor) -> Tensor:
    """Return the inverse of a rotation. Shapes: (..., 4) → (..., 4)."""
    w = q[..., :1]
    axis = q[..., 1:]
    return torch.cat((w, -axis), dim=-1)


def rotate(q: Tensor, vectors: Tensor) -> Tensor:
    """Rotate vectors by a rotation, for example from the base frame to the world frame.

    If ``q`` is the orientation of a body in the world, this converts vectors in the body's frame to
    vectors in the world frame. Shapes: (..., 4), (..., 3) → (..., 3), which broadcast.
    """
    w = q[..., :1]
    axis = q[..., 1:]
    axis, vectors = torch.broadcast_tensors(axis, vectors)
    # v + 2 w (u × v) + 2 u × (u × v), u the vector part of the quaternion.
    twice_cross = 2.0 * cross(axis, vectors)
    second_cross = cross(axis, twice_cross)
    first_term = w * twice_cross
    return vectors + first_term + second_cross


def rotate_inverse(q: Tensor, vectors: Tensor) -> Tensor:
    """Rotate vectors by the inverse of a rotation, for example from the world to the base frame.

    There are k vectors for each quaternion. Shapes: (n, 4), (n, k, 3) → (n, k, 3).
    """
    w = q[:, None, :1]
    axis = q[:, None, 1:]
    axis = axis.expand_as(vectors)
    twice_cross = cross(vectors, axis) * 2.0
    second_cross = cross(axis, twice_cross)
    rotated = torch.addcmul(vectors, w, twice_cross)
    return rotated.sub_(second_cross)


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """Return the angle of the vector (x, y), rad, like ``torch.atan2``. Shapes broadcast.

    The result for a number does not depend on its position in the tensor. With ``torch.atan2`` it
    does: in float32, a CPU rounds numbers in full vector blocks differently from the others.
    """
    exact_y = y.double()
    exact_x = x.double()
    angle = torch.atan2(exact_y, exact_x)
    return angle.to(y.dtype)


def slerp(start: Tensor, end: Tensor, blend: Tensor) -> Tensor:
    """Interpolate between two rotations along the shorter arc (Shoemake 1985).

    Args:
        start: Rotation at a fraction of 0. Shape: (..., 4).
        end: Rotation at a fraction of 1. Shape: (..., 4).
        blend: Fraction in [0, 1]. Shape: (...,).

    Returns:
        Rotations. Shape: (..., 4).
    """
    # q and −q are the same rotation: the nearer one gives the shorter arc.
    products = start * end
    nearness = products.sum(-1, keepdim=True)
    is_far = nearness < 0.0
    end = torch.where(is_far, -end, end)
    # The norms of difference and sum are 2 sin and 2 cos of half the arc. They give the angle
    # accurately in float32; an arc cosine would not.
    difference = end - start
    total = end + start
    sine = vector_norm(difference, dim=-1)
    cosine = vector_norm(total, dim=-1)
    half_angle = atan2(sine, cosine)
    angle = 2.0 * half_angle / torch.pi
    # sin(bθ) / sin θ = b sinc(bθ) / sinc θ has no 0 / 0 at θ = 0; θ is at most π/2, where sinc is
    # 2/π.
    rest = 1.0 - blend
    whole = torch.sinc(angle)
    start_part = torch.sinc(rest * angle)
    end_part = torch.sinc(blend * angle)
    start_weight = rest * start_part / whole
    end_weight = blend * end_part / whole
    from_start = start_weight.unsqueeze(-1) * start
    from_end = end_weight.unsqueeze(-1) * end
    return from_start + from_end


def from_rotation_vector(vector: Tensor) -> Tensor:
    """Convert rotation vectors (axis times angle, rad) to quaternions.

    Shapes: (..., 3) → (..., 4).
    """
    angle = vector_norm(vector, dim=-1, keepdim=True)
    half = 0.5 * angle
    w = torch.cos(half)
    # sin(θ/2) / θ, without 0 / 0 at θ = 0.
    half_turns = half / torch.pi
    sine_ratio = 0.5 * torch.sinc(half_turns)
    axis = sine_ratio * vector
    return torch.cat((w, axis), dim=-1)


def to_rotation_vector(q: Tensor) -> Tensor:
    """Convert quaternions, w first, to rotation vectors: axis times angle, rad, at most π long.

    Shapes: (..., 4) → (..., 3).
    """
    # q and −q are the same rotation. With w ≥ 0 the angle is at most π.
    is_long_way = q[..., :1] < 0.0
    q = torch.where(is_long_way, -q, q)
    half_cosine = q[..., :1]
    vector = q[..., 1:]
    half_sine = vector_norm(vector, dim=-1, keepdim=True)
    half_angle = atan2(half_sine, half_cosine)
    angle = 2.0 * half_angle
    # θ / sin(θ/2) is 2 at θ = 0, where the division would give 0 / 0.
    is_tiny = half_sine < 1e-8
    divisor = torch.where(is_tiny, 1.0, half_sine)
    quotient = angle / divisor
    ratio = torch.where(is_tiny, 2.0, quotient)
    return vector * ratio


def from_yaw(yaw: Tensor) -> Tensor:
    """Return the rotation about the z axis by ``yaw``, rad. Shapes: (...,) → (..., 4)."""
    half = 0.5 * yaw
    zero = torch.zeros_like(yaw)
    w = torch.cos(half)
    z = torch.sin(half)
    return torch.stack((w, zero, zero, z), dim=-1)


def from_pitch(pitch: Tensor) -> Tensor:
    """Return the rotation by the angle ``pitch``, rad, about the y axis, as a quaternion.

    A positive angle turns a robot's front, +x, downwards. Shapes: (...,) → (..., 4).
    """
    half = 0.5 * pitch
    zero = torch.zeros_like(pitch)
    w = torch.cos(half)
    y = torch.sin(half)
    return torch.stack((w, zero, y, zero), dim=-1)


def twist_about_z(q: Tensor) -> Tensor:
    """Return the twist angle about z of the swing-twist decomposition, rad, in (−π, π].

    A rotation is a rotation about z by this angle, followed by a tilt about a horizontal axis.
    Shapes: (..., 4) → (...,).
    """
    w = q[..., 0]
    z = q[..., 3]
    half_angle = atan2(z, w)
    angle = 2.0 * half_angle
    # Into (−π, π], by a remainder in [0, 2π).
    shifted = angle + torch.pi
    turned = torch.remainder(shifted, FULL_TURN)
    return turned - torch.pi


def heading(q: Tensor) -> Tensor:
    """Return the heading of a body: the yaw of its x axis in the world, rad, in [−π, π].

    Shapes: (..., 4) → (...,).
    """
    w, x, y, z = q.unbind(-1)
    # The horizontal components of the body's x axis in the world.
    half_sideways = w * z + x * y
    half_shortfall = y * y + z * z
    sideways = 2 * half_sideways
    ahead = 1 - 2 * half_shortfall
    return atan2(sideways, ahead)
