"""Finds the partners of joints and feet when left and right are swapped."""

from collections.abc import Sequence

import mujoco
import numpy as np

from legged_envs.robots.reading.pose import Pose, mirror_sign
from legged_envs.robots.robot import counterpart

MIRROR_TOLERANCE = 0.05
"""Largest distance of a mirrored joint or foot from its partner, as a fraction of the robot's
height."""


def joint_partners(pose: Pose, joints: Sequence[str], height: float) -> dict[str, str]:
    """Return the partner of each joint on the other side; a joint without one is its own partner.

    Partners are found by names, left and right or L and R. Joints without such names, or with a
    partner by name that is elsewhere, are paired by their positions and axes in the default pose.

    Args:
        pose: Robot in its default pose, without a tilt.
        joints: Names of the joints.
        height: Height of the base above the ground, m.
    """
    places = np.array([pose.data.joint(joint).xanchor for joint in joints])
    partners = _partners_by_name(joints)
    errors = _mirror_errors(places)
    tolerance = MIRROR_TOLERANCE * height
    open_joints = []
    for i, joint in enumerate(joints):
        partner = joints.index(partners[joint])
        if errors[i, partner] > tolerance:
            open_joints.append(i)
    for i in open_joints:
        for j in range(len(joints)):
            if not _are_images(pose, joints[i], joints[j]):
                errors[i, j] = np.inf
    for i, j in _closest_pairs(errors, open_joints, tolerance):
        partners[joints[i]] = joints[j]
        partners[joints[j]] = joints[i]
    for joint in joints:
        # A joint that lost its partner by name to another one has none.
        if partners[partners[joint]] != joint:
            partners[joint] = joint
    return partners


def foot_partners(pose: Pose, feet: Sequence[str], height: float) -> tuple[int, ...]:
    """Return the index of each foot's partner on the other side, by names or by positions."""
    by_name = _partners_by_name(feet)
    partners = [feet.index(by_name[foot]) for foot in feet]
    places = np.array([pose.data.body(foot).xpos for foot in feet])
    errors = _mirror_errors(places)
    tolerance = MIRROR_TOLERANCE * height
    open_feet = [i for i, partner in enumerate(partners) if errors[i, partner] > tolerance]
    for i, j in _closest_pairs(errors, open_feet, tolerance):
        partners[i] = j
        partners[j] = i
    for i, j in enumerate(list(partners)):
        # A foot that lost its partner by name to another one has none.
        if partners[j] != i:
            partners[i] = i
    return tuple(partners)


def _partners_by_name(names: Sequence[str]) -> dict[str, str]:
    partners = {}
    for name in names:
        partner = counterpart(name, names)
        is_mutual = counterpart(partner, names) == name
        partners[name] = partner if is_mutual else name
    return partners


def _mirror_errors(places: np.ndarray) -> np.ndarray:
    """Return the distance of each mirrored place, row, from each place, column, m.

    Shapes: (n, 3) → (n, n).
    """
    # The sagittal plane of a symmetric robot is in the middle, also if its root is not.
    middle = 0.5 * (places[:, 1].min() + places[:, 1].max())
    centred = places - (0.0, middle, 0.0)
    images = centred * (1.0, -1.0, 1.0)
    return np.linalg.norm(images[:, None] - centred[None], axis=2)


def _are_images(pose: Pose, joint: str, partner: str) -> bool:
    model, data = pose
    kinds = (model.joint(joint).type[0], model.joint(partner).type[0])
    depths = (_depth(model, joint), _depth(model, partner))
    is_same_kind = kinds[0] == kinds[1] and depths[0] == depths[1]
    return is_same_kind and mirror_sign(model, data, joint, partner) != 0.0


def _depth(model: mujoco.MjModel, joint: str) -> int:
    """Return the number of joints between the base and a joint's body, including the joint."""
    body = int(model.joint(joint).bodyid[0])
    depth = 0
    while body != 0:
        depth += int(model.body_jntnum[body])
        body = int(model.body_parentid[body])
    return depth


def _closest_pairs(
    errors: np.ndarray, open_ids: Sequence[int], tolerance: float
) -> list[tuple[int, int]]:
    """Return pairs of the open indices, the closest first, each index in at most one pair."""
    candidates = []
    for i in open_ids:
        for j in open_ids:
            error = max(errors[i, j], errors[j, i])
            if i <= j and error <= tolerance:
                candidates.append((error, i, j))
    pairs = []
    taken: set[int] = set()
    for _, i, j in sorted(candidates):
        if i not in taken and j not in taken:
            pairs.append((i, j))
            taken.update((i, j))
    return pairs
