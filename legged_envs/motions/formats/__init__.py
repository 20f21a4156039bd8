"""Readers of motion files, one module for each format.

:func:`read_motion` finds the format of a file by its ending and its content.
"""

from legged_envs.motions.formats.find import read_motion

__all__ = ["read_motion"]
