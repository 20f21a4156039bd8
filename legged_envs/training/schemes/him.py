"""HIM: the policy acts on a velocity estimate and on an embedding that predicts the next step.

Long, Wang, Li, Cao, Gao and Pang 2024, "Hybrid internal model: learning agile legged locomotion
with simulated robot response". The encoder turns the history h into an estimate v̂ of the base's
velocity and into a code l of length 1. A second encoder turns the next observation o′ into a code
l′ of length 1. Both codes are compared with K prototypes c of length 1, as in
SwAV (Caron et al. 2020):

    p = softmax(l · c / T),    q = assignment of the batch to the prototypes by Sinkhorn-Knopp,
    L = MSE(v̂, v) − ½ mean (q′ · log p + q · log p′),

so that the code of a history predicts the assignment of the next observation. At the end of an
episode, o′ is the final observation before the reset. The policy π(o, v̂, l) receives estimate and
code without gradient. Temperature and Sinkhorn's ε = 0.05 and 3 rounds are SwAV's.
"""

import torch
from rsl_rl.modules import MLP
from tensordict import TensorDict
from torch import nn
from torch.nn import functional

from legged_envs.training.learner.part import Loss, Pass
from legged_envs.training.scheme_options import HIMCfg
from legged_envs.training.schemes.encoders import to_unit_length
from legged_envs.training.schemes.networks import HistoryActor, HistoryNetwork
from legged_envs.training.schemes.scheme import (
    MirrorOf,
    NextStepScheme,
    make_optimizer,
    velocity_error,
)

EPSILON = 0.05
"""Entropy regularization ε of Sinkhorn-Knopp. With a smaller ε, each sample is assigned to almost
one prototype."""

ROUNDS = 3
"""Number of rounds of Sinkhorn-Knopp."""

VELOCITY = 3
"""Size of the estimated velocity."""


class UnitCodeNetwork(HistoryNetwork):
    """Network with an encoder that gives an estimate of the velocity and a code of length 1."""

    def code_of(self, encoded: torch.Tensor) -> torch.Tensor:
        """Return estimate and code. Shape: (n, 3 + latent)."""
        return torch.cat((encoded[:, :VELOCITY], to_unit_length(encoded[:, VELOCITY:])), dim=1)


class HybridInternalModel(NextStepScheme):
    """The policy that acts on estimate and code, and the contrastive learning that trains both."""

    name = "internal_model"

    def __init__(
        self,
        cfg: HIMCfg,
        observation: TensorDict,
        init_std: torch.Tensor,
        mirror_of: MirrorOf | None,
    ):
        super().__init__(cfg, observation, init_std, mirror_of)
        history = observation["policy"]
        size = VELOCITY + cfg.latent
        network = UnitCodeNetwork(
            cfg, history.shape[1], encoded=size, code_size=size, outputs=len(init_std)
        )
        network.to(history.device)
        self.actor = HistoryActor(network, init_std)
        target = MLP(network.frame_size, cfg.latent, list(cfg.target_hidden), cfg.activation)
        self.target = target.to(history.device)
        prototypes = nn.Linear(cfg.latent, cfg.prototypes, bias=False)
        self.prototypes = prototypes.to(history.device)
        self.optimizer = make_optimizer(cfg, network.encoder, self.target, self.prototypes)

    def loss(self, done: Pass) -> Loss:
        """Return the regression and contrastive loss of a mini-batch."""
        network = self.actor.network
        labels = self.labels.rows(done.batch)
        following = network.present(self.following.rows(done.batch))
        encoded = network.encoder(done.actor_inputs[0])
        estimate = encoded[:, :VELOCITY]
        with torch.no_grad():
            normalized = network.obs_normalizer(following)
        directions = to_unit_length(self.prototypes.weight)
        source = to_unit_length(encoded[:, VELOCITY:]) @ directions.T
        target = to_unit_length(self.target(normalized)) @ directions.T
        error = functional.mse_loss(estimate, labels[:, :VELOCITY])
        swap = swapped_loss(source, target, self.cfg.temperature)
        numbers = {"velocity_estimate": velocity_error(estimate, labels), "swap": swap}
        return error + swap, numbers

    def state(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        """Return target encoder, prototypes and optimizer, for checkpoints."""
        return {"target": self.target, "prototypes": self.prototypes, **super().state()}


def swapped_loss(source: torch.Tensor, target: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the swapped-prediction loss of SwAV.

    Args:
        source: Cosines of the codes of histories with the prototypes. Shape: (n, K).
        target: Cosines of the codes of next observations with the prototypes. Shape: (n, K).
        temperature: Temperature of the softmax.
    """
    source_assignment = sinkhorn(source)
    target_assignment = sinkhorn(target)
    source_log = functional.log_softmax(source / temperature, dim=1)
    target_log = functional.log_softmax(target / temperature, dim=1)
    agreement = target_assignment * source_log + source_assignment * target_log
    return -0.5 * agreement.sum(dim=1).mean()


@torch.no_grad()
def sinkhorn(scores: torch.Tensor) -> torch.Tensor:
    """Assign rows to prototypes, so that all prototypes are used alike (Cuturi 2013).

    Args:
        scores: Similarity of each row to each prototype. Shape: (n, K).

    Returns:
        Assignment. Each row sums to 1; the columns have nearly equal sums. Shape: (n, K).
    """
    rows, columns = scores.shape
    # The largest score is taken off, so that the exponential does not overflow.
    plan = ((scores - scores.max()) / EPSILON).exp()
    for _ in range(ROUNDS):
        plan = plan / (plan.sum(dim=0, keepdim=True) * columns)
        plan = plan / (plan.sum(dim=1, keepdim=True) * rows)
    return plan * rows
