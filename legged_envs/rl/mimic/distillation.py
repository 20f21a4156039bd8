"""Distillation: a student learns what a teacher with privileged observations does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch.nn import functional

from legged_envs.rl.mimic.algorithm import MimicAlgorithm, Teacher, inputs, means
from legged_envs.rl.mimic_config import ACTOR_GROUPS, CRITIC_GROUPS, MimicDistillationCfg


class MimicDistillation(MimicAlgorithm):
    """A student that sees ``policy`` and ``reference`` acts, a teacher labels, and the student learns its actions.

    DAgger (Ross et al. 2011) without mixing: every rollout is the student's own. The interface is that of
    :class:`~legged_envs.rl.mimic.ppo.MimicPPO`.

    Args:
        env_obs: An observation of all environments, on the device to learn on: see :mod:`legged_envs.rl.mimic`.
        num_actions: Size of the action.
        frames: Frames of each reference window.
        cfg: What to do.
        teacher: Labels every visited state.

    Raises:
        ValueError: If a group is missing or a window does not divide into frames.
    """

    def __init__(
        self, env_obs: TensorDict, num_actions: int, frames: int, cfg: MimicDistillationCfg, *, teacher: Teacher
    ):
        super().__init__(env_obs, num_actions, frames, cfg, ACTOR_GROUPS)
        self.cfg = cfg
        self.teacher = teacher
        self._make_optimizer(self.actor)
        self._make_storage("distillation", None)

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Draw the student's actions and ask the teacher. Returns the student's, (num_envs, num_actions)."""
        actions = super().act(obs)
        self.transition.privileged_actions = self.teacher(*inputs(obs, CRITIC_GROUPS))
        return actions

    @torch.no_grad()
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Mapping[str, Any]
    ) -> None:
        """Keep the step; only ``rewards`` and ``dones``, (num_envs,) both, are looked at."""
        self._store(rewards, dones)

    def compute_returns(self, obs: TensorDict) -> None:
        """Nothing: there are no returns in distillation."""

    def update(self) -> dict[str, float]:
        """Learn the labels of the rollout. Returns the mean squared error, ``distillation``."""
        losses = []
        for _ in range(self.cfg.epochs):
            for observation, _, reference, _, _, labels, _ in self.storage.generator():
                loss = functional.mse_loss(self.actor(observation, *reference), labels)
                self._descend(loss)
                losses.append({"distillation": loss})
        self.actor.network.update_normalizers(*self._seen())
        self._end_of_update()
        return means(losses)
