"""Errors of the libraries that draw pictures, without the import of these."""

import os


def rendering_error(failure: str, error: Exception) -> RuntimeError:
    """Return an error that explains what to do about OpenGL.

    Args:
        failure: What has failed, the beginning of the message.
        error: Error of MuJoCo or OpenGL.
    """
    return RuntimeError(
        f"{failure} with MUJOCO_GL={os.environ.get('MUJOCO_GL', '')!r}: {error}. "
        "Set it before mujoco is first imported: egl needs no display "
        "(Debian: apt-get install libegl1 libgl1-mesa-dri libopengl0), glfw needs one"
    )
