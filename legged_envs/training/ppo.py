"""Faster replacements of parts of rsl_rl's PPO, and mirrored mini-batches.

rsl_rl normalises the observations of a rollout again in every pass. Here that is done once.
"""

from collections.abc import Generator
from typing import Any

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules import EmpiricalNormalization, HiddenState
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from legged_envs.envs import CoreVectorEnv
from legged_envs.mdp.symmetry import Mirror

ROWS = 1024
"""Number of observations per part in the computation of running statistics. A part of this size
fits into the processor's cache."""


class Normalization(EmpiricalNormalization):
    """rsl_rl's running mean and variance, computed part by part.

    On a rollout, ``torch.var`` takes five times as long.
    """

    def update(self, x: torch.Tensor) -> None:
        """Update the statistics with observations ``x``. Shape: (n, size)."""
        if not self.training:
            return
        for part in x.split(ROWS):
            mean = part.mean(0, keepdim=True)
            var = (part - mean).square_().mean(0, keepdim=True)
            offset = mean - self._mean
            # The parallel algorithm of Chan et al. 1979, part after part.
            self.count += len(part)
            rate = len(part) / self.count
            self._mean += rate * offset
            self._var += rate * (var - self._var + (1.0 - rate) * offset.square())
        self._std = self._var.sqrt()


class Model(MLPModel):
    """rsl_rl's MLP, which can also read observations that :class:`Rollouts` has normalised."""

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        *args: Any,
        **kwargs: Any,
    ):
        super().__init__(obs, obs_groups, obs_set, *args, **kwargs)
        self.obs_normalizer = Normalization(self.obs_dim)

        self.latent = f"latent of {obs_set}"
        """Key of this network's normalised observations in a mini-batch."""

    def get_latent(
        self, obs: TensorDict, masks: torch.Tensor | None = None, hidden_state: HiddenState = None
    ) -> torch.Tensor:
        """Return the normalised observations: from ``obs`` if they are in it, else computed.

        Args:
            obs: Observations by group, or a mini-batch with the key :attr:`latent`.
            masks: Not used; part of rsl_rl's interface for recurrent networks.
            hidden_state: Not used; part of rsl_rl's interface for recurrent networks.

        Returns:
            Normalised observations. Shape: (n, size).
        """
        if self.latent in obs:
            return obs[self.latent]
        return super().get_latent(obs)


class Rollouts(RolloutStorage):
    """rsl_rl's rollout storage, which prepares the mini-batches once for all passes of an update.

    To prepare a mini-batch, its rows are gathered, mirrored and normalised.
    """

    models: tuple[Model, ...] = ()
    """Networks that learn from the mini-batches. Observations are normalised for each of them."""

    mirror: "HalfMirror | None" = None
    """Function that mirrors half of each mini-batch, in place. None: nothing is mirrored."""

    def mini_batch_generator(
        self, num_mini_batches: int, num_epochs: int = 8
    ) -> Generator[RolloutStorage.Batch, None, None]:
        """Yield the same mini-batches in each of ``num_epochs`` passes."""
        # rsl_rl would draw new mini-batches for each pass. Drawing once saves most of that time.
        batches = list(super().mini_batch_generator(num_mini_batches, 1))
        for batch in batches:
            # Mirroring comes first: left and right have slightly different running statistics.
            if self.mirror is not None:
                self.mirror(batch)
            observations = batch.observations
            assert observations is not None
            latents = {model.latent: model.get_latent(observations) for model in self.models}
            if latents:
                batch.observations = TensorDict(latents, observations.batch_size)
        for _ in range(num_epochs):
            yield from batches


class HalfMirror:
    """Mirrors the first half of a mini-batch left to right, as data augmentation.

    A robot is symmetric, so the mirrored action is right in the mirrored state. The mirrored rows
    keep their log-probabilities, advantages and returns (Mittal et al. 2024).

    Args:
        env: The training environment. Its observation terms must define their mirror images.

    Raises:
        ValueError: If an observation term or the robot does not define its mirror image.
    """

    def __init__(self, env: CoreVectorEnv):
        if env.group_sizes.keys() != env.observations.groups.keys():
            raise ValueError("the task has no terms for its observations")
        robot = env.cfg.robot
        driven = [joint for term in env.actions.terms.values() for joint in term.joints]

        self.observation: dict[str, Mirror] = {}
        """Mirror of each observation group, by the name of the group."""
        for name, cfg in env.cfg.observations.items():
            terms = []
            for term, size, _ in env.observations.groups[name].layout:
                terms.append((term, cfg.terms[term].mirror, size))
            self.observation[name] = Mirror(robot, terms, driven)
        self.action = Mirror(robot, [("action", "action", len(driven))], driven)
        """Mirror of the actions."""

    def __call__(self, batch: RolloutStorage.Batch) -> None:
        """Mirror observations, actions and action distribution of the first half, in place."""
        assert batch.observations is not None
        assert batch.actions is not None
        assert batch.old_distribution_params
        half = len(batch.actions) // 2
        for group, mirror in self.observation.items():
            batch.observations[group][:half] = mirror(batch.observations[group][:half])
        batch.actions[:half] = self.action(batch.actions[:half])
        # PPO compares the new distribution with the one that drew the action, so that is mirrored
        # as well.
        mean, std = batch.old_distribution_params
        mean[:half] = self.action(mean[:half])
        # A standard deviation has no sign: only its joints are exchanged.
        std[:half] = std[:half, self.action.index]
