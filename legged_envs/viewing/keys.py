"""Keyboard control of a robot's velocity command in MuJoCo's window."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import Range
from legged_envs.tasks.kind import kind_of
from legged_envs.viewing.scenes import Command, Scene, find_command_ranges

# Numbers of GLFW. MuJoCo's window itself does nothing with these keys.
UP_KEY = 265
"""GLFW key code of the up arrow."""
DOWN_KEY = 264
"""GLFW key code of the down arrow."""
LEFT_KEY = 263
"""GLFW key code of the left arrow."""
RIGHT_KEY = 262
"""GLFW key code of the right arrow."""
HOME_KEY = 268
"""GLFW key code of the Home key."""
END_KEY = 269
"""GLFW key code of the End key."""
ENTER_KEY = 257
"""GLFW key code of the Enter key."""

KEYS: dict[int, Command] = {
    UP_KEY: (0.1, 0.0, 0.0),
    DOWN_KEY: (-0.1, 0.0, 0.0),
    LEFT_KEY: (0.0, 0.0, 0.1),
    RIGHT_KEY: (0.0, 0.0, -0.1),
    HOME_KEY: (0.0, 0.1, 0.0),
    END_KEY: (0.0, -0.1, 0.0),
    ENTER_KEY: (0.0, 0.0, 0.0),
}
"""Change of the velocity command (vx, m/s, vy, m/s, wz, rad/s) for one press of each key, by GLFW
key code. Enter sets the command to zero."""


class Keys:
    """Velocity command that is controlled with the keys of the window.

    Each press changes one component of the command. The command stays within the ranges of the
    task.

    Args:
        cfg: Configuration of the task. Without a velocity command, keys have no effect.
    """

    def __init__(self, cfg: TaskCfg):
        self.command: Command | None = None
        """Current velocity command (vx, vy, wz), m/s and rad/s. None until a key of :data:`KEYS` is
        pressed for the first time."""
        self._shown_command: Command | None = None
        self._ranges: tuple[Range, ...] = ()
        if kind_of(cfg).has_velocity_command:
            self._ranges = find_command_ranges(cfg)

    def press(self, key: int) -> None:
        """Change the velocity command by one key press.

        The first press changes the command of the scene that is shown. Other keys than those in
        :data:`KEYS` have no effect here: MuJoCo's window handles them.

        Args:
            key: GLFW key code.
        """
        # The first key changes the command that is shown, so that a walking robot does not stop.
        start = self.command or self._shown_command
        if key not in KEYS or start is None:
            return
        if key == ENTER_KEY:
            self.command = (0.0, 0.0, 0.0)
            return
        changed = []
        for value, change, (low, high) in zip(start, KEYS[key], self._ranges, strict=True):
            # Rounding keeps sums of 0.1 from showing as 0.30000000000000004.
            changed.append(round(min(max(value + change, low), high), 6))
        vx, vy, wz = changed
        self.command = (vx, vy, wz)

    def drive(self, scenes: Sequence[Scene], step_dt: float) -> Iterator[Scene]:
        """Yield one scene per control step: the given scenes, until a key is pressed.

        After the first key press, it yields scenes with the command of the keys, without end.

        Args:
            scenes: Scenes to show until a key is pressed, in order.
            step_dt: Duration of a control step, s.
        """
        gait = None
        for scene in scenes:
            for _ in range(round(scene.seconds / step_dt)):
                if self.command is not None:
                    break
                self._shown_command = scene.command
                gait = scene.gait
                yield replace(scene, seconds=step_dt)
        while self.command is not None:
            yield Scene(step_dt, self.command, gait=gait)
