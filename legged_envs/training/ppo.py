"""Parts of rsl_rl's PPO that compute the same in less time.

Much of an update was spent on passes over the observations.
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
"""Number of observations from which mean and variance are computed while they are in the
processor's cache."""


class Normalization(EmpiricalNormalization):
    """rsl_rl's running mean and variance, updated part by part.

    ``torch.var`` takes five times as long.
    """

    def update(self, x: torch.Tensor) -> None:
        """Update the statistics with observations ``x``. Shape: (n, size)."""
        if not self.training:
            return
        for part in x.split(ROWS):
            mean = part.mean(0, keepdim=True)
            var = (part - mean).square_().mean(0, keepdim=True)
            offset = mean - self._mean
            self.count += len(part)
            rate = len(part) / self.count
            self._mean += rate * offset
            self._var += rate * (var - self._var + (1.0 - rate) * offset.square())
        self._std = self._var.sqrt()


class Model(MLPModel):
    """rsl_rl's network, which also takes observations that were normalised before."""

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
        """Name of the normalised observations in a batch."""

    def get_latent(
        self, obs: TensorDict, masks: torch.Tensor | None = None, hidden_state: HiddenState = None
    ) -> torch.Tensor:
        """Return the normalised observations, as they are in ``obs`` or computed."""
        if self.latent in obs:
            return obs[self.latent]
        return super().get_latent(obs)


class Rollouts(RolloutStorage):
    """rsl_rl's storage with mini-batches that are made once for all passes of an update.

    Making one is gathering, mirroring and normalising it.
    """

    models: tuple[Model, ...] = ()
    """Networks for which the observations are normalised."""

    mirror: "HalfMirror | None" = None
    """Mirrors half of each mini-batch. None: nothing is mirrored."""

    def mini_batch_generator(
        self, num_mini_batches: int, num_epochs: int = 8
    ) -> Generator[RolloutStorage.Batch, None, None]:
        """Yield the mini-batches, the same ones in each pass."""
        batches = list(super().mini_batch_generator(num_mini_batches, 1))
        for batch in batches:
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
    """Mirrors half of a mini-batch left to right. Its log-probabilities stay (Mittal et al. 2024).

    Args:
        env: The environment, with terms that say how they mirror.

    Raises:
        ValueError: If the task does not say how its observations and actions mirror.
    """

    def __init__(self, env: CoreVectorEnv):
        if env.group_sizes.keys() != env.observations.groups.keys():
            raise ValueError("the task has no terms for its observations")
        robot = env.cfg.robot
        driven = [joint for term in env.actions.terms.values() for joint in term.joints]

        self.observation: dict[str, Mirror] = {}
        """Observation group → its mirror."""
        for name, cfg in env.cfg.observations.items():
            terms = []
            for term, size, _ in env.observations.groups[name].layout:
                terms.append((term, cfg.terms[term].mirror, size))
            self.observation[name] = Mirror(robot, terms, driven)
        self.action = Mirror(robot, [("action", "action", len(driven))], driven)
        """Mirror of actions."""

    def __call__(self, batch: RolloutStorage.Batch) -> None:
        """Mirror the first half of a mini-batch, in place."""
        assert batch.observations is not None
        assert batch.actions is not None
        assert batch.old_distribution_params
        half = len(batch.actions) // 2
        for group, mirror in self.observation.items():
            batch.observations[group][:half] = mirror(batch.observations[group][:half])
        batch.actions[:half] = self.action(batch.actions[:half])
        mean, std = batch.old_distribution_params
        mean[:half] = self.action(mean[:half])
        # A standard deviation has no sign: only its joints are exchanged.
        std[:half] = std[:half, self.action.index]
