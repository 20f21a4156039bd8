"""Running mean and variance of observations."""

import torch
from rsl_rl.modules import EmpiricalNormalization

from legged_envs.training import processes

ROWS = 1024
"""Number of observations per part in the computation of running statistics. A part of this size
fits into the processor's cache."""


class Normalization(EmpiricalNormalization):
    """rsl_rl's running mean and variance, computed part by part.

    On a rollout, ``torch.var`` takes five times as long. In a training of several processes the
    statistics are computed over the robots of all processes.
    """

    @torch.jit.unused
    def update(self, x: torch.Tensor) -> None:
        """Update the statistics with observations ``x``. Shape: (n, size)."""
        if not self.training:
            return
        if processes.count() > 1:
            self._add(*processes.moments(x))
        else:
            for part in x.split(ROWS):
                mean = part.mean(0, keepdim=True)
                var = (part - mean).square_().mean(0, keepdim=True)
                self._add(len(part), mean, var)
        self._std = self._var.sqrt()

    def _add(self, rows: int, mean: torch.Tensor, var: torch.Tensor) -> None:
        """Add a part with known statistics, by the parallel algorithm of Chan et al. 1979."""
        if rows == 0:
            return
        number = self.count.new_full((), rows)
        self.count += number
        offset = mean - self._mean
        # Of two tensors: a number divided by a tensor is rounded twice, and 1 is not quite 1.
        rate = number / self.count
        self._mean += rate * offset
        self._var += rate * (var - self._var + (1.0 - rate) * offset.square())
