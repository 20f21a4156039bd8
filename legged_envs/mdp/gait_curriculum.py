"""The curriculum of a gait command: styles and velocities widen for gaits that are followed."""

from collections.abc import Mapping

import torch

from legged_envs.checks import check_known
from legged_envs.mdp.commands import VELOCITY_RANGES
from legged_envs.mdp.context import Env


def widen_gait_commands(
    env: Env,
    env_ids: torch.Tensor,
    thresholds: Mapping[str, float],
    step: float = 0.002,
    slowest: float = 0.5,
    gait: str = "gait",
    velocity: str = "velocity",
) -> torch.Tensor:
    """Widen the ranges of the gaits that ended episodes followed well, and the ranges of the
    velocity.

    An episode followed its commands well if each reward of ``thresholds`` summed up to more than
    this share of its largest sum. Every such episode raises the level of its gaits: by ``step``
    times the share of the episode that each gait had. A level of 1 opens the whole ranges of
    :class:`~legged_envs.mdp.gait_command.GaitCommandCfg`. The ranges of the velocity command are
    its configured ranges, times ``slowest`` at level 0 and times 1 at a mean level of 1.

    Walk These Ways (Margolis and Agrawal 2022) raises the probability of cells of a grid of
    velocities, for each gait, by 0.2 for each success.

    Args:
        env_ids: Environments with an ended episode. Shape: (n,).
        thresholds: Name of a reward term with values in [0, 1] → share of its largest sum.
        step: Increase of the level by one episode, 0 to 1.
        slowest: Share of the velocity ranges at level 0. Slow commands are followed well enough by
            robots that only stand.
        gait: Name of the gait command.
        velocity: Name of the velocity command.

    Returns:
        Mean of the levels of all gaits, 0 to 1. Shape: ().

    Raises:
        ValueError: There is no reward term with such a name.
    """
    names = env.rewards.names
    check_known("widen_gait_commands: there is no reward term", thresholds, names, "terms")
    is_success = torch.ones(len(env_ids), dtype=torch.bool, device=env.device)
    for name, threshold in thresholds.items():
        column = names.index(name)
        # That of a term which is 1 in every step. Episodes that end early do not reach it.
        largest_sum = env.rewards.weights[column] * env.max_episode_length_s
        is_success &= env.rewards.episode_sums[env_ids, column] > threshold * largest_sum
    command = env.commands.terms[gait]
    share = command.gait_time[env_ids] / env.max_episode_length_s
    raised = (share * is_success.unsqueeze(1)).sum(0) * step
    command.level = (command.level + raised).clamp_(max=1.0)
    level = command.level.mean()
    _scale_velocity(env, velocity, slowest + (1.0 - slowest) * level.item())
    return level


def _scale_velocity(env: Env, name: str, share: float) -> None:
    """Set the ranges of a velocity command to its configured ranges, times ``share``."""
    command = env.commands.terms[name]
    for field in VELOCITY_RANGES:
        low, high = getattr(command.cfg, field)
        command.set_range(field, low * share, high * share)
