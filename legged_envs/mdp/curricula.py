"""Curriculum terms: ``term(env, env_ids, **params)`` → a number to log, called when episodes are over."""

import torch

from legged_envs.mdp.context import Env


def widen_velocity_command(
    env: Env,
    env_ids: torch.Tensor,
    reward: str = "tracking_lin_vel",
    threshold: float = 0.8,
    step: float = 0.1,
    largest: float = 1.0,
    command: str = "velocity",
) -> float:
    """Ask for faster walking once the robots follow well (LeggedGym-Ex ``_update_command_curriculum``).

    If the mean sum of ``reward`` over the episodes that ended is above ``threshold`` of the most that a whole episode
    gives, the range of vx grows by ``step`` m/s at both ends, to ±``largest`` at most. Returns its upper end, m/s;
    ValueError if the task has no such reward term.
    """
    names = env.rewards.names
    if reward not in names:
        raise ValueError(f"widen_velocity_command: there is no reward term {reward!r}; terms: {', '.join(names)}")
    column, term = names.index(reward), env.commands.terms[command]
    low, high = term.ranges[0].tolist()
    most = env.rewards.weights[column] * env.max_episode_length_s
    if env.rewards.episode_sums[env_ids, column].mean().item() > threshold * most:
        low, high = max(low - step, -largest), min(high + step, largest)
        term.set_range("lin_vel_x", low, high)
    return high
