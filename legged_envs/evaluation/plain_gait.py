"""The gait command of robots in a plain loop, from only the contract of their policy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np


class PlainGait:
    """Gaits, styles and times in the stride of robots.

    Args:
        entry: Entry `gait_command` of a contract.
        commands: Gait commands as in `GaitCommand.value`. Shape: (n, 7).
        time: Times in the stride, in strides. Shape: (n,).
    """

    def __init__(self, entry: dict[str, Any], commands: np.ndarray, time: np.ndarray):
        self._phase_offsets = np.array(entry["phase_offsets"])
        self._still = float(entry["still"])
        self._commands = commands
        self._time = time

    def observe(self, i: int, velocity: np.ndarray) -> dict[str, np.ndarray]:
        """Return the observation terms of robot i.

        Args:
            i: Index of the robot.
            velocity: Its velocity command. Shape: (3,).
        """
        offsets = self._commands[i, :3]
        phase = self._time[i] + self._phase_offsets @ offsets
        angle = 2.0 * math.pi * phase
        moves = np.linalg.norm(velocity) > self._still
        return {
            "gait": np.cos(2.0 * math.pi * offsets),
            "gait_style": self._commands[i, 3:],
            "clock_sin": np.sin(angle) * moves,
            "clock_cos": np.cos(angle) * moves,
        }

    def advance(self, control_dt: float) -> None:
        """Advance the stride of every robot by one control step, s."""
        self._time = (self._time + control_dt / self._commands[:, 3]) % 1.0


def gait_term(name: str) -> Callable[[Any, Any, int], np.ndarray]:
    """Return the function `term(loop, data, i)` of an observation term of a gait command."""

    def observe(loop: Any, data: Any, i: int) -> np.ndarray:
        gait: PlainGait | None = loop.gait
        if gait is None:
            raise ValueError(
                f"the policy observes {name!r}, but its metadata lacks gait_command: "
                "export the policy again"
            )
        terms = gait.observe(i, loop.command[i])
        return terms[name]

    return observe
