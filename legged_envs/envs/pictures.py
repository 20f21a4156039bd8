"""Pictures of many environments."""

import warnings

import numpy as np

from legged_envs.sim.simulation import Simulation

MAX_PICTURES = 64
"""Largest number of environments that are all drawn."""

FIRST_PICTURES = 4
"""Number of environments that are drawn if there are more than ``MAX_PICTURES``."""

UNDRAWN_GREY = 128
"""Brightness of the picture of an environment that is not drawn, 0 to 255."""


def draw_environments(sim: Simulation) -> tuple[np.ndarray, ...]:
    """Return a picture of each environment, from ``ViewerCfg.env_index`` on.

    Of more than ``MAX_PICTURES`` environments only the first ``FIRST_PICTURES`` are drawn. The
    pictures of the others are grey, and a warning says so.

    Args:
        sim: Simulation that draws them.

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
