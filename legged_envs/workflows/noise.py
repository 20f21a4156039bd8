"""Isaac Lab's noise models, drawn from the random stream of each environment."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from legged_envs.checks import check_choice
from legged_envs.rng import Stream
from legged_envs.state import Stateful
from legged_envs.workflows.scene import Copied, configclass

Uniform = Callable[[Any, Any, int], Tensor]
"""``uniform(low, high, size)`` → random numbers of the environments in question, (n, size)."""


def _apply(cfg: "NoiseCfg", data: Tensor, noise: Any) -> Tensor:
    check_choice(f"{type(cfg).__name__}.operation", cfg.operation, ("add", "scale", "abs"))
    if cfg.operation == "add":
        return data + noise
    return data * noise if cfg.operation == "scale" else torch.zeros_like(data) + noise


def constant_noise(data: Tensor, cfg: "ConstantNoiseCfg", uniform: Uniform) -> Tensor:
    return _apply(cfg, data, cfg.bias)


def uniform_noise(data: Tensor, cfg: "UniformNoiseCfg", uniform: Uniform) -> Tensor:
    return _apply(cfg, data, uniform(cfg.n_min, cfg.n_max, data.shape[1]))


def gaussian_noise(data: Tensor, cfg: "GaussianNoiseCfg", uniform: Uniform) -> Tensor:
    """Normal numbers are √2 erf⁻¹(u), u uniform in (−1, 1)."""
    draw = uniform(-1.0, 1.0, data.shape[1]).clamp_min_(2.0**-24 - 1.0)
    return _apply(cfg, data, torch.erfinv(draw) * math.sqrt(2.0) * cfg.std + cfg.mean)


@configclass
class NoiseCfg(Copied):
    """What is done to rows (n, size): ``func(data, cfg, uniform)`` gives new ones. ``operation`` is ``"add"``,
    ``"scale"`` or ``"abs"``, which puts the noise in the place of the data. Numbers are floats or tensors (size,)."""

    func: Any = constant_noise
    operation: str = "add"


@configclass
class ConstantNoiseCfg(NoiseCfg):
    func: Any = constant_noise
    bias: Any = 0.0


@configclass
class UniformNoiseCfg(NoiseCfg):
    func: Any = uniform_noise
    n_min: Any = -1.0
    n_max: Any = 1.0


@configclass
class GaussianNoiseCfg(NoiseCfg):
    func: Any = gaussian_noise
    mean: Any = 0.0
    std: Any = 1.0


class NoiseModel(Stateful):
    """Noise on rows (n, size), drawn anew in each step."""

    def __init__(self, cfg: Any, stream: Stream, size: int):
        self._cfg, self._stream, self._size = cfg, stream, size

    def _noisy(self, cfg: NoiseCfg, data: Tensor, env_ids: Tensor | None) -> Tensor:
        noisy: Tensor = cfg.func(data, cfg, partial(self._stream.uniform, env_ids=env_ids))
        return noisy

    def __call__(self, data: Tensor, env_ids: Tensor | None = None) -> Tensor:
        """The data of all environments, or of ``env_ids``, with noise."""
        return self._noisy(self._cfg.noise_cfg, data, env_ids)

    def reset(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids``."""


class NoiseModelWithAdditiveBias(NoiseModel):
    """The same, and an offset that each episode draws."""

    STATE = ("_bias",)

    def __init__(self, cfg: Any, stream: Stream, size: int):
        super().__init__(cfg, stream, size)
        self._bias = torch.zeros(len(stream.counter), size if cfg.sample_bias_per_component else 1)
        self._bias = self._bias.to(stream.counter.device)

    def __call__(self, data: Tensor, env_ids: Tensor | None = None) -> Tensor:
        return super().__call__(data, env_ids) + (self._bias if env_ids is None else self._bias[env_ids])

    def reset(self, env_ids: Tensor) -> None:
        self._bias[env_ids] = self._noisy(self._cfg.bias_noise_cfg, self._bias[env_ids], env_ids)


@configclass
class NoiseModelCfg(Copied):
    class_type: Any = NoiseModel
    noise_cfg: NoiseCfg = NoiseCfg()


@configclass
class NoiseModelWithAdditiveBiasCfg(NoiseModelCfg):
    class_type: Any = NoiseModelWithAdditiveBias
    bias_noise_cfg: NoiseCfg = NoiseCfg(operation="abs")
    sample_bias_per_component: bool = True
