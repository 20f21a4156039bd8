"""Networks of motion-mimic learning: encoder of the reference, MLP, and the actor's Gaussian."""

import copy
import math

import torch
from rsl_rl.modules import MLP
from rsl_rl.modules.distribution import GaussianDistribution
from torch import nn
from torch.nn import functional

from legged_envs.training.learner.normalization import Normalization
from legged_envs.training.mimic_options import MimicNetworkCfg


class FrameTransformer(nn.Module):
    """Transformer that encodes a reference window, with one token per frame.

    Each layer normalizes its input first (Xiong et al. 2020). The code is the mean over the frames.
    PyTorch's own transformer layers are not used, because they do not export to ONNX with a
    variable batch size.

    Args:
        reference_size: Size R of a window.
        frames: Number of frames in a window. It divides R.
        cfg: Options of the networks.

    Raises:
        ValueError: If ``encoder_heads`` does not divide ``encoder_size``.
    """

    def __init__(self, reference_size: int, frames: int, cfg: MimicNetworkCfg):
        super().__init__()
        width = cfg.encoder_size
        if width % cfg.encoder_heads:
            raise ValueError(
                f"encoder_heads must divide encoder_size = {width}, got {cfg.encoder_heads}"
            )
        self.frames = frames
        self.embed = nn.Linear(reference_size // frames, width)
        # A small initial scale, so that the content of a frame dominates its position at first.
        self.position = nn.Parameter(0.02 * torch.randn(frames, width))
        self.layers = nn.ModuleList(AttentionLayer(width, cfg) for _ in range(cfg.encoder_layers))
        self.out = nn.Linear(width, width)

    def forward(self, window: torch.Tensor) -> torch.Tensor:
        """Return the codes of reference windows. Shape: (n, R) → (n, encoder_size)."""
        frames = window.unflatten(1, (self.frames, -1))
        # Attention does not depend on the order of tokens, so each frame has a learnt position.
        tokens = self.embed(frames) + self.position
        for layer in self.layers:
            tokens = layer(tokens)
        return self.out(tokens.mean(dim=1))


class AttentionLayer(nn.Module):
    """One transformer layer: self-attention, then an MLP, each added to its input.

    Args:
        width: Size of a token.
        cfg: Options of the networks.
    """

    def __init__(self, width: int, cfg: MimicNetworkCfg):
        super().__init__()
        self.heads = cfg.encoder_heads
        self.norm_attention = nn.LayerNorm(width)
        self.norm_mlp = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = MLP(width, width, cfg.encoder_hidden, cfg.activation)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the tokens after this layer. Shape: (n, frames, width) → (n, frames, width)."""
        projected = self.queries_keys_values(self.norm_attention(tokens))
        split = projected.unflatten(2, (3, self.heads, -1))
        queries, keys, values = split.permute(2, 0, 3, 1, 4).unbind(0)
        attended = functional.scaled_dot_product_attention(queries, keys, values)
        tokens = tokens + self.out(attended.transpose(1, 2).flatten(2))
        return tokens + self.mlp(self.norm_mlp(tokens))


class MimicNetwork(nn.Module):
    """MLP over the normalized observation and the encoded reference.

    Robots without a reference have a learnt code instead of the encoded reference.

    Args:
        sizes: Sizes of observation (P) and reference window (R).
        frames: Number of frames in a window.
        outputs: Size of the output.
        cfg: Options of the networks.
    """

    def __init__(self, sizes: tuple[int, int], frames: int, outputs: int, cfg: MimicNetworkCfg):
        super().__init__()
        observation_size, reference_size = sizes
        self.normalizer = Normalization(observation_size)
        self.reference_normalizer = Normalization(reference_size)
        if cfg.encoder == "transformer":
            self.encoder: nn.Module = FrameTransformer(reference_size, frames, cfg)
        else:
            self.encoder = MLP(
                reference_size,
                cfg.encoder_size,
                cfg.encoder_hidden,
                cfg.activation,
                cfg.activation,
            )
        # Code instead of the encoded reference, for robots without one.
        self.no_reference = nn.Parameter(torch.zeros(cfg.encoder_size))
        self.head = MLP(observation_size + cfg.encoder_size, outputs, cfg.hidden, cfg.activation)

    def forward(
        self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Return the outputs for observations and reference windows. Shape: (n, outputs).

        Args:
            observation: Observations. Shape: (n, P).
            reference: Reference windows. They have no influence where ``mask`` is 0. Shape: (n, R).
            mask: 1 with a reference, 0 without one. Shape: (n, 1) or (n,).
        """
        present = mask.reshape(-1, 1) > 0.5
        # Masked windows are zeroed before the encoder: with only torch.where, a NaN in one of them
        # would still reach the gradient.
        window = self.reference_normalizer(reference).masked_fill(present.logical_not(), 0.0)
        return self.evaluate(self.normalizer(observation), window, present)

    @torch.no_grad()
    def normalize(
        self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor
    ) -> list[torch.Tensor]:
        """Return the arguments of :meth:`evaluate`, which together with it is :meth:`forward`."""
        present = mask.reshape(-1, 1) > 0.5
        window = self.reference_normalizer(reference).masked_fill(present.logical_not(), 0.0)
        return [self.normalizer(observation), window, present]

    def evaluate(
        self, observation: torch.Tensor, window: torch.Tensor, present: torch.Tensor
    ) -> torch.Tensor:
        """Return the outputs for normalized inputs. Shape: (n, outputs).

        Args:
            observation: Normalized observations. Shape: (n, P).
            window: Normalized windows, 0 without a reference. Shape: (n, R).
            present: True with a reference. Shape: (n, 1), bool.
        """
        code = torch.where(present, self.encoder(window), self.no_reference)
        return self.head(torch.cat((observation, code), dim=1))

    def share_normalizers(self, other: "MimicNetwork") -> None:
        """Use the running means and variances of another network, which reads the same."""
        self.normalizer = other.normalizer
        self.reference_normalizer = other.reference_normalizer

    def update_normalizers(
        self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor
    ) -> None:
        """Update the running means and variances that normalize the inputs.

        Args:
            observation: Observations. Shape: (…, P).
            reference: Reference windows. Only those with ``mask`` 1 are used. Shape: (…, R).
            mask: 1 with a reference, 0 without one. Shape: (…) or (…, 1).
        """
        self.normalizer.update(observation.flatten(0, -2))
        present = mask.reshape(reference.shape[:-1]) > 0.5
        self.reference_normalizer.update(reference[present])


class MimicGaussian(GaussianDistribution):
    """Gaussian distribution of actions with two learnt standard deviations per action.

    One is used for robots with a reference, the other for robots without a reference.

    Args:
        num_actions: Number of actions of a robot.
        init_std: Initial standard deviation with a reference.
        init_free_std: Initial standard deviation without a reference.
    """

    def __init__(self, num_actions: int, init_std: float, init_free_std: float):
        super().__init__(num_actions, init_std, std_type="log")
        self.log_free_std_param = nn.Parameter(torch.full((num_actions,), init_free_std).log())

    @torch.no_grad()
    def scale_noise(self, factor: float) -> None:
        """Multiply all standard deviations by a factor above 0."""
        change = math.log(factor)
        self.log_std_param.add_(change)
        self.log_free_std_param.add_(change)

    def update_where(self, mean: torch.Tensor, mask: torch.Tensor) -> None:
        """Set the means of the distribution, and choose its standard deviations.

        Args:
            mean: Mean actions. Shape: (n, num_actions).
            mask: 1 with a reference, 0 without one. Shape: (n, 1) or (n,).
        """
        present = mask.reshape(-1, 1) > 0.5
        log_std = torch.where(present, self.log_std_param, self.log_free_std_param)
        self._distribution = torch.distributions.Normal(mean, log_std.exp())


class MimicPolicy(nn.Module):
    """Gaussian policy: a :class:`MimicNetwork` computes the mean of a :class:`MimicGaussian`.

    Args:
        sizes: Sizes of observation (P) and reference window (R).
        frames: Number of frames in a window.
        num_actions: Number of actions of a robot.
        cfg: Options of the networks.
    """

    def __init__(self, sizes: tuple[int, int], frames: int, num_actions: int, cfg: MimicNetworkCfg):
        super().__init__()
        self.num_actions = num_actions
        """Number of actions of a robot."""
        self.network = MimicNetwork(sizes, frames, num_actions, cfg)
        self.distribution = MimicGaussian(num_actions, cfg.init_std, cfg.init_free_std)

    def forward(
        self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Return the mean actions, and set ``distribution`` to the distribution for these
        observations.

        Args:
            observation: Observations. Shape: (n, P).
            reference: Reference windows. Shape: (n, R).
            mask: 1 with a reference, 0 without one. Shape: (n, 1) or (n,).

        Returns:
            Mean actions. Shape: (n, num_actions).
        """
        mean = self.network(observation, reference, mask)
        self.distribution.update_where(mean, mask)
        return mean

    def normalize(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """Return the arguments of :meth:`evaluate`."""
        return self.network.normalize(*inputs)

    def evaluate(
        self, observation: torch.Tensor, window: torch.Tensor, present: torch.Tensor
    ) -> torch.Tensor:
        """Return the mean actions for normalized inputs, and set ``distribution``."""
        mean = self.network.evaluate(observation, window, present)
        self.distribution.update_where(mean, present)
        return mean

    def update_normalizers(self, *inputs: torch.Tensor) -> None:
        """Update the running means and variances that normalize the inputs."""
        self.network.update_normalizers(*inputs)

    @property
    def output_std(self) -> torch.Tensor:
        """Standard deviation of the actions with a reference. Shape: (num_actions,)."""
        return self.distribution.log_std_param.detach().exp()

    def as_jit(self) -> MimicNetwork:
        """Return a copy of the mean network on the CPU, for ``torch.jit.script``."""
        return copy.deepcopy(self.network).cpu().eval()

    def as_onnx(self, verbose: bool = False) -> MimicNetwork:
        """Return a copy of the mean network on the CPU, for ``torch.onnx.export``.

        Args:
            verbose: Not used; part of rsl_rl's interface.
        """
        return self.as_jit()
