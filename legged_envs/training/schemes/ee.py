"""EE: the policy estimates velocity, contacts and foot heights from its last observations.

Ji, Mun, Kim and Hwangbo 2022, "Concurrent training of a control policy and a state estimator for
dynamic and robust legged locomotion". The estimator e(h) of the history h learns the labels y by

    L = MSE(e(h), y), the mean over samples and entries,

together with PPO, on the same rollouts. y are the velocity of the base, the contacts of the feet
and their heights above the ground. The policy π(o, e(h)) receives the estimate without gradient.
PPO therefore does not change the estimator, and its output remains a physical estimate.
"""

import torch
from tensordict import TensorDict
from torch.nn import functional

from legged_envs.envs.cfg import TaskCfg
from legged_envs.training.learner.part import Loss, Pass, Step
from legged_envs.training.scheme_options import EECfg
from legged_envs.training.schemes.networks import HistoryActor, HistoryNetwork
from legged_envs.training.schemes.scheme import (
    LABELS,
    MirrorOf,
    Scheme,
    add_labels,
    make_optimizer,
    velocity_error,
)


class ExplicitEstimator(Scheme):
    """Policy with an estimator, and the regression that trains the estimator."""

    name = "estimator"

    def __init__(
        self,
        cfg: EECfg,
        observation: TensorDict,
        init_std: torch.Tensor,
        mirror_of: MirrorOf | None,
    ):
        super().__init__(cfg, observation, init_std, mirror_of)
        size = observation[LABELS].shape[1]
        network = HistoryNetwork(
            cfg, observation["policy"].shape[1], encoded=size, code_size=size, outputs=len(init_std)
        )
        network.to(observation["policy"].device)
        self.actor = HistoryActor(network, init_std)
        self.labels = self.kept(observation, LABELS)
        self.optimizer = make_optimizer(cfg, network.encoder)

    @classmethod
    def add_observations(cls, task: TaskCfg, cfg: EECfg) -> None:
        """Add the labels of the estimator to a task."""
        add_labels(task)

    def collect(self, step: Step, rewards: torch.Tensor) -> torch.Tensor:
        """Store the labels of the states before the step."""
        self.labels.keep(step, step.before[LABELS])
        return rewards

    def loss(self, done: Pass) -> Loss:
        """Return the mean squared error of the estimates of a mini-batch."""
        labels = self.labels.rows(done.batch)
        estimate = self.actor.network.encoder(done.actor_inputs[0])
        numbers = {"velocity_estimate": velocity_error(estimate, labels)}
        return functional.mse_loss(estimate, labels), numbers
