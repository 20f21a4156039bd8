"""Reads the frames of AMP's files, which come in three widths."""

from collections.abc import Sequence
from typing import Any

import torch

from legged_envs import rotation
from legged_envs.motions.formats.loops import CYCLE_ROTATION, close_loop
from legged_envs.motions.formats.tables import ROOT_COLUMNS, check_table
from legged_envs.motions.motion import check_unit, require

LINEAR = ("root linear velocity x", "root linear velocity y", "root linear velocity z")
"""Names of the columns with the velocity of the base, in the base frame."""
ANGULAR = ("root angular velocity x", "root angular velocity y", "root angular velocity z")
"""Names of the columns with the angular velocity of the base, in the base frame."""


def read_frames(
    content: dict[str, Any],
    joints: Sequence[str],
    num_feet: int,
    origin: str,
    w_first: bool,
) -> dict[str, torch.Tensor]:
    """Return the parts of the frames by name: ``pos``, ``quat`` (x, y, z, w), ``joint_pos``, …

    Args:
        content: Content of the file.
        joints: Names of the joint columns.
        num_feet: Number of feet with positions and velocities in the file.
        origin: The file, for error messages.
        w_first: True if the quaternions of the file are (w, x, y, z).

    Raises:
        MotionError: A frame has an unknown width, or a number or a quaternion is bad.
    """
    rows = content["Frames"]
    feet = []
    for foot in range(num_feet):
        feet += [f"foot {foot} x", f"foot {foot} y", f"foot {foot} z"]
    joint_velocities = [f"{joint} velocity" for joint in joints]
    foot_velocities = [f"{foot} velocity" for foot in feet]
    positions = [*ROOT_COLUMNS, *joints]
    velocities = [*LINEAR, *ANGULAR, *joint_velocities]
    forms = (
        positions,
        [*positions, *velocities],
        [*positions, *feet, *velocities, *foot_velocities],
    )
    # The first frame decides which of the forms the file has.
    width = len(rows[0]) if isinstance(rows[0], list) else 0
    widths = [len(form) for form in forms]
    known = " or ".join(str(number) for number in widths)
    require(width in widths, origin, "frame 0", f"{known} columns wide", width)
    columns = forms[widths.index(width)]
    table = check_table(rows, columns, origin)
    order = "(w, x, y, z)" if w_first else "(x, y, z, w)"
    check_unit(table[:, 3:7], origin, f"root quaternion {order}")
    place = {column: number for number, column in enumerate(columns)}

    def part(names: Sequence[str]) -> torch.Tensor:
        return table[:, [place[name] for name in names]]

    quat_w = table[:, 3:7] if w_first else table[:, [6, 3, 4, 5]]
    parts = {"pos": table[:, :3], "joint_pos": part(joints)}
    if width > widths[0]:
        parts["ang_vel_b"] = part(ANGULAR)
        parts["joint_vel"] = part(joint_velocities)
    if width == widths[2]:
        parts["feet"] = part(feet)
    if content["LoopMode"] == "Wrap":
        parts["pos"], quat_w = close_loop(content, parts["pos"], quat_w, origin)
        if not content.get(CYCLE_ROTATION, True):
            # It belongs to the turned loop.
            parts.pop("ang_vel_b", None)
    parts["quat"] = quat_w[:, [1, 2, 3, 0]]
    if width > widths[0]:
        parts["lin_vel_w"] = rotation.rotate(quat_w, part(LINEAR))
    return parts
