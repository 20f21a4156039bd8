"""Pictures of many environments, and the window that shows one of them."""

import time
import warnings

import numpy as np

from legged_envs.sim.simulation import Simulation
from legged_envs.system_checks import has_display

MAX_PICTURES = 64
"""Largest number of environments that are all drawn."""

FIRST_PICTURES = 4
"""Number of environments that are drawn if there are more than ``MAX_PICTURES``."""

UNDRAWN_GREY = 128
"""Brightness of the picture of an environment that is not drawn, 0 to 255."""


def draw_environments(sim: Simulation) -> tuple[np.ndarray, ...]:
    """Return a picture of each environment, from ``ViewerCfg.env_index`` on.

    Of more than ``MAX_PICTURES`` environments only the first ``FIRST_PICTURES`` are drawn. The
    pictures of all other environments are grey, with a warning.

    Args:
        sim: Simulation that draws the environments.

    Returns:
        Pictures, (height, width, 3), uint8.
    """
    first = sim.viewer.env_index
    count = sim.num_envs - first
    num_drawn = count if count <= MAX_PICTURES else FIRST_PICTURES
    pictures = [sim.render(first + i) for i in range(num_drawn)]
    if num_drawn < count:
        warnings.warn(
            f"render() draws {num_drawn} of {count} environments, and the pictures of the others "
            f"are grey: make at most {MAX_PICTURES} environments to see all of them",
            stacklevel=3,
        )
        # The same picture for all of them: thousands of pictures would fill the memory.
        grey = np.full_like(pictures[0], UNDRAWN_GREY)
        pictures.extend([grey] * (count - num_drawn))
    return tuple(pictures)


class LiveWindow:
    """A window that shows an environment in real time, for ``render_mode="human"``.

    Args:
        sim: Simulation with the environment ``ViewerCfg.env_index`` to show.
        step_dt: Duration of one control step, s.

    Raises:
        RuntimeError: If the machine has no display.
    """

    def __init__(self, sim: Simulation, step_dt: float):
        if not has_display():
            raise RuntimeError(
                "render_mode='human' opens a window, and this machine has no display: take "
                "render_mode='rgb_array', or watch a policy in a browser with legged-envs play "
                "ID --web"
            )
        self._sim = sim
        self._step_dt = step_dt
        self._due = time.perf_counter()
        self._is_open = True

    def show(self) -> None:
        """Show the present state, when it is due. Nothing happens after the window was closed."""
        if not self._is_open:
            return
        self._is_open = self._sim.view()
        # Due times add up, so that time stays real after a slow step. A pause is not caught up.
        now = time.perf_counter()
        self._due = max(self._due + self._step_dt, now - self._step_dt)
        time.sleep(max(0.0, self._due - now))
