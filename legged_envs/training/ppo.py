"""Parts of rsl_rl's PPO that compute the same in less time: much of an update went into passes over observations."""

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
"""Observations whose mean and variance are computed while they are in the processor's cache."""


class Normalization(EmpiricalNormalization):
    """rsl_rl's running mean and variance, taken in by parts; ``torch.var`` takes five times as long."""

    def update(self, x: torch.Tensor) -> None:
        if not self.training:
            return
        for part in x.split(ROWS):
            mean = part.mean(0, keepdim=True)
            var, off = (part - mean).square_().mean(0, keepdim=True), mean - self._mean
            self.count += len(part)
            rate = len(part) / self.count
            self._mean += rate * off
            self._var += rate * (var - self._var + (1.0 - rate) * off.square())
        self._std = self._var.sqrt()


class Model(MLPModel):
    """rsl_rl's network that also takes observations that were normalised before."""

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        *args: Any,
        **kwargs: Any,
    ):
        super().__init__(obs, obs_groups, obs_set, *args, **kwargs)
        self.obs_normalizer, self.latent = Normalization(self.obs_dim), f"latent of {obs_set}"

    def get_latent(
        self, obs: TensorDict, masks: torch.Tensor | None = None, hidden_state: HiddenState = None
    ) -> torch.Tensor:
        return obs[self.latent] if self.latent in obs else super().get_latent(obs)


class Rollouts(RolloutStorage):
    """rsl_rl's storage, whose mini-batches are gathered, mirrored by ``mirror`` and normalised for ``models`` once for
    all passes of an update."""

    models: tuple[Model, ...] = ()
    mirror: "HalfMirror | None" = None

    def mini_batch_generator(
        self, num_mini_batches: int, num_epochs: int = 8
    ) -> Generator[RolloutStorage.Batch, None, None]:
        batches = list(super().mini_batch_generator(num_mini_batches, 1))
        for batch in batches:
            if self.mirror is not None:
                self.mirror(batch)
            seen = batch.observations
            assert seen is not None
            latents = {model.latent: model.get_latent(seen) for model in self.models}
            batch.observations = TensorDict(latents, seen.batch_size) if latents else seen
        for _ in range(num_epochs):
            yield from batches


class HalfMirror:
    """Mirrors half of a mini-batch, whose log-probabilities stay (Mittal et al. 2024); ValueError if the task does not
    say how its observations and actions mirror."""

    def __init__(self, env: CoreVectorEnv):
        robot, self.observation = env.cfg.robot, dict[str, Mirror]()
        if env.group_sizes.keys() != env.observations.groups.keys():
            raise ValueError("the task has no terms for its observations")
        driven = [joint for term in env.actions.terms.values() for joint in term.joints]
        for name, cfg in env.cfg.observations.items():
            terms = [
                (term, cfg.terms[term].mirror, size)
                for term, size, _ in env.observations.groups[name].layout
            ]
            self.observation[name] = Mirror(robot, terms, driven)
        self.action = Mirror(robot, [("action", "action", len(driven))], driven)

    def __call__(self, batch: RolloutStorage.Batch) -> None:
        assert (
            batch.observations is not None
            and batch.actions is not None
            and batch.old_distribution_params
        )
        half = len(batch.actions) // 2
        for group, mirror in self.observation.items():
            batch.observations[group][:half] = mirror(batch.observations[group][:half])
        batch.actions[:half] = self.action(batch.actions[:half])
        mean, std = batch.old_distribution_params
        mean[:half] = self.action(mean[:half])
        std[:half] = std[:half, self.action.index]
