"""The left-right mirrored world: how observations and actions change when a robot is reflected in its x-z plane."""

from collections.abc import Callable, Iterable

import torch

from legged_envs.robots import RobotCfg

Kind = Callable[[RobotCfg, int], Iterable[tuple[int, float]]]
"""Gives for each entry of a term of a robot and size the entry that takes its place, and with which sign."""


def _signs(*signs: float) -> Kind:
    return lambda robot, size: enumerate(signs)


def _grid(columns: int) -> Kind:
    return lambda robot, size: ((i - i % columns + columns - 1 - i % columns, 1.0) for i in range(size))


KINDS: dict[str, Kind] = {
    "scalar": lambda robot, size: ((i, 1.0) for i in range(size)),
    "vector": _signs(1.0, -1.0, 1.0),
    "pseudovector": _signs(-1.0, 1.0, -1.0),
    "velocity_command": _signs(1.0, -1.0, -1.0),
    "clock": _signs(-1.0, -1.0),
    "joint": lambda robot, size: ((robot.joint_names.index(name), sign) for name, sign in robot.mirror),
    "foot": lambda robot, size: ((foot, 1.0) for foot in robot.foot_mirror),
    "scan": _grid(11),
}
"""How a term mirrors: unchanged; as a vector (x, −y, z); as an angular velocity; as (vx, −vy, −ωz); as (sin, cos) of a
clock half a stride later; joints or feet swapped left for right, joints with their signs; the 11 points of each row of
the default scan in reverse."""


class Mirror:
    """Mirrors vectors of ``terms`` (name, kind of ``KINDS``, size); ValueError if one has no such kind or size."""

    def __init__(self, robot: RobotCfg, terms: list[tuple[str, str | None, int]]):
        index: list[int] = []
        signs: list[float] = []
        for name, kind, size in terms:
            if kind not in KINDS:
                raise ValueError(f"term {name!r}: mirror must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
            entries = list(KINDS[kind](robot, size))
            if len(entries) != size:
                raise ValueError(f"term {name!r} cannot mirror as {kind!r}: expected size {len(entries)}, got {size}")
            index += [len(signs) + i for i, _ in entries]
            signs += [sign for _, sign in entries]
        self.index = torch.tensor(index)
        self.sign = torch.tensor(signs, dtype=torch.float32)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.index_select(-1, self.index.to(x.device)).mul_(self.sign.to(x.device))
