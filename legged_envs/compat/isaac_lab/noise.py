"""Isaac Lab's noise models, drawn from the random stream of each environment."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from legged_envs.checks import check_choice
from legged_envs.configuration import configclass
from legged_envs.rng import Stream
from legged_envs.state import Stateful

Uniform = Callable[..., Tensor]
"""``uniform(low, high, size)`` draws numbers for the environments of a batch, shape (n, size)."""
OPERATIONS = ("add", "scale", "abs")
"""Ways to combine data and noise: their sum, their product, or only the noise."""
LEAST_UNIFORM = 2.0**-24 - 1.0
"""Smallest float32 above −1 that a stream draws. At −1 itself erf⁻¹ is infinite."""


def draw_noise(data: Tensor, cfg: Any, uniform: Uniform) -> Tensor:
    """Draw noise and combine it with data.

    Args:
        data: Rows, shape (n, size).
        cfg: Configuration of the noise, with a method ``draw`` and a field ``operation``.
        uniform: Draws uniform numbers.

    Returns:
        Rows with noise, shape (n, size).

    Raises:
        ValueError: If ``cfg.operation`` is unknown.
    """
    check_choice(f"{type(cfg).__name__}.operation", cfg.operation, OPERATIONS)
    noise = cfg.draw(partial(uniform, size=data.shape[1]))
    if cfg.operation == "add":
        return torch.add(data, noise)
    if cfg.operation == "scale":
        return torch.mul(data, noise)
    # The noise may be one number; the sum has the shape of the data.
    return torch.zeros_like(data) + noise


@configclass
class NoiseCfg:
    """Noise on rows of shape (n, size). Its parameters are numbers or tensors of shape (size,)."""

    func: Any = draw_noise
    """Function ``func(data, cfg, uniform)`` that returns rows with noise, as
    :func:`draw_noise`."""
    operation: str = "add"
    """``"add"``, ``"scale"`` or ``"abs"``, which replaces the data by the noise."""


@configclass
class ConstantNoiseCfg(NoiseCfg):
    """Noise that is the same number in every row."""

    bias: Any = 0.0
    """The noise, in the unit of the data."""

    def draw(self, uniform: Uniform) -> float | Tensor:
        """Return ``bias``. Shape: () or (size,)."""
        return self.bias


@configclass
class UniformNoiseCfg(NoiseCfg):
    """Noise that is uniform in [``n_min``, ``n_max``)."""

    n_min: Any = -1.0
    """Lower bound, in the unit of the data."""
    n_max: Any = 1.0
    """Upper bound, in the unit of the data."""

    def draw(self, uniform: Uniform) -> Tensor:
        """Return n_min + (n_max − n_min) u, u uniform in [0, 1). Shape: (n, size)."""
        return uniform(self.n_min, self.n_max)


@configclass
class GaussianNoiseCfg(NoiseCfg):
    """Normal noise."""

    mean: Any = 0.0
    """Mean, in the unit of the data."""
    std: Any = 1.0
    """Standard deviation, in the unit of the data."""

    def draw(self, uniform: Uniform) -> Tensor:
        """Return mean + std · √2 erf⁻¹(u), u uniform in (−1, 1). Shape: (n, size)."""
        u = uniform(-1.0, 1.0).clamp_min_(LEAST_UNIFORM)
        return torch.erfinv(u) * (math.sqrt(2.0) * self.std) + self.mean


class NoiseModel(Stateful):
    """Noise on rows, drawn in each step, and an offset that each episode draws.

    Args:
        cfg: A ``NoiseModelCfg``.
        stream: Random stream of the environments.
        size: Length of a row.
    """

    STATE = ("bias",)

    def __init__(self, cfg: Any, stream: Stream, size: int):
        self._cfg = cfg
        self._stream = stream
        num_envs = len(stream.counter)
        bias_size = size if cfg.sample_bias_per_component else 1

        self.bias = torch.zeros(num_envs, bias_size, device=stream.counter.device)
        """Offset of each environment. Shape: (num_envs, size) or (num_envs, 1)."""

    def __call__(self, data: Tensor, env_ids: Tensor | None = None) -> Tensor:
        """Return data with noise.

        Args:
            data: Rows of the environments, shape (n, size).
            env_ids: The n environments; None for all.
        """
        noisy = self._draw(self._cfg.noise_cfg, data, env_ids)
        if self._cfg.bias_noise_cfg is None:
            return noisy
        bias = self.bias if env_ids is None else self.bias[env_ids]
        return noisy + bias

    def reset(self, env_ids: Tensor) -> None:
        """Draw the offsets of the episodes of ``env_ids`` (n,)."""
        if self._cfg.bias_noise_cfg is None:
            return
        no_bias = torch.zeros_like(self.bias[env_ids])
        self.bias[env_ids] = self._draw(self._cfg.bias_noise_cfg, no_bias, env_ids)

    def _draw(self, cfg: Any, data: Tensor, env_ids: Tensor | None) -> Tensor:
        noisy: Tensor = cfg.func(data, cfg, partial(self._stream.uniform, env_ids=env_ids))
        return noisy


@configclass
class NoiseModelCfg:
    """Noise on the rows of an observation or action, and then an offset."""

    class_type: Any = NoiseModel
    """Class of the model, made by ``class_type(cfg, stream, size)``, as :class:`NoiseModel`."""
    noise_cfg: Any = ConstantNoiseCfg()
    """Noise of each step."""
    bias_noise_cfg: Any = None
    """Noise that draws the offset of each episode, applied to an offset of 0. None: no offset.

    In Isaac Lab it is applied to the offset of the episode before, so that ``operation="add"``
    drifts.
    """
    sample_bias_per_component: bool = True
    """True if each number of a row has a separate offset, false if all have the same."""


@configclass
class NoiseModelWithAdditiveBiasCfg(NoiseModelCfg):
    """Noise with an offset for each episode."""

    bias_noise_cfg: Any = ConstantNoiseCfg()
    """Noise that draws the offset; by default it is 0."""
