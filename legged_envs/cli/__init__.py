"""The command ``legged-envs``."""

from legged_envs.cli.command_line import VERBS, main, parse

__all__ = ["VERBS", "main", "parse"]
