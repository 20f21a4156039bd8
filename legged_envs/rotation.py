"""Unit quaternions (w, x, y, z) as torch tensors of shape (..., 4), in any float type and on any device."""

import torch


def multiply(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """The rotation q followed by p. Shapes broadcast."""
    pw, px, py, pz = p.unbind(-1)
    qw, qx, qy, qz = q.unbind(-1)
    w = pw * qw - px * qx - py * qy - pz * qz
    x = pw * qx + px * qw + py * qz - pz * qy
    y = pw * qy - px * qz + py * qw + pz * qx
    z = pw * qz + px * qy - py * qx + pz * qw
    return torch.stack((w, x, y, z), dim=-1)


def conjugate(q: torch.Tensor) -> torch.Tensor:
    """The opposite rotation."""
    return torch.cat((q[..., :1], -q[..., 1:]), dim=-1)


def rotate(q: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Vectors (..., 3) of the frame ``q``, expressed in the frame that ``q`` is given in. Shapes broadcast."""
    axis, vectors = torch.broadcast_tensors(q[..., 1:], vectors)
    twice_cross = 2.0 * torch.linalg.cross(axis, vectors)
    return vectors + q[..., :1] * twice_cross + torch.linalg.cross(axis, twice_cross)


def rotate_inverse(q: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """World vectors in the frame ``q``, several per quaternion. Shapes: (n, 4), (n, k, 3) → (n, k, 3)."""
    w = q[:, None, :1]
    axis = q[:, None, 1:].expand_as(vectors)
    twice_cross = torch.linalg.cross(vectors, axis) * 2.0
    return torch.addcmul(vectors, w, twice_cross).sub_(torch.linalg.cross(axis, twice_cross))


def atan2(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """``torch.atan2``, in float32 the same whatever stands beside a number: on a CPU that rounds blocks in one way, and
    what remains of them in another."""
    return torch.atan2(y.double(), x.double()).to(y.dtype)


def slerp(start: torch.Tensor, end: torch.Tensor, blend: torch.Tensor) -> torch.Tensor:
    """The rotation a fraction ``blend`` (...,) of the shorter way from ``start`` to ``end`` (..., 4) (Shoemake 1985).
    Sum and difference give the angle accurately in float32; an arc cosine would not."""
    end = torch.where((start * end).sum(-1, keepdim=True) < 0.0, -end, end)
    difference = torch.linalg.vector_norm(end - start, dim=-1)
    angle = 2.0 * atan2(difference, torch.linalg.vector_norm(end + start, dim=-1)) / torch.pi
    # sin(bθ) / sin θ = b sinc(bθ) / sinc θ has no 0 / 0 at θ = 0; θ is at most π/2, where sinc is 2/π.
    whole = torch.sinc(angle)
    to_end = blend * torch.sinc(blend * angle) / whole
    to_start = (1.0 - blend) * torch.sinc((1.0 - blend) * angle) / whole
    return to_start.unsqueeze(-1) * start + to_end.unsqueeze(-1) * end


def from_rotation_vector(vector: torch.Tensor) -> torch.Tensor:
    """Axis times angle in rad (..., 3) → (..., 4)."""
    half = 0.5 * torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    return torch.cat((torch.cos(half), 0.5 * torch.sinc(half / torch.pi) * vector), dim=-1)


def to_rotation_vector(q: torch.Tensor) -> torch.Tensor:
    """Axis times angle of at most π rad (..., 3)."""
    q = torch.where(q[..., :1] < 0.0, -q, q)
    sine = torch.linalg.vector_norm(q[..., 1:], dim=-1, keepdim=True)
    tiny = sine < 1e-8
    angle = 2.0 * atan2(sine, q[..., :1])
    return q[..., 1:] * torch.where(tiny, 2.0, angle / torch.where(tiny, 1.0, sine))


def from_yaw(yaw: torch.Tensor) -> torch.Tensor:
    """Rotation by ``yaw`` rad (...,) about z → (..., 4)."""
    zero = torch.zeros_like(yaw)
    return torch.stack((torch.cos(0.5 * yaw), zero, zero, torch.sin(0.5 * yaw)), dim=-1)


def from_pitch(pitch: torch.Tensor) -> torch.Tensor:
    """Rotation by ``pitch`` rad (...,) about y, positive nose down → (..., 4)."""
    zero = torch.zeros_like(pitch)
    return torch.stack((torch.cos(0.5 * pitch), zero, torch.sin(0.5 * pitch), zero), dim=-1)


def twist_about_z(q: torch.Tensor) -> torch.Tensor:
    """Angle of the part of ``q`` that turns about z, in (−π, π] (swing-twist decomposition) → (...,)."""
    angle = 2.0 * atan2(q[..., 3], q[..., 0])
    return torch.remainder(angle + torch.pi, 2.0 * torch.pi) - torch.pi


def heading(q: torch.Tensor) -> torch.Tensor:
    """Yaw of the frame's x axis over the ground, rad in [−π, π] → (...,)."""
    w, x, y, z = q.unbind(-1)
    return atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
