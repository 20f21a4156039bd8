"""Mirroring of observations and actions, for policies that treat left and right equally.

The robot is reflected in the x-z plane of its base: left and right are exchanged.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from legged_envs.mdp.scan import SCAN_Y
from legged_envs.robots import RobotCfg

Entries = list[tuple[int, float]]
"""Mirroring of a term: for each entry of the result, (index of the source entry, its sign)."""
Kind = Callable[[RobotCfg, int], Entries]
"""Function that returns the mirroring of a term, from a robot and the size of the term."""


def _with_signs(*signs: float) -> Entries:
    return list(enumerate(signs))


def _mirror_scalar(robot: RobotCfg, size: int) -> Entries:
    """Leave every entry unchanged."""
    return [(index, 1.0) for index in range(size)]


def _mirror_vector(robot: RobotCfg, size: int) -> Entries:
    """Mirror (x, y, z) to (x, −y, z)."""
    return _with_signs(1.0, -1.0, 1.0)


def _mirror_pseudovector(robot: RobotCfg, size: int) -> Entries:
    """Mirror an angular velocity (x, y, z) to (−x, y, −z)."""
    return _with_signs(-1.0, 1.0, -1.0)


def _mirror_velocity_command(robot: RobotCfg, size: int) -> Entries:
    """Mirror (vx, vy, ωz) to (vx, −vy, −ωz)."""
    return _with_signs(1.0, -1.0, -1.0)


def _mirror_goal(robot: RobotCfg, size: int) -> Entries:
    """Mirror the way (x, y, z) to a goal, the turn to its heading and the time left."""
    return _with_signs(1.0, -1.0, 1.0, -1.0, 1.0)


def _mirror_clock(robot: RobotCfg, size: int) -> Entries:
    """Shift (sin, cos) of a gait clock by half a stride: left and right feet change places."""
    # sin and cos of an angle plus π.
    return _with_signs(-1.0, -1.0)


def _mirror_joints(robot: RobotCfg, size: int) -> Entries:
    """Swap the joints of the left and the right, with the signs of the robot."""
    return [(robot.joint_names.index(name), sign) for name, sign in robot.mirror]


def _mirror_feet(robot: RobotCfg, size: int) -> Entries:
    """Swap the feet of the left and the right."""
    return [(foot, 1.0) for foot in robot.foot_mirror]


def mirror_scan(y: Sequence[float]) -> Kind:
    """Return the mirroring of a height scan, in which the points of one x follow each other.

    Each such row of points is reversed.

    Args:
        y: Positions of the points of one x to the left of the robot, m. Those on the right are the
            mirror images of those on the left.

    Raises:
        ValueError: If a point of ``y`` has no mirror image at its place in the reversed order.
    """
    if not np.allclose(y, -np.array(y)[::-1]):
        raise ValueError(f"a height scan with y = {tuple(y)} does not mirror: y must be symmetric")
    width = len(y)

    def mirror(robot: RobotCfg, size: int) -> Entries:
        entries = []
        # Whole rows, so that another size is refused.
        for first in range(0, max(size, width) - width + 1, width):
            for column in range(width):
                entries.append((first + width - 1 - column, 1.0))
        return entries

    return mirror


KINDS: dict[str, Kind] = {
    "scalar": _mirror_scalar,
    "vector": _mirror_vector,
    "pseudovector": _mirror_pseudovector,
    "velocity_command": _mirror_velocity_command,
    "goal": _mirror_goal,
    "clock": _mirror_clock,
    "joint": _mirror_joints,
    "foot": _mirror_feet,
    "scan": mirror_scan(SCAN_Y),
}
"""Name of a kind of term → function that returns its mirroring.

The kind "action" is not in it, because its mirroring depends on the joints that have an action.
"""


def _mirror_actions(robot: RobotCfg, driven: Sequence[int]) -> Entries:
    """Swap the actions of ``driven`` joints as the joints are swapped."""
    joints = _mirror_joints(robot, robot.num_joints)
    entries = []
    for joint in driven:
        partner, sign = joints[joint]
        # The policy could not do in the mirrored world what it does in this one.
        if partner not in driven:
            raise ValueError(
                f"actions do not mirror: {robot.joint_names[partner]!r} has no action, "
                "and its partner has one"
            )
        entries.append((driven.index(partner), sign))
    return entries


class Mirror:
    """Mirrors observation or action vectors: exchanges left and right, and changes signs.

    Args:
        robot: Robot of the vectors, which defines the partner and the sign of each joint and foot.
        terms: (name, kind, size) of each term, in the order of the vector. The kind is one of
            ``KINDS``, "action", or a function such as :func:`mirror_scan` returns.
        driven: Index of the joint of each entry of an action. None: all joints in their order.

    Raises:
        ValueError: A kind is unknown, the size of a term does not fit its kind, or a joint has an
            action while its partner on the other side has none.
    """

    def __init__(
        self,
        robot: RobotCfg,
        terms: list[tuple[str, str | Kind | None, int]],
        driven: Sequence[int] | None = None,
    ):
        index: list[int] = []
        signs: list[float] = []
        if driven is None:
            driven = range(robot.num_joints)
        for name, kind, size in terms:
            entries = _mirror_term(robot, name, kind, size, driven)
            # Entries count from the start of their term.
            first = len(signs)
            for source, sign in entries:
                index.append(first + source)
                signs.append(sign)
        self.index = torch.tensor(index)
        """Index of the source of each entry of a mirrored vector. Shape: (size,), int64."""
        self.sign = torch.tensor(signs, dtype=torch.float32)
        """Sign, ±1, by which each entry is multiplied after the exchange. Shape: (size,)."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mirrored vectors, without a change of ``x``. Shapes: (…, size) → (…, size)."""
        exchanged = x.index_select(-1, self.index.to(x.device))
        # index_select made a new tensor, so x is not changed.
        return exchanged.mul_(self.sign.to(x.device))


def _mirror_term(
    robot: RobotCfg,
    name: str,
    kind: str | Kind | None,
    size: int,
    driven: Sequence[int],
) -> Entries:
    if kind == "action":
        entries = _mirror_actions(robot, driven)
    elif callable(kind):
        entries = kind(robot, size)
    elif kind in KINDS:
        entries = KINDS[kind](robot, size)
    else:
        known = ", ".join(repr(each) for each in (*KINDS, "action"))
        raise ValueError(f"term {name!r}: mirror must be one of {known}, got {kind!r}")
    if len(entries) != size:
        label = kind if isinstance(kind, str) else "scan"
        raise ValueError(
            f"term {name!r} cannot mirror as {label!r}: expected size {len(entries)}, got {size}"
        )
    return entries
