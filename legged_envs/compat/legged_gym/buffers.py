"""Buffers of a task in which methods write observations, and the observation groups they hold."""

from typing import NamedTuple


class Buffer(NamedTuple):
    """A buffer of the user's object that holds an observation group."""

    name: str
    """Name of the buffer."""
    size_field: str
    """Field of ``cfg.env`` with its size."""


Buffers = dict[str, Buffer]
"""Observation groups mapped to their buffers, in the order in which ``step`` returns them."""

BUFFERS: Buffers = {
    "policy": Buffer(name="obs_buf", size_field="num_observations"),
    "critic": Buffer(name="privileged_obs_buf", size_field="num_privileged_obs"),
}
"""Buffers of a ``LeggedRobot``."""
