"""The command `legged-envs`: one file for each verb, and `command_line` with the entry point."""

from legged_envs.cli.command_line import VERBS, main, parse

__all__ = ["VERBS", "main", "parse"]
