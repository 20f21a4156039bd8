"""Where MuJoCo's warnings go: to the log of Python, and not to a file in the working directory."""

import logging

import mujoco

LOGGER = logging.getLogger(__name__)
"""Log of MuJoCo's warnings, for example of an unstable simulation."""


def keep_no_log_file() -> None:
    """Let MuJoCo pass its warnings on to :data:`LOGGER`, unless somebody handles them already.

    By default MuJoCo appends each to the file MUJOCO_LOG.TXT in the working directory.
    """
    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(_log_warning)


def _log_warning(message: str) -> None:
    # Environments report bad physics by themselves, so this is for whoever looks for the cause.
    LOGGER.info("%s", message)
