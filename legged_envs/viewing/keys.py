"""Keys of MuJoCo's window that drive a robot."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import Range
from legged_envs.tasks.kind import kind_of
from legged_envs.viewing.scenes import Command, Scene, find_command_ranges

# Numbers of GLFW. MuJoCo's window itself does nothing with these keys.
UP_KEY = 265
"""Number of the arrow up."""
DOWN_KEY = 264
"""Number of the arrow down."""
LEFT_KEY = 263
"""Number of the arrow left."""
RIGHT_KEY = 262
"""Number of the arrow right."""
HOME_KEY = 268
"""Number of Home."""
END_KEY = 269
"""Number of End."""
ENTER_KEY = 257
"""Number of Enter."""

KEYS: dict[int, Command] = {
    UP_KEY: (0.1, 0.0, 0.0),
    DOWN_KEY: (-0.1, 0.0, 0.0),
    LEFT_KEY: (0.0, 0.0, 0.1),
    RIGHT_KEY: (0.0, 0.0, -0.1),
    HOME_KEY: (0.0, 0.1, 0.0),
    END_KEY: (0.0, -0.1, 0.0),
    ENTER_KEY: (0.0, 0.0, 0.0),
}
"""Keys that drive a robot, and how they change vx, vy and wz. Enter stops it."""


class Keys:
    """The command that the keys of the window ask for.

    Each press changes one part of the command, within the ranges of the task.

    Args:
        cfg: The task. If it has no velocity command, keys do nothing.
    """

    def __init__(self, cfg: TaskCfg):
        self.command: Command | None = None
        """The command. None until the first of :data:`KEYS` is pressed."""
        self._shown_command: Command | None = None
        self._ranges: tuple[Range, ...] = ()
        if kind_of(cfg).has_velocity_command:
            self._ranges = find_command_ranges(cfg)

    def press(self, key: int) -> None:
        """Change the command by a key.

        Args:
            key: GLFW's number. A key that is not in :data:`KEYS` belongs to the window.
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
        """Yield one scene for each control step: first the given ones, then what the keys ask for.

        From the first key on, the scenes never end.

        Args:
            scenes: Scenes to show until a key is pressed.
            step_dt: Duration of a control step, s.
        """
        for scene in scenes:
            for _ in range(round(scene.seconds / step_dt)):
                if self.command is not None:
                    break
                self._shown_command = scene.command
                yield replace(scene, seconds=step_dt)
        while self.command is not None:
            yield Scene(step_dt, self.command)
