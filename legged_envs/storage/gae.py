"""Generalised advantage estimation (Schulman et al. 2016, "High-dimensional continuous control using …")."""

from __future__ import annotations

import torch


def next_values(
    values: torch.Tensor,
    last_values: torch.Tensor,
    dones: torch.Tensor,
    time_outs: torch.Tensor | None = None,
    final_values: torch.Tensor | None = None,
) -> torch.Tensor:
    """What each transition bootstraps from: the value of the state that it led to.

    That is 0 after a terminal state, ``final_values`` after a time-out, the value of the next row otherwise.

    Args:
        values: Of the states before each transition. Shape: (num_steps, num_envs, K).
        last_values: Of the states after the last one. Shape: (num_envs, K).
        dones: Where an episode ended, bool. Shape: (num_steps, num_envs, 1).
        time_outs: Where it ended by a time limit, bool. Shape: (num_steps, num_envs, 1).
        final_values: Of the last states of those episodes; other rows are not read. Shape: (num_steps, num_envs, K).

    Returns:
        Shape: (num_steps, num_envs, K).
    """
    following = torch.cat((values[1:], last_values.unsqueeze(0))).masked_fill_(dones, 0.0)
    if time_outs is None or final_values is None:
        return following
    return torch.where(time_outs, final_values, following)


def write_advantages(
    out: torch.Tensor,
    rewards: torch.Tensor,
    values: torch.Tensor,
    next_values: torch.Tensor,
    dones: torch.Tensor,
    gamma: float,
    lam: float,
) -> None:
    """Write A_t = r_t + γ·V'_t − V_t + γ·λ·(1 − done_t)·A_{t+1} into ``out``.

    Args:
        out: Shape: (num_steps, num_envs, K), as ``rewards``, ``values`` and ``next_values`` (V').
        dones: Where an episode ended, bool. Shape: (num_steps, num_envs, 1).
        gamma: Discount factor γ.
        lam: λ, 0 for one-step differences and 1 for whole returns.
    """
    torch.add(rewards, next_values, alpha=gamma, out=out).sub_(values)
    decay = dones.logical_not().to(out.dtype).mul_(gamma * lam)
    for step in reversed(range(len(out) - 1)):
        out[step].addcmul_(decay[step], out[step + 1])


def normalise_(advantages: torch.Tensor) -> None:
    """Bring each of K columns to mean 0 and standard deviation 1 in place; a column of equal values becomes 0.

    Args:
        advantages: Shape: (num_steps, num_envs, K).
    """
    freedom = min(1, advantages[..., 0].numel() - 1)
    std, mean = torch.std_mean(advantages, dim=(0, 1), correction=freedom)
    advantages.sub_(mean).div_(std.add_(1e-8))
