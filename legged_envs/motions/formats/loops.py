"""Closes the loops of AMP's files: repetitions may have the first place or heading again."""

from typing import Any

import torch

from legged_envs import rotation
from legged_envs.motions.motion import require

CYCLE_POSITION = "EnableCycleOffsetPosition"
"""Key: true if each repetition of a loop starts where the one before ended."""
CYCLE_ROTATION = "EnableCycleOffsetRotation"
"""Key: true if each repetition of a loop starts with the heading with which the one before ended.
"""
LARGEST_SPREAD_TURN = 0.5
"""Largest turn of a loop about z that is spread over its frames to end at its first heading, rad.
"""
LARGEST_RETURN = 0.01
"""Largest displacement of a loop that returns to its first position, m."""


def close_loop(
    content: dict[str, Any], pos: torch.Tensor, quat: torch.Tensor, origin: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the poses of a loop, changed so that it repeats as in the file.

    Each repetition of a :class:`Motion` starts at the place and with the heading at which the one
    before it ended. A file may define that each repetition has the first heading again. Then the
    turn of the loop, which is small in such files, is spread over its frames and taken back.
    Velocities turn with it.

    Args:
        content: Content of the file.
        pos: Positions of the base, m. Shape: (T, 3).
        quat: Orientations (w, x, y, z). Shape: (T, 4).
        origin: The file, for error messages.
    """
    step = (pos[-1, :2] - pos[0, :2]).norm().item()
    returns = content.get(CYCLE_POSITION, True) or step <= LARGEST_RETURN
    expected = f"true in a loop that ends {step:.2f} m from its start, or LoopMode 'Clamp'"
    require(returns, origin, CYCLE_POSITION, expected, False)
    if content.get(CYCLE_ROTATION, True):
        return pos, quat
    whole = rotation.multiply(quat[-1:], rotation.conjugate(quat[:1]))
    turn = rotation.twist_about_z(whole)[0]
    is_small = abs(turn.item()) <= LARGEST_SPREAD_TURN
    expected = f"true in a loop that turns by {turn.item():.2f} rad, or LoopMode 'Clamp'"
    require(is_small, origin, CYCLE_ROTATION, expected, False)
    back = rotation.from_yaw(-turn * torch.linspace(0.0, 1.0, len(pos), dtype=pos.dtype))
    steps = pos.diff(dim=0)
    # Each step keeps its direction in the base frame, half-way between its two frames.
    middle = rotation.from_yaw(
        -turn * (torch.arange(len(steps), dtype=pos.dtype) + 0.5) / len(steps)
    )
    turned = rotation.rotate(middle, steps)
    straight = torch.cat((pos[:1], pos[:1] + turned.cumsum(0)))
    return straight, rotation.multiply(back, quat)
