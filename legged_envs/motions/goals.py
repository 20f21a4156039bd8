"""Where the parts of a robot should be, so that it follows the key points of another mover.

Positions are scaled by the length of the legs. Feet that are planted stay at one place of the
ground. Arms keep the directions of their parts.
"""

from dataclasses import dataclass, field

import numpy as np
import torch

from legged_envs import rotation
from legged_envs.motions.key_points import KeyPoints
from legged_envs.motions.limbs import Limb, stance_of, torso_of
from legged_envs.motions.planting import plant
from legged_envs.robots import RobotCfg


@dataclass
class Goals:
    """Where the parts of a robot should be in T frames. All arrays are float64, lengths in m."""

    base_pos: np.ndarray
    """Position of the base. Shape: (T, 3)."""
    base_quat: np.ndarray
    """Orientation of the base, (w, x, y, z). Shape: (T, 4)."""
    feet: dict[str, np.ndarray] = field(default_factory=dict)
    """Role of a leg → position of its foot. Shape: (T, 3)."""
    parts: dict[str, np.ndarray] = field(default_factory=dict)
    """Role of a limb → vectors from root to middle and from middle to end. Shape: (T, 2, 3)."""
    quats: dict[str, np.ndarray] = field(default_factory=dict)
    """Name of a body → its orientation, (w, x, y, z). Shape: (T, 4)."""


def make_goals(points: KeyPoints, robot: RobotCfg, limbs: dict[str, Limb]) -> Goals:
    """Return where the parts of a robot should be, scaled by the lengths of the legs.

    Args:
        points: Key points of another mover.
        robot: The robot.
        limbs: Its limbs that the key points have too.
    """
    stance = stance_of(robot)
    legs = [role for role in limbs if role.endswith("leg")]
    lengths = []
    for role in legs:
        lengths.append(sum(limbs[role].lengths))
    leg_length = float(np.mean(lengths))
    scale = leg_length / points.leg_length
    # The ground is at the height at which a foot of the mover stands.
    ground = torch.tensor([0.0, 0.0, points.ground], dtype=torch.float64)
    sole = torch.tensor([0.0, 0.0, robot.foot_radius], dtype=torch.float64)
    roots = []
    own_roots = []
    for role in legs:
        roots.append(points.limbs[role][:, 0])
        own_roots.append(stance.pos[limbs[role].root])
    middle = torch.stack(roots).mean(0)
    hips = scale * (middle - ground) + sole
    own_middle = np.mean(own_roots, axis=0)
    own_hips = torch.from_numpy(own_middle)
    offset = rotation.rotate(points.base_quat_w, own_hips)
    base_pos = hips - offset
    goals = Goals(base_pos.numpy(), points.base_quat_w.numpy())
    for role, limb in limbs.items():
        positions = points.limbs[role]
        if role in legs:
            end = positions[:, 2]
            foot = scale * (end - ground) + sole
            planted = points.planted(role)
            goals.feet[role] = plant(foot.numpy(), planted, robot.foot_radius)
        # Bones of the mover's directions and the robot's lengths.
        factors = _scales(points.lengths[role], limb, scale)
        bones = factors * positions.diff(dim=1)
        goals.parts[role] = bones.numpy()
        if role in points.end_quat_w:
            goals.quats[limb.end] = _turned(points.end_quat_w[role], stance.quat[limb.end])
    torso = torso_of(robot)
    if torso is not None and points.torso_quat_w is not None:
        goals.quats[torso] = _turned(points.torso_quat_w, stance.quat[torso])
    return goals


def _scales(lengths: tuple[float, float], limb: Limb, scale: float) -> torch.Tensor:
    """Return the factors from the mover's bones to the robot's. Shape: (2, 1)."""
    if limb.role.endswith("leg"):
        # The foot is placed on the ground: only the direction of the knee matters.
        return torch.full((2, 1), scale, dtype=torch.float64)
    own = torch.tensor(limb.lengths, dtype=torch.float64)
    given = torch.tensor(lengths, dtype=torch.float64)
    factors = own / given.clamp(min=1e-9)
    return factors.unsqueeze(1)


def _turned(turn: torch.Tensor, rest: np.ndarray) -> np.ndarray:
    """Return the orientations of a body after turns from its orientation at rest."""
    start = torch.from_numpy(rest)
    turned = rotation.multiply(turn, start.expand_as(turn))
    result: np.ndarray = turned.numpy()
    return result
