"""The left-right mirrored world: how observations and actions change when a robot is reflected in its x-z plane."""

from __future__ import annotations

from collections.abc import Callable

import torch

from legged_envs.robots import RobotCfg

IndexSigns = tuple[list[int], list[float]]


def _fixed(*signs: float) -> Callable[[RobotCfg, int], IndexSigns]:
    def mirror(robot: RobotCfg, size: int) -> IndexSigns:
        if size != len(signs):
            raise ValueError(f"expected size {len(signs)}, got {size}")
        return list(range(size)), list(signs)

    return mirror


def _scalar(robot: RobotCfg, size: int) -> IndexSigns:
    return list(range(size)), [1.0] * size


def _joint(robot: RobotCfg, size: int) -> IndexSigns:
    index = [robot.joint_names.index(name) for name, _ in robot.mirror]
    if size != len(index):
        raise ValueError(f"expected size {len(index)}, got {size}")
    return index, [sign for _, sign in robot.mirror]


def _foot(robot: RobotCfg, size: int) -> IndexSigns:
    if size != len(robot.foot_mirror):
        raise ValueError(f"expected size {len(robot.foot_mirror)}, got {size}")
    return list(robot.foot_mirror), [1.0] * size


KINDS: dict[str, Callable[[RobotCfg, int], IndexSigns]] = {
    "scalar": _scalar,
    "vector": _fixed(1.0, -1.0, 1.0),
    "pseudovector": _fixed(-1.0, 1.0, -1.0),
    "velocity_command": _fixed(1.0, -1.0, -1.0),
    "clock": _fixed(-1.0, -1.0),
    "joint": _joint,
    "foot": _foot,
}
"""How a term mirrors: unchanged; as a vector (x, −y, z); as an angular velocity; as (vx, −vy, −ωz); as (sin, cos) of a
clock by which left and right take turns, half a stride later; joints or feet swapped left for right, joints with their
signs."""


class Mirror:
    """Mirrors vectors made of terms: ``y = x[..., index] * sign``.

    Args:
        robot: The robot.
        terms: (name, kind, size) of each term, in order; kinds are the keys of ``KINDS``.

    Raises:
        ValueError: If a kind is unknown or missing, or a size does not fit it; the message names the term.
    """

    def __init__(self, robot: RobotCfg, terms: list[tuple[str, str | None, int]]):
        index: list[int] = []
        signs: list[float] = []
        for name, kind, size in terms:
            if kind not in KINDS:
                raise ValueError(f"term {name!r}: mirror must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
            try:
                term_index, term_signs = KINDS[kind](robot, size)
            except ValueError as error:
                raise ValueError(f"term {name!r} cannot mirror as {kind!r}: {error}") from None
            index += [len(signs) + i for i in term_index]
            signs += term_signs
        self.index = torch.tensor(index)
        self.sign = torch.tensor(signs, dtype=torch.float32)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Shape: (..., size) → (..., size)."""
        return x.index_select(-1, self.index.to(x.device)).mul_(self.sign.to(x.device))
