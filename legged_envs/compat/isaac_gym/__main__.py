"""``python -m legged_envs.compat.isaac_gym script.py …``: run a script that was written for Isaac Gym."""

import runpy
import sys
from pathlib import Path

from legged_envs.compat.isaac_gym import install

if __name__ == "__main__":
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        given = f"there is no file {sys.argv[1]!r}" if len(sys.argv) > 1 else "no script is given"
        sys.exit(
            f"usage: python -m legged_envs.compat.isaac_gym script.py [its arguments]: {given}"
        )
    install()
    sys.argv, sys.path[0] = sys.argv[1:], str(Path(sys.argv[1]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
