"""Legged robots as registered, vectorized Gymnasium environments with a cost channel.

Importing this package registers the ids. torch and MuJoCo are imported when an environment is made.
"""

import os
import sys
from pathlib import Path

if sys.platform == "linux" and not os.environ.get("DISPLAY"):
    # Without a display, MuJoCo renders through EGL. It reads this once, when it is imported.
    os.environ.setdefault("MUJOCO_GL", "egl")

if not (Path(__file__).parent / "wrappers").is_dir():
    # Git on Windows writes the link to ../wrappers as a text file. The folder itself is found here.
    __path__.append(str(Path(__file__).parents[1]))

from legged_envs.registration import register, register_tasks
from legged_envs.tasks import make_task_cfg

__version__ = "0.2.0"
"""Version of the package."""

__all__ = ["__version__", "make_task_cfg", "register"]

register_tasks()
