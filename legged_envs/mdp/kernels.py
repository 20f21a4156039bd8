"""Kernels that turn errors into rewards."""

from torch import Tensor


def exponential(error: Tensor, sigma: float) -> Tensor:
    """Return exp(−error / σ).

    The memory of ``error`` is reused, so it must not be a tensor of the state.

    Args:
        error: Error, at least 0. Shape: (num_envs,).
        sigma: σ, in the unit of the error.

    Returns:
        Values in [0, 1]. Shape: (num_envs,).
    """
    # In place, because rewards are computed in every step.
    return error.mul_(-1.0 / sigma).exp_()
