"""Base of the training schemes: the part of PPO that trains the encoder of a history."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from tensordict import TensorDict

from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg
from legged_envs.mdp import observations
from legged_envs.mdp.symmetry import Mirror
from legged_envs.storage import MiniBatch
from legged_envs.training import processes
from legged_envs.training.learner.part import Loss, Part, Pass, Step
from legged_envs.training.scheme_options import SchemeCfg
from legged_envs.training.schemes.networks import HistoryActor

MirrorOf = Callable[[Sequence[str]], Mirror]
"""Returns the mirror transform of concatenated observation groups."""

LABELS = "labels"
"""Name of the observation group with the targets of an estimator. Only the training uses it."""


class Scheme(Part, ABC):
    """Base class of the schemes that train an encoder of the observation history together with PPO.

    The actor reads the group ``policy``, which has a history. A scheme makes this actor, and trains
    the encoder of its history on the same mini-batches as PPO, with a separate optimizer.

    Args:
        cfg: Completed options of the scheme.
        observation: Example observation of all environments.
        init_std: Initial standard deviation of each action. Shape: (num_actions,).
        mirror_of: Makes mirrors, if the first half of each mini-batch is mirrored, otherwise None.
    """

    groups: ClassVar[tuple[str, ...]] = ("policy",)
    """Observation groups that the actor reads while it trains. Deployed, it reads ``policy``."""

    actor: HistoryActor
    """The policy."""

    optimizer: torch.optim.Optimizer
    """Optimizer of the encoder, and of the networks that only the scheme needs."""

    def __init__(
        self,
        cfg: Any,
        observation: TensorDict,
        init_std: torch.Tensor,
        mirror_of: MirrorOf | None,
    ):
        self.cfg = cfg
        """Options of the scheme."""
        self.mirror_of = mirror_of
        """Makes mirrors, if the first half of each mini-batch is mirrored, otherwise None."""

    @classmethod
    def add_observations(cls, task: TaskCfg, cfg: Any) -> None:
        """Add to a task the observation groups that the scheme needs besides ``policy``.

        Args:
            task: Configuration of the task, which is changed.
            cfg: Options of the scheme.

        Raises:
            ValueError: If the task lacks what the scheme learns from.
        """

    @abstractmethod
    def loss(self, done: Pass) -> Loss:
        """Return the loss of the encoder for a mini-batch, and numbers to report by name."""

    def kept(self, observation: TensorDict, group: str) -> "Kept":
        """Return a buffer of an observation group, which mirrors mini-batches as PPO does.

        Args:
            observation: Example observation of all environments.
            group: Name of the group.
        """
        mirror = None if self.mirror_of is None else self.mirror_of((group,))
        return Kept(observation[group], self.cfg.steps_per_env, mirror)

    def learn(self, done: Pass) -> Loss:
        """Train the encoder on a mini-batch in the first ``encoder_epochs`` passes over a rollout.

        Returns:
            None in place of a loss for PPO's optimizer, because the encoder has its own optimizer,
            and numbers to report.
        """
        if done.epoch >= self.cfg.encoder_epochs:
            return None, {}
        loss, numbers = self.loss(done)
        assert loss is not None
        self.optimizer.zero_grad()
        loss.backward()
        processes.average_gradients(self.optimizer)
        self.optimizer.step()
        return None, {self.name: loss, **numbers}

    def state(self) -> dict[str, Any]:
        """Return the optimizer of the scheme, for checkpoints."""
        return {"scheme_optimizer": self.optimizer}


class NextStepScheme(Scheme):
    """Base class of the schemes that also learn from the observation after each step.

    Args:
        cfg: Completed options of the scheme.
        observation: Example observation of all environments.
        init_std: Initial standard deviation of each action. Shape: (num_actions,).
        mirror_of: Makes mirrors, if the first half of each mini-batch is mirrored, otherwise None.
    """

    def __init__(
        self,
        cfg: Any,
        observation: TensorDict,
        init_std: torch.Tensor,
        mirror_of: MirrorOf | None,
    ):
        super().__init__(cfg, observation, init_std, mirror_of)

        self.labels = self.kept(observation, LABELS)
        """Labels before each step."""
        self.following = self.kept(observation, "policy")
        """Histories after each step, of which the last frame is the next observation."""

    @classmethod
    def add_observations(cls, task: TaskCfg, cfg: Any) -> None:
        """Add the labels of the estimate to a task."""
        add_labels(task)

    def collect(self, step: Step, rewards: torch.Tensor) -> torch.Tensor:
        """Store the labels before the step, and the observation after it."""
        self.labels.keep(step, step.before[LABELS])
        self.following.keep(step, step.after["policy"])
        return rewards


def make_optimizer(cfg: SchemeCfg, *networks: torch.nn.Module) -> torch.optim.Optimizer:
    """Make the optimizer of the networks that a scheme trains."""
    parameters: list[torch.nn.Parameter] = []
    for network in networks:
        parameters.extend(network.parameters())
    return torch.optim.Adam(parameters, lr=cfg.encoder_learning_rate, fused=True)


class Kept:
    """Buffer of an observation group that the rollout buffer does not store.

    Args:
        example: The group of all environments. Shape: (num_envs, size).
        num_steps: Number of control steps in a rollout.
        mirror: Mirror of the group, if half of each mini-batch is mirrored, otherwise None.
    """

    def __init__(self, example: torch.Tensor, num_steps: int, mirror: Mirror | None):
        self.mirror = mirror
        """Mirror of the group. None: mini-batches are not mirrored."""
        self.values = torch.zeros_like(example).repeat(num_steps, 1, 1)
        """The group, step after step. Shape: (num_steps, num_envs, size)."""

    def keep(self, step: Step, values: torch.Tensor) -> None:
        """Store the group of one step. Shape: (num_envs, size)."""
        self.values[step.index] = values

    def rows(self, batch: MiniBatch) -> torch.Tensor:
        """Return the rows of a mini-batch, mirrored as its other rows are. Shape: (batch, size)."""
        rows = self.values.flatten(0, 1)[batch.indices]
        if self.mirror is not None:
            half = len(rows) // 2
            rows[:half] = self.mirror(rows[:half])
        return rows


def add_labels(task: TaskCfg) -> None:
    """Add the group :data:`LABELS`: velocity of the base, and contacts and heights of the feet.

    Heights count five times, so that their errors, of centimetres, weigh like errors of velocities.
    """
    labels = {
        "lin_vel": ObservationTermCfg(observations.base_lin_vel, mirror="vector"),
        "foot_contact": ObservationTermCfg(observations.foot_contact, mirror="foot"),
        "foot_height": ObservationTermCfg(observations.foot_height, scale=5.0, mirror="foot"),
    }
    task.observations[LABELS] = ObservationGroupCfg(labels)


def velocity_error(estimate: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the root mean square error of the estimated velocity, m/s.

    Args:
        estimate: Estimates, the velocity first. Shape: (n, at least 3).
        labels: Labels, the velocity first. Shape: (n, at least 3).
    """
    error = (estimate[:, :3] - labels[:, :3]).detach()
    return error.square().sum(dim=1).mean().sqrt()
