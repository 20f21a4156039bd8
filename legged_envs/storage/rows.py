"""Rows of a rollout for a batch: single transitions, whole trajectories, recurrent states."""

import torch


def take(buffer: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Return entries of a buffer.

    Args:
        buffer: Shape: (num_steps, num_envs, …).
        indices: step · num_envs + env of each entry, int64, of any shape.

    Returns:
        Shape: (``*indices.shape``, …).
    """
    entries = buffer.flatten(0, 1)
    # index_select copies whole rows: on a CPU it is several times as fast as entries[indices].
    return entries.index_select(0, indices.flatten()).unflatten(0, indices.shape)


def has_previous(dones: torch.Tensor) -> torch.Tensor:
    """Return where the previous step is in the rollout and in the same episode.

    Args:
        dones: True where an episode ended. Shape: (num_steps, num_envs), bool.

    Returns:
        Shape: (num_steps, num_envs), bool.
    """
    first = torch.zeros_like(dones[:1])
    return torch.cat((first, ~dones[:-1]))


def trajectory_indices(
    continues: torch.Tensor, envs: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the transitions of some environments as padded trajectories.

    A trajectory starts where ``continues`` is False. A shorter trajectory is filled up with its
    last transition.

    Args:
        continues: Result of :func:`has_previous`. Shape: (num_steps, num_envs), bool.
        envs: Indices of the environments, in the order of their trajectories. Shape: (n,).

    Returns:
        Indices step · num_envs + env, int64, and a mask of the transitions that are not padding,
        both (num_steps, num_trajectories).
    """
    num_steps, num_envs = continues.shape
    # Row by row, nonzero lists the beginnings of one environment after the other.
    begins = continues[:, envs].logical_not().T
    rows, first_steps = begins.nonzero(as_tuple=True)
    # Laid end to end, a trajectory ends where the next one starts.
    places = rows * num_steps + first_steps
    end = places.new_tensor([len(envs) * num_steps])
    lengths = torch.cat((places[1:], end)) - places
    steps = torch.arange(num_steps, device=continues.device).unsqueeze(1)
    padded_steps = first_steps + torch.minimum(steps, lengths - 1)
    indices = padded_steps * num_envs + envs[rows]
    return indices, steps < lengths


def masked_row(
    buffer: torch.Tensor | None, mask: torch.Tensor | None, step: int
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return (observations, mask) of a step, None if they are not kept."""
    if buffer is None or mask is None:
        return None
    return buffer[step], mask[step]
