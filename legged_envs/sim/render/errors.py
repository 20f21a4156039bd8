"""Errors about OpenGL. This module does not import MuJoCo, which loads OpenGL."""

import os


def rendering_error(failure: str, error: Exception) -> RuntimeError:
    """Return the error to raise when OpenGL does not load or start, with advice.

    Args:
        failure: Beginning of the message: what failed.
        error: Error of MuJoCo or OpenGL, which is quoted.
    """
    return RuntimeError(
        f"{failure} with MUJOCO_GL={os.environ.get('MUJOCO_GL', '')!r}: {error}. "
        "Set it before mujoco is first imported: egl needs no display "
        "(Debian: apt-get install libegl1 libgl1-mesa-dri libopengl0), glfw needs one"
    )
