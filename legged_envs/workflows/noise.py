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
from legged_envs.workflows.configclass import Copied, configclass

Uniform = Callable[[Any, Any, int], Tensor]
"""``uniform(low, high, size)`` → random numbers of the environments in question, (n, size)."""


def constant_noise(data: Tensor, cfg: "ConstantNoiseCfg", uniform: Uniform) -> Tensor:
    return cfg.apply(data, cfg.bias)


def uniform_noise(data: Tensor, cfg: "UniformNoiseCfg", uniform: Uniform) -> Tensor:
    return cfg.apply(data, uniform(cfg.n_min, cfg.n_max, data.shape[1]))


def gaussian_noise(data: Tensor, cfg: "GaussianNoiseCfg", uniform: Uniform) -> Tensor:
    """Normal numbers are √2 erf⁻¹(u), u uniform in (−1, 1)."""
    draw = uniform(-1.0, 1.0, data.shape[1]).clamp_min_(2.0**-24 - 1.0)
    return cfg.apply(data, torch.erfinv(draw) * (math.sqrt(2.0) * cfg.std) + cfg.mean)


@configclass
class NoiseCfg(Copied):
    """What is done to rows (n, size): ``func(data, cfg, uniform)`` gives new ones. Numbers are floats or (size,)."""

    func: Any = None
    operation: str = "add"
    """``"add"``, ``"scale"``, or ``"abs"``, which puts the noise in the place of the data."""

    def apply(self, data: Tensor, noise: Any) -> Tensor:
        check_choice(f"{type(self).__name__}.operation", self.operation, ("add", "scale", "abs"))
        if self.operation == "scale":
            return data * noise
        return (data if self.operation == "add" else torch.zeros_like(data)) + noise


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
        self._cfg, self._stream = cfg, stream

    def __call__(self, data: Tensor, env_ids: Tensor | None = None, cfg: Any = None) -> Tensor:
        """The data of all environments, or of ``env_ids``, with the noise of ``cfg``, by default the model's."""
        cfg = cfg or self._cfg.noise_cfg
        noisy: Tensor = cfg.func(data, cfg, partial(self._stream.uniform, env_ids=env_ids))
        return noisy

    def reset(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids``."""


class NoiseModelWithAdditiveBias(NoiseModel):
    """Noise, and an offset that each episode draws."""

    STATE = ("bias",)

    def __init__(self, cfg: Any, stream: Stream, size: int):
        super().__init__(cfg, stream, size)
        self.bias = stream.counter.new_zeros(
            (len(stream.counter), size if cfg.sample_bias_per_component else 1)
        ).float()

    def __call__(self, data: Tensor, env_ids: Tensor | None = None, cfg: Any = None) -> Tensor:
        return super().__call__(data, env_ids, cfg) + (self.bias if env_ids is None else self.bias[env_ids])

    def reset(self, env_ids: Tensor) -> None:
        self.bias[env_ids] = super().__call__(self.bias[env_ids], env_ids, self._cfg.bias_noise_cfg)


@configclass
class NoiseModelCfg(Copied):
    class_type: Any = NoiseModel
    noise_cfg: Any = ConstantNoiseCfg()


@configclass
class NoiseModelWithAdditiveBiasCfg(NoiseModelCfg):
    class_type: Any = NoiseModelWithAdditiveBias
    bias_noise_cfg: Any = ConstantNoiseCfg()
    sample_bias_per_component: bool = True
