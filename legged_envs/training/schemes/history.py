"""The history that a scheme gives to the policy, as a change of the task."""

from collections.abc import Mapping
from typing import Any

from legged_envs.checks import whole_number
from legged_envs.envs.cfg import TaskCfg
from legged_envs.training.scheme_options import HISTORY, SchemeCfg

KERNEL = 3
"""Number of frames that a convolution of the encoder ``tcn`` sees."""


def with_history(changes: Mapping[str, Any], algo: SchemeCfg, task: TaskCfg) -> dict[str, Any]:
    """Return the changes to a task, and among them the history of the policy.

    Policy and checkpoint contain these changes. ``eval``, ``play`` and ``export`` therefore use the
    same history.

    Args:
        changes: Changes that the user made, by dotted path.
        algo: Options of the scheme.
        task: Configuration of the task with these changes.

    Raises:
        ValueError: If the history is too short, contradicts the changes, or the task's own.
    """
    whole_number("--history", algo.history, least=2)
    if not task.is_reconfigurable or "policy" not in task.observations:
        raise ValueError(
            "a scheme needs a task with observation terms in the group 'policy'; train this "
            "task with ppo or lstm"
        )
    group = task.observations["policy"]
    own_terms = [name for name, term in group.terms.items() if term.history is not None]
    if own_terms:
        raise ValueError(
            f"a scheme gives the group 'policy' its history, and {', '.join(own_terms)} of it have "
            "their own: set it to None, or train with ppo"
        )
    given = group.history
    # A history of 1 is the default, unless it was asked for.
    if given != algo.history and (given != 1 or HISTORY in changes):
        raise ValueError(
            f"--history is {algo.history}, but {HISTORY} is {given}: give --history {given}, or "
            "leave the change out"
        )
    frames = least_frames(algo)
    if algo.history < frames:
        raise ValueError(
            f"--encoder {algo.encoder} with {len(algo.encoder_hidden)} layers needs "
            f"--history of at least {frames}, got {algo.history}"
        )
    return {**changes, HISTORY: algo.history}


def least_frames(cfg: SchemeCfg) -> int:
    """Return the number of frames that the encoder needs at least."""
    if cfg.encoder != "tcn":
        return 1
    return 1 + (KERNEL - 1) * (2 ** len(cfg.encoder_hidden) - 1)
