"""The left-right mirrored world: how observations and actions change when a robot is reflected in its x-z plane."""

from collections.abc import Callable, Iterable, Sequence

import torch

from legged_envs.robots import RobotCfg

Kind = Callable[[RobotCfg, int], Iterable[tuple[int, float]]]
"""Gives for each entry of a term of a robot and size the entry that takes its place, and with which sign."""


def _signs(*signs: float) -> Kind:
    return lambda robot, size: enumerate(signs)


def _grid(columns: int) -> Kind:
    return lambda robot, size: (
        (i - i % columns + columns - 1 - i % columns, 1.0) for i in range(size)
    )


KINDS: dict[str, Kind] = {
    "scalar": lambda robot, size: ((i, 1.0) for i in range(size)),
    "vector": _signs(1.0, -1.0, 1.0),
    "pseudovector": _signs(-1.0, 1.0, -1.0),
    "velocity_command": _signs(1.0, -1.0, -1.0),
    "goal": _signs(1.0, -1.0, 1.0, -1.0, 1.0),
    "clock": _signs(-1.0, -1.0),
    "joint": lambda robot, size: (
        (robot.joint_names.index(name), sign) for name, sign in robot.mirror
    ),
    "foot": lambda robot, size: ((foot, 1.0) for foot in robot.foot_mirror),
    "scan": _grid(11),
}
"""How a term mirrors, if not as "action": unchanged; as a vector (x, −y, z); as an angular velocity; as (vx, −vy, −ωz);
as the way (x, −y, z) to a goal, the turn to its heading and the time left; as (sin, cos) of a clock half a stride
later; joints or feet swapped left for right, joints with their signs; the 11 points of each row of the default scan in
reverse."""


def _actions(robot: RobotCfg, driven: Sequence[int]) -> Iterable[tuple[int, float]]:
    joints = list(KINDS["joint"](robot, robot.num_joints))
    partners = [joints[joint] for joint in driven]
    if alone := [robot.joint_names[joint] for joint, _ in partners if joint not in driven]:
        raise ValueError(f"actions do not mirror: {alone[0]!r} has none, and its partner has one")
    return [(driven.index(joint), sign) for joint, sign in partners]


class Mirror:
    """Mirrors vectors of ``terms`` (name, kind of ``KINDS`` or "action", size); ValueError if one has no such kind or
    size. An action's entries are for the joints ``driven``, by default all in their order."""

    def __init__(
        self,
        robot: RobotCfg,
        terms: list[tuple[str, str | None, int]],
        driven: Sequence[int] | None = None,
    ):
        index: list[int] = []
        signs: list[float] = []
        all_joints = range(robot.num_joints)
        kinds = {
            **KINDS,
            "action": lambda robot, size: _actions(robot, all_joints if driven is None else driven),
        }
        for name, kind, size in terms:
            if kind not in kinds:
                raise ValueError(
                    f"term {name!r}: mirror must be one of {', '.join(map(repr, kinds))}, got {kind!r}"
                )
            entries = list(kinds[kind](robot, size))
            if len(entries) != size:
                raise ValueError(
                    f"term {name!r} cannot mirror as {kind!r}: expected size {len(entries)}, got {size}"
                )
            index += [len(signs) + i for i, _ in entries]
            signs += [sign for _, sign in entries]
        self.index = torch.tensor(index)
        self.sign = torch.tensor(signs, dtype=torch.float32)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.index_select(-1, self.index.to(x.device)).mul_(self.sign.to(x.device))
