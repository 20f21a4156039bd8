"""Where the episodes of a rollout begin and end."""

from __future__ import annotations

import torch


def has_previous(dones: torch.Tensor) -> torch.Tensor:
    """Where the step before belongs to the same episode: not at the first step, nor right after an end.

    Args:
        dones: Where an episode ended, bool. Shape: (num_steps, num_envs).

    Returns:
        Shape: (num_steps, num_envs), bool.
    """
    previous = torch.zeros_like(dones)
    torch.logical_not(dones[:-1], out=previous[1:])
    return previous


def trajectory_indices(dones: torch.Tensor, envs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The transitions of some environments as padded trajectories, one environment after another.

    A trajectory ends with its episode or with the rollout. Shorter ones are filled up to num_steps with their own last
    transition, so padding never holds values that a network could not have seen.

    Args:
        dones: Where an episode ended, bool. Shape: (num_steps, num_envs).
        envs: Which environments. Shape: (n,), int64.

    Returns:
        Indices step · num_envs + env, int64, and which of them count, bool. Shape of each: (num_steps,
        num_trajectories).
    """
    num_steps, num_envs = dones.shape
    first = has_previous(dones).logical_not_()[:, envs]
    rows, begins = first.T.nonzero(as_tuple=True)
    places = rows * num_steps + begins
    ends = torch.cat((places[1:], places.new_tensor([len(envs) * num_steps])))
    lengths = ends - places
    steps = torch.arange(num_steps, device=dones.device).unsqueeze(1)
    indices = (begins + torch.minimum(steps, lengths - 1)) * num_envs + envs[rows]
    return indices, steps < lengths
