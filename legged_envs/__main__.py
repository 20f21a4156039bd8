"""``python -m legged_envs`` is the command ``legged-envs``."""

from legged_envs.cli import main

main()
