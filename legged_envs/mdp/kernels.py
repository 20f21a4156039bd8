"""Kernels: functions that convert an error to a reward."""

from torch import Tensor


def exponential(error: Tensor, sigma: float) -> Tensor:
    """Return the reward exp(−error / σ), which is 1 for no error and near 0 for large errors.

    The result overwrites the memory of ``error``. Do not pass a tensor that is used later.

    Args:
        error: Error, at least 0. Shape: (num_envs,).
        sigma: σ, in the unit of the error.

    Returns:
        Values in [0, 1]. Shape: (num_envs,).
    """
    # In place, because rewards are computed in every step.
    return error.mul_(-1.0 / sigma).exp_()
