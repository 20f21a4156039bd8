"""Names of the buffers behind the fields of transitions and batches, and checks of their
tensors."""

from collections.abc import Sequence

import torch

from legged_envs.checks import whole_number

Shape = Sequence[int] | Sequence[None] | None
"""Shape of one environment's entry; None or [None] for an entry that is not kept."""

SHARED_BUFFERS = {
    "observations": "observations",
    "reference_observations": "reference_observations",
    "reference_observations_mask": "reference_observations_mask",
    "critic_observations": "privileged_observations",
    "critic_reference_observations": "privileged_reference_observations",
    "critic_reference_observations_mask": "privileged_reference_observations_mask",
    "actions": "actions",
    "dagger_actions": "dagger_actions",
    "values": "values",
    "actions_log_prob": "actions_log_prob",
    "action_mean": "mu",
    "action_sigma": "sigma",
    "rnd_state": "rnd_state",
    "cost_values": "cost_values",
}
"""Fields that a ``Transition`` and a ``MiniBatch`` both have, mapped to the storage's buffers."""

TRANSITION_BUFFERS = {
    **SHARED_BUFFERS,
    "privileged_actions": "privileged_actions",
    "rewards": "rewards",
    "dones": "dones",
    "cost_rewards": "cost_rewards",
}
"""Fields of a ``Transition`` that are kept, mapped to the storage's buffers."""

BATCH_BUFFERS = {
    **SHARED_BUFFERS,
    "advantages": "advantages",
    "returns": "returns",
    "cost_advantages": "cost_advantages",
    "cost_returns": "cost_returns",
}
"""Fields of a ``MiniBatch`` that are read from the storage's buffers, mapped to the buffers."""

BUFFERS = tuple(dict.fromkeys([*TRANSITION_BUFFERS.values(), *BATCH_BUFFERS.values()]))
"""Names of the storage's tensors, without duplicates: one for each stored quantity of a step."""


def is_like(tensor: object, row: torch.Tensor) -> bool:
    """Return True if a tensor can be copied to a row of a buffer as it is."""
    return (
        type(tensor) is torch.Tensor
        and tensor.shape == row.shape
        and tensor.dtype is row.dtype
        and tensor.device == row.device
        and not tensor.requires_grad
    )


def fitting(name: str, tensor: object, like: torch.Tensor) -> torch.Tensor:
    """Check a tensor of a transition, and return it with the shape of its row in the storage.

    Args:
        name: Name of the tensor, for errors.
        tensor: Tensor to check. A last dimension of 1 may be missing.
        like: Row of the storage, with the expected shape, dtype and device. A row of dtype uint8
            is for flags and accepts bool and all integer types.

    Returns:
        Tensor with the shape of ``like``.

    Raises:
        ValueError: If the tensor is missing, or has another shape or device.
        TypeError: If ``tensor`` is not a tensor, or has another dtype.
    """
    if tensor is None:
        raise ValueError(f"{name} is missing: expected a tensor of shape {tuple(like.shape)}")
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(tensor).__name__}")
    if tensor.shape != like.shape:
        may_lack_column = like.ndim >= 2 and like.shape[-1] == 1
        if not may_lack_column or tensor.shape != like.shape[:-1]:
            raise ValueError(
                f"{name}: expected shape {tuple(like.shape)}, got {tuple(tensor.shape)}"
            )
        tensor = tensor.unsqueeze(-1)
    check_device(name, tensor, like.device)
    if tensor.dtype is like.dtype:
        return tensor
    is_integer = not tensor.is_floating_point() and not tensor.is_complex()
    if like.dtype is torch.uint8 and is_integer:
        # Copied as they are, integers such as 256 would become 0 in uint8.
        return tensor if tensor.dtype is torch.bool else tensor != 0
    raise TypeError(
        f"{name}: expected {like.dtype}, got {tensor.dtype}: convert it with .to({like.dtype})"
    )


def check_device(name: str, tensor: torch.Tensor, device: torch.device) -> None:
    """Raise a ValueError unless a tensor is on ``device``."""
    if tensor.device != device:
        raise ValueError(
            f"{name}: expected device {device}, got {tensor.device}: "
            f"move it with .to({str(device)!r})"
        )


def entry_shape(name: str, shape: Shape) -> tuple[int, ...] | None:
    """Return the shape of one environment's entry, None if ``shape`` is None or [None].

    Args:
        name: Name of the argument, for errors.
        shape: The argument.

    Raises:
        TypeError: If the argument is not a sequence.
        ValueError: If the argument is empty, or a size is not a positive integer.
    """
    if shape is not None and not isinstance(shape, Sequence):
        raise TypeError(
            f"{name} must be None or a sequence of integers such as (48,), got {shape!r}"
        )
    if shape is None or (len(shape) == 1 and shape[0] is None):
        return None
    if not len(shape):
        raise ValueError(
            f"{name} must be None or the shape of one environment's entry such as (48,), "
            f"got {shape!r}"
        )
    sizes = []
    for index, size in enumerate(shape):
        sizes.append(whole_number(f"{name}[{index}]", size))
    return tuple(sizes)
