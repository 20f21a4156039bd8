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
"""``uniform(low, high, size)`` → random numbers of the environments in question, (n, size)."""
OPERATIONS: dict[str, Callable[..., Tensor]] = {"add": torch.add, "scale": torch.mul}
OPERATIONS["abs"] = lambda data, noise: torch.zeros_like(data) + noise


def draw_noise(data: Tensor, cfg: Any, uniform: Uniform) -> Tensor:
    """Combine rows (n, size) with what ``cfg.draw(uniform)`` gives, a number, (size,) or (n, size); ValueError for an
    unknown ``operation``."""
    check_choice(f"{type(cfg).__name__}.operation", cfg.operation, OPERATIONS)
    return OPERATIONS[cfg.operation](data, cfg.draw(partial(uniform, size=data.shape[1])))


@configclass
class NoiseCfg:
    """What is done to rows (n, size): ``func(data, cfg, uniform)`` gives new ones. Numbers are floats or (size,)."""

    func: Any = draw_noise
    operation: str = "add"
    """``"add"``, ``"scale"``, or ``"abs"``, which puts the noise in the place of the data."""


@configclass
class ConstantNoiseCfg(NoiseCfg):
    """The same ``bias`` in every row, without a draw, in the unit of the data."""

    bias: Any = 0.0

    def draw(self, uniform: Uniform) -> Any:
        """``bias`` as it is. Shape: () or (size,)."""
        return self.bias


@configclass
class UniformNoiseCfg(NoiseCfg):
    """Noise that is uniform in [``n_min``, ``n_max``), in the unit of the data."""

    n_min: Any = -1.0
    n_max: Any = 1.0

    def draw(self, uniform: Uniform) -> Tensor:
        """n_min + (n_max − n_min) u, u uniform in [0, 1). Shape: (n, size)."""
        return uniform(self.n_min, self.n_max)


@configclass
class GaussianNoiseCfg(NoiseCfg):
    """Normal noise of mean ``mean`` and standard deviation ``std``, in the unit of the data."""

    mean: Any = 0.0
    std: Any = 1.0

    def draw(self, uniform: Uniform) -> Tensor:
        """mean + std · √2 erf⁻¹(u), which is normal where u is uniform in (−1, 1). Shape: (n, size)."""
        return (
            torch.erfinv(uniform(-1.0, 1.0).clamp_min_(2.0**-24 - 1.0))
            * (math.sqrt(2.0) * self.std)
            + self.mean
        )


class NoiseModel(Stateful):
    """Noise on rows (n, size), drawn anew in each step, and an offset, ``bias``, that each episode draws."""

    STATE = ("bias",)

    def __init__(self, cfg: Any, stream: Stream, size: int):
        self._cfg, self._stream = cfg, stream
        size = size if cfg.sample_bias_per_component else 1
        self.bias = torch.zeros(len(stream.counter), size, device=stream.counter.device)

    def __call__(self, data: Tensor, env_ids: Tensor | None = None) -> Tensor:
        """The data of all environments, or of ``env_ids``, with noise."""
        noisy = self._draw(self._cfg.noise_cfg, data, env_ids)
        bias = self.bias if env_ids is None else self.bias[env_ids]
        return noisy if self._cfg.bias_noise_cfg is None else noisy + bias

    def reset(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids``."""
        if self._cfg.bias_noise_cfg is not None:
            self.bias[env_ids] = self._draw(
                self._cfg.bias_noise_cfg, torch.zeros_like(self.bias[env_ids]), env_ids
            )

    def _draw(self, cfg: Any, data: Tensor, env_ids: Tensor | None) -> Tensor:
        return cfg.func(data, cfg, partial(self._stream.uniform, env_ids=env_ids))


@configclass
class NoiseModelCfg:
    """Noise on the rows of an observation or action: in each step that of ``noise_cfg``, then an offset is added."""

    class_type: Any = NoiseModel
    """``class_type(cfg, stream, size)`` makes the model, as :class:`NoiseModel`."""
    noise_cfg: Any = ConstantNoiseCfg()
    bias_noise_cfg: Any = None
    """What draws the offset of each episode, from an offset of 0; None without one. Isaac Lab's goes on from that of
    the episode before, so that ``operation="add"`` wanders off."""
    sample_bias_per_component: bool = True
    """Whether each number of a row has an offset of its own, or all have the same."""


@configclass
class NoiseModelWithAdditiveBiasCfg(NoiseModelCfg):
    """Noise with an offset for each episode; by default that is 0."""

    bias_noise_cfg: Any = ConstantNoiseCfg()
