"""Rotations as unit quaternions (w, x, y, z): torch tensors of shape (..., 4).

Functions accept any float type and any device. Three dots in a shape are any leading dimensions.
"""

import torch


def multiply(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
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


def conjugate(q: torch.Tensor) -> torch.Tensor:
    """Return the inverse of a rotation. Shapes: (..., 4) → (..., 4)."""
    w = q[..., :1]
    axis = q[..., 1:]
    return torch.cat((w, -axis), dim=-1)


def rotate(q: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Rotate vectors by a rotation, for example from the base frame to the world frame.

    If ``q`` is the orientation of a body in the world, this converts vectors in the body's frame to
    vectors in the world frame. Shapes: (..., 4), (..., 3) → (..., 3), which broadcast.
    """
    w = q[..., :1]
    axis, vectors = torch.broadcast_tensors(q[..., 1:], vectors)
    # v + 2 w (u × v) + 2 u × (u × v), u the vector part of the quaternion.
    twice_cross = 2.0 * torch.linalg.cross(axis, vectors)
    second_cross = torch.linalg.cross(axis, twice_cross)
    return vectors + w * twice_cross + second_cross


def rotate_inverse(q: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Rotate vectors by the inverse of a rotation, for example from the world to the base frame.

    There are k vectors for each quaternion. Shapes: (n, 4), (n, k, 3) → (n, k, 3).
    """
    w = q[:, None, :1]
    axis = q[:, None, 1:].expand_as(vectors)
    twice_cross = torch.linalg.cross(vectors, axis) * 2.0
    second_cross = torch.linalg.cross(axis, twice_cross)
    return torch.addcmul(vectors, w, twice_cross).sub_(second_cross)


def atan2(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the angle of the vector (x, y), rad, like ``torch.atan2``. Shapes broadcast.

    The result for a number does not depend on its position in the tensor. With ``torch.atan2`` it
    does: in float32, a CPU rounds numbers in full vector blocks differently from the others.
    """
    angle = torch.atan2(y.double(), x.double())
    return angle.to(y.dtype)


def slerp(start: torch.Tensor, end: torch.Tensor, blend: torch.Tensor) -> torch.Tensor:
    """Interpolate between two rotations along the shorter arc (Shoemake 1985).

    Args:
        start: Rotation at a fraction of 0. Shape: (..., 4).
        end: Rotation at a fraction of 1. Shape: (..., 4).
        blend: Fraction in [0, 1]. Shape: (...,).

    Returns:
        Rotations. Shape: (..., 4).
    """
    # q and −q are the same rotation: the nearer one gives the shorter arc.
    cosine = (start * end).sum(-1, keepdim=True)
    end = torch.where(cosine < 0.0, -end, end)
    # Sum and difference give the angle accurately in float32; an arc cosine would not.
    difference = torch.linalg.vector_norm(end - start, dim=-1)
    total = torch.linalg.vector_norm(end + start, dim=-1)
    angle = 2.0 * atan2(difference, total) / torch.pi
    # sin(bθ) / sin θ = b sinc(bθ) / sinc θ has no 0 / 0 at θ = 0; θ is at most π/2, where sinc is
    # 2/π.
    rest = 1.0 - blend
    whole = torch.sinc(angle)
    end_weight = blend * torch.sinc(blend * angle) / whole
    start_weight = rest * torch.sinc(rest * angle) / whole
    from_start = start_weight.unsqueeze(-1) * start
    from_end = end_weight.unsqueeze(-1) * end
    return from_start + from_end


def from_rotation_vector(vector: torch.Tensor) -> torch.Tensor:
    """Convert rotation vectors (axis times angle, rad) to quaternions.

    Shapes: (..., 3) → (..., 4).
    """
    angle = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    half = 0.5 * angle
    w = torch.cos(half)
    # sin(θ/2) / θ, without 0 / 0 at θ = 0.
    sine_ratio = 0.5 * torch.sinc(half / torch.pi)
    return torch.cat((w, sine_ratio * vector), dim=-1)


def to_rotation_vector(q: torch.Tensor) -> torch.Tensor:
    """Convert quaternions, w first, to rotation vectors: axis times angle, rad, at most π long.

    Shapes: (..., 4) → (..., 3).
    """
    # q and −q are the same rotation. With w ≥ 0 the angle is at most π.
    q = torch.where(q[..., :1] < 0.0, -q, q)
    w = q[..., :1]
    vector = q[..., 1:]
    half_sine = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    angle = 2.0 * atan2(half_sine, w)
    # θ / sin(θ/2) is 2 at θ = 0, where the division would give 0 / 0.
    tiny = half_sine < 1e-8
    divisor = torch.where(tiny, 1.0, half_sine)
    ratio = torch.where(tiny, 2.0, angle / divisor)
    return vector * ratio


def from_yaw(yaw: torch.Tensor) -> torch.Tensor:
    """Return the rotation about the z axis by ``yaw``, rad. Shapes: (...,) → (..., 4)."""
    half = 0.5 * yaw
    zero = torch.zeros_like(yaw)
    w = torch.cos(half)
    z = torch.sin(half)
    return torch.stack((w, zero, zero, z), dim=-1)


def from_pitch(pitch: torch.Tensor) -> torch.Tensor:
    """Return the rotation by the angle ``pitch``, rad, about the y axis, as a quaternion.

    A positive angle turns a robot's front, +x, downwards. Shapes: (...,) → (..., 4).
    """
    half = 0.5 * pitch
    zero = torch.zeros_like(pitch)
    w = torch.cos(half)
    y = torch.sin(half)
    return torch.stack((w, zero, y, zero), dim=-1)


def twist_about_z(q: torch.Tensor) -> torch.Tensor:
    """Return the twist angle about z of the swing-twist decomposition, rad, in (−π, π].

    A rotation is a rotation about z by this angle, followed by a tilt about a horizontal axis.
    Shapes: (..., 4) → (...,).
    """
    w = q[..., 0]
    z = q[..., 3]
    angle = 2.0 * atan2(z, w)
    turned = torch.remainder(angle + torch.pi, 2.0 * torch.pi)
    return turned - torch.pi


def heading(q: torch.Tensor) -> torch.Tensor:
    """Return the heading of a body: the yaw of its x axis in the world, rad, in [−π, π].

    Shapes: (..., 4) → (...,).
    """
    w, x, y, z = q.unbind(-1)
    # The x axis of the body in the world, its horizontal components.
    sideways = 2 * (w * z + x * y)
    ahead = 1 - 2 * (y * y + z * z)
    return atan2(sideways, ahead)
