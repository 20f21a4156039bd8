"""DreamWaQ: the policy imagines the ground from its past, with a variational autoencoder.

Nahrendra, Yu and Myung 2023, "DreamWaQ: learning robust quadrupedal locomotion with implicit
terrain imagination via deep reinforcement learning". The encoder turns the history h into an
estimate ŷ of the labels y and into a normal distribution of a code z with mean μ and variance σ². A
decoder turns (ŷ, z) into the next observation o′. Both learn, together with PPO,

    L = MSE(ŷ, y) + MSE(ô′, o′) + β · mean ½ (μ² + σ² − log σ² − 1),

where z = μ + σ · ε with a standard normal ε, and o′ is normalized like the policy's observation.
Means are over samples and entries. At the end of an episode, o′ is the final observation before the
reset. The policy π(o, ŷ, μ) sees the mean of the
code, in training as on the robot. The labels are the same as in LeggedGym-Ex: velocity of the base,
contacts and heights of the feet. The adaptive bootstrapping of the paper is not implemented.
"""

import torch
from rsl_rl.modules import MLP
from tensordict import TensorDict
from torch.nn import functional

from legged_envs.training.learner.part import Loss, Pass
from legged_envs.training.scheme_options import DreamWaQCfg
from legged_envs.training.schemes.networks import HistoryActor, HistoryNetwork
from legged_envs.training.schemes.scheme import (
    LABELS,
    MirrorOf,
    NextStepScheme,
    make_optimizer,
    velocity_error,
)


class MeanCodeNetwork(HistoryNetwork):
    """Network with an encoder that gives estimate, mean and log-variance; it acts on the first two.

    Args:
        cfg: Options of the scheme.
        history_size: Size of a history.
        estimate_size: Size of the estimate.
        outputs: Size of the output.
    """

    def __init__(self, cfg: DreamWaQCfg, history_size: int, estimate_size: int, outputs: int):
        self.code_size = estimate_size + cfg.latent
        super().__init__(
            cfg,
            history_size,
            encoded=self.code_size + cfg.latent,
            code_size=self.code_size,
            outputs=outputs,
        )

    def code_of(self, encoded: torch.Tensor) -> torch.Tensor:
        """Return estimate and mean of the code. Shape: (n, estimate_size + latent)."""
        return encoded[:, : self.code_size]


class DreamWaQ(NextStepScheme):
    """The policy that acts on an estimate and a code, and the autoencoder that trains both."""

    name = "autoencoder"

    def __init__(
        self,
        cfg: DreamWaQCfg,
        observation: TensorDict,
        init_std: torch.Tensor,
        mirror_of: MirrorOf | None,
    ):
        super().__init__(cfg, observation, init_std, mirror_of)
        self.estimate_size = observation[LABELS].shape[1]
        history = observation["policy"]
        network = MeanCodeNetwork(cfg, history.shape[1], self.estimate_size, len(init_std))
        network.to(observation["policy"].device)
        self.actor = HistoryActor(network, init_std)
        self.decoder = MLP(
            network.code_size, network.frame_size, list(cfg.decoder_hidden), cfg.activation
        ).to(observation["policy"].device)
        self.optimizer = make_optimizer(cfg, network.encoder, self.decoder)

    def loss(self, done: Pass) -> Loss:
        """Return the loss of the autoencoder for a mini-batch."""
        network = self.actor.network
        labels = self.labels.rows(done.batch)
        following = network.present(self.following.rows(done.batch))
        encoded = network.encoder(done.actor_inputs[0])
        estimate, mean, log_variance = encoded.split(
            [self.estimate_size, self.cfg.latent, self.cfg.latent], dim=1
        )
        code = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        decoded = self.decoder(torch.cat((estimate, code), dim=1))
        with torch.no_grad():
            target = network.obs_normalizer(following)
        error = functional.mse_loss(estimate, labels)
        reconstruction = functional.mse_loss(decoded, target)
        divergence = divergence_from_normal(mean, log_variance)
        numbers = {
            "velocity_estimate": velocity_error(estimate, labels),
            "reconstruction": reconstruction,
            "divergence": divergence,
        }
        return error + reconstruction + self.cfg.beta * divergence, numbers

    def state(self) -> dict[str, torch.nn.Module | torch.optim.Optimizer]:
        """Return the decoder and the optimizer, for checkpoints."""
        return {"decoder": self.decoder, **super().state()}


def divergence_from_normal(mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """Return the mean KL divergence of normal distributions from the standard one, per entry.

    Args:
        mean: Means. Shape: (n, size).
        log_variance: Logarithms of the variances. Shape: (n, size).
    """
    terms = mean.square() + log_variance.exp() - log_variance - 1.0
    return 0.5 * terms.mean()
