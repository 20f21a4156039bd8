"""The networks of motion-mimic learning: an encoder of the reference window, an MLP behind it, the actor's Gaussian."""

import copy

import torch
from rsl_rl.modules import MLP, EmpiricalNormalization
from rsl_rl.modules.distribution import GaussianDistribution
from torch import nn
from torch.nn import functional

from legged_envs.training.mimic_options import MimicNetworkCfg


class FrameTransformer(nn.Module):
    """Encodes a window by attention among its frames, normalised first (Xiong et al. 2020), and their mean. PyTorch's
    own layers do not export to ONNX with a free batch size."""

    def __init__(self, reference_size: int, frames: int, cfg: MimicNetworkCfg):
        super().__init__()
        width = cfg.encoder_size
        if width % cfg.encoder_heads:
            raise ValueError(
                f"encoder_heads must divide encoder_size = {width}, got {cfg.encoder_heads}"
            )
        self.frames = frames
        self.embed = nn.Linear(reference_size // frames, width)
        self.position = nn.Parameter(0.02 * torch.randn(frames, width))
        self.layers = nn.ModuleList(_AttentionLayer(width, cfg) for _ in range(cfg.encoder_layers))
        self.out = nn.Linear(width, width)

    def forward(self, window: torch.Tensor) -> torch.Tensor:
        """Shape: (n, R) → (n, encoder_size)."""
        tokens = self.embed(window.unflatten(1, (self.frames, -1))) + self.position
        for layer in self.layers:
            tokens = layer(tokens)
        return self.out(tokens.mean(dim=1))


class _AttentionLayer(nn.Module):
    def __init__(self, width: int, cfg: MimicNetworkCfg):
        super().__init__()
        self.heads = cfg.encoder_heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = MLP(width, width, cfg.encoder_hidden, cfg.activation)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        split = self.queries_keys_values(self.norm_attention(tokens)).unflatten(
            2, (3, self.heads, -1)
        )
        queries, keys, values = split.permute(2, 0, 3, 1, 4).unbind(0)
        attended = functional.scaled_dot_product_attention(queries, keys, values)
        tokens = tokens + self.out(attended.transpose(1, 2).flatten(2))
        return tokens + self.mlp(self.norm_mlp(tokens))


class MimicNetwork(nn.Module):
    """MLP over normalised observation (P of ``sizes``) and encoded reference (R) or, without one, a learnt code."""

    def __init__(self, sizes: tuple[int, int], frames: int, outputs: int, cfg: MimicNetworkCfg):
        super().__init__()
        self.normalizer, self.reference_normalizer = map(EmpiricalNormalization, sizes)
        if cfg.encoder == "transformer":
            self.encoder: nn.Module = FrameTransformer(sizes[1], frames, cfg)
        else:
            self.encoder = MLP(
                sizes[1], cfg.encoder_size, cfg.encoder_hidden, cfg.activation, cfg.activation
            )
        self.no_reference = nn.Parameter(torch.zeros(cfg.encoder_size))
        self.head = MLP(sizes[0] + cfg.encoder_size, outputs, cfg.hidden, cfg.activation)

    def forward(
        self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Shapes: (n, P), (n, R), (n, 1) or (n,) → (n, outputs)."""
        present = mask.reshape(-1, 1) > 0.5
        # Emptied before the encoder too, so that not even a NaN under the mask reaches a gradient.
        window = self.reference_normalizer(reference).masked_fill(present.logical_not(), 0.0)
        code = torch.where(present, self.encoder(window), self.no_reference)
        return self.head(torch.cat((self.normalizer(observation), code), dim=1))

    def update_normalizers(
        self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor
    ) -> None:
        """Take observations (…, P), and references (…, R) where there are some, into the running statistics."""
        self.normalizer.update(observation.flatten(0, -2))
        present = mask.reshape(reference.shape[:-1]) > 0.5
        if present.any():
            self.reference_normalizer.update(reference[present])


class MimicGaussian(GaussianDistribution):
    """A Gaussian with one learnt standard deviation where there is a reference and one where there is none."""

    def __init__(self, num_actions: int, init_std: float, init_free_std: float):
        super().__init__(num_actions, init_std, std_type="log")
        self.log_free_std_param = nn.Parameter(torch.full((num_actions,), init_free_std).log())

    def update_where(self, mean: torch.Tensor, mask: torch.Tensor) -> None:
        """Become the distribution around ``mean`` (n, num_actions), with a reference where ``mask`` (n, 1) or (n,)."""
        log_std = torch.where(
            mask.reshape(-1, 1) > 0.5, self.log_std_param, self.log_free_std_param
        )
        self._distribution = torch.distributions.Normal(mean, log_std.exp())


class MimicPolicy(nn.Module):
    """A :class:`MimicNetwork` whose output is the mean of a :class:`MimicGaussian`."""

    def __init__(self, sizes: tuple[int, int], frames: int, num_actions: int, cfg: MimicNetworkCfg):
        super().__init__()
        self.network = MimicNetwork(sizes, frames, num_actions, cfg)
        self.distribution = MimicGaussian(num_actions, cfg.init_std, cfg.init_free_std)

    def forward(
        self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Mean actions; ``distribution`` is then that of these observations."""
        mean = self.network(observation, reference, mask)
        self.distribution.update_where(mean, mask)
        return mean

    @property
    def output_std(self) -> torch.Tensor:
        """Standard deviation of the actions where there is a reference. Shape: (num_actions,)."""
        return self.distribution.log_std_param.detach().exp()

    def as_jit(self) -> MimicNetwork:
        """A copy that ``torch.jit.script`` takes: (observation, reference, mask) → mean actions, on the CPU."""
        return copy.deepcopy(self.network).cpu().eval()

    def as_onnx(self, verbose: bool = False) -> MimicNetwork:
        """A copy for ``torch.onnx.export``, on the CPU; ``verbose`` is rsl_rl's and not read."""
        return self.as_jit()
