"""`python -m legged_envs.compat.isaac_gym script.py …`: run a script written for Isaac Gym."""

import runpy
import sys
from pathlib import Path

from legged_envs.compat.isaac_gym import install
from legged_envs.compat.isaac_gym.numpy_names import restore_removed_names

USAGE = "usage: python -m legged_envs.compat.isaac_gym script.py [its arguments]"


def main() -> None:
    """Run the script that the command line names, with the arguments after its name."""
    if len(sys.argv) < 2:
        sys.exit(f"{USAGE}: no script is given")
    script = Path(sys.argv[1])
    if not script.is_file():
        sys.exit(f"{USAGE}: there is no file {sys.argv[1]!r}")
    install()
    restore_removed_names()
    # The script finds its own name, arguments and folder, as if Python itself had started it.
    sys.argv = sys.argv[1:]
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
