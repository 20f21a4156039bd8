"""The command `legged-envs`: one module for each verb, and `command_line`, which starts them."""

from legged_envs.cli.command_line import VERBS, main, parse

__all__ = ["VERBS", "main", "parse"]
