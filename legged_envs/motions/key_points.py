"""Key points of a moving robot or human: base, limbs and feet, without the joints between them."""

from dataclasses import dataclass, field

import numpy as np
import torch

from legged_envs import rotation
from legged_envs.motions.limbs import limbs_of, stance_of, torso_of
from legged_envs.motions.motion import Motion
from legged_envs.robots import RobotCfg

PLANTED_HEIGHT = 0.04
"""Height over its lowest place up to which a foot can be planted, as a fraction of the leg."""
PLANTED_SPEED = 0.4
"""Speed up to which a foot can be planted, leg lengths per s."""
SHORTEST_PLANT = 0.05
"""Shortest time for which a foot is planted, s."""


@dataclass(frozen=True)
class KeyPoints:
    """Key points of a mover over T frames. All tensors are float64, lengths in any unit."""

    name: str
    """Name of the clip."""
    frame_rate: float
    """Frames per second."""
    base_quat_w: torch.Tensor
    """Orientation of the base or pelvis, x ahead and z up, (w, x, y, z). Shape: (T, 4)."""
    limbs: dict[str, torch.Tensor]
    """Role of a limb, as of :class:`Limb` → positions of root, middle and end. Shape: (T, 3, 3)."""
    lengths: dict[str, tuple[float, float]]
    """Role of a limb → usual distances from root to middle and from middle to end, in
    the unit of ``limbs``."""
    ground: float
    """Height of the end of a leg that stands, in the unit of ``limbs``."""
    end_quat_w: dict[str, torch.Tensor] = field(default_factory=dict)
    """Role → rotation of a foot or hand since the mover stood upright. Shape: (T, 4)."""
    torso_quat_w: torch.Tensor | None = None
    """Rotation of the torso since the mover stood upright. Shape: (T, 4)."""
    loop: bool = False
    """True if the clip can be repeated."""

    @property
    def leg_length(self) -> float:
        """Length of a leg, hip to knee to foot."""
        legs = [sum(lengths) for role, lengths in self.lengths.items() if role.endswith("leg")]
        return float(np.mean(legs))

    def planted(self, role: str) -> torch.Tensor:
        """Return True for each frame in which the end of a leg is planted: low, and hardly moving.

        Args:
            role: Role of the leg.

        Returns:
            Shape: (T,), bool.
        """
        end = self.limbs[role][:, 2]
        speed = torch.gradient(end, spacing=1.0 / self.frame_rate, dim=0)[0].norm(dim=1)
        is_low = end[:, 2] - self.ground < PLANTED_HEIGHT * self.leg_length
        is_slow = speed < PLANTED_SPEED * self.leg_length
        planted = is_low & is_slow
        for first, end_frame in runs(planted):
            if end_frame - first < SHORTEST_PLANT * self.frame_rate:
                planted[first:end_frame] = False
        return planted


def runs(mask: torch.Tensor) -> list[tuple[int, int]]:
    """Return the first index, and the index after the last one, of each run of True in a mask."""
    padded = torch.cat((mask.new_zeros(1), mask, mask.new_zeros(1))).long().diff()
    firsts = (padded == 1).nonzero().squeeze(1).tolist()
    ends = (padded == -1).nonzero().squeeze(1).tolist()
    return list(zip(firsts, ends, strict=True))


def key_points_of(motion: Motion, robot: RobotCfg) -> KeyPoints:
    """Return the key points of a robot's motion.

    Args:
        motion: The motion.
        robot: Its robot.
    """
    stance = stance_of(robot)

    def positions(body: str) -> torch.Tensor:
        return motion.body_pos_w[:, motion.body_names.index(body)].double()

    def since_stance(body: str) -> torch.Tensor:
        quat = motion.body_quat_w[:, motion.body_names.index(body)].double()
        rest = torch.from_numpy(stance.quat[body])
        return rotation.multiply(quat, rotation.conjugate(rest).expand_as(quat))

    limbs = {}
    ends = {}
    lengths = {}
    for role, limb in limbs_of(robot).items():
        places = [positions(body) for body in limb.bodies]
        end_quat = motion.body_quat_w[:, motion.body_names.index(limb.end)].double()
        to_hand = end_quat.new_tensor(limb.hand)
        places[-1] = places[-1] + rotation.rotate(end_quat, to_hand)
        limbs[role] = torch.stack(places, dim=1)
        # The feet of a quadruped are points.
        if role.endswith("arm") or len(robot.foot_names) == 2:
            ends[role] = since_stance(limb.end)
        lengths[role] = limb.lengths
    torso = torso_of(robot)
    return KeyPoints(
        name=motion.name,
        frame_rate=motion.frame_rate,
        base_quat_w=motion.root_quat_w.double(),
        limbs=limbs,
        lengths=lengths,
        ground=robot.foot_radius,
        end_quat_w=ends,
        torso_quat_w=None if torso is None else since_stance(torso),
        loop=motion.loop,
    )
