"""Distillation: a student learns a teacher's actions in the states that it visits."""

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch.nn import functional

from legged_envs.storage import RolloutStorageMM
from legged_envs.training import processes
from legged_envs.training.learner.inputs import Inputs
from legged_envs.training.learner.learner import Learner, means
from legged_envs.training.learner.part import Teacher
from legged_envs.training.mimic_options import MimicDistillationCfg


class Distillation(Learner):
    """A student policy learns a teacher's actions in the states that the student visits.

    This is DAgger (Ross et al. 2011) in which only the student chooses the actions.

    Args:
        observation: Example observation of all environments, on the device to learn on.
        actor: The student.
        actor_inputs: Inputs of the student.
        teacher_inputs: Inputs of the teacher.
        cfg: Options of the distillation.
        teacher: Policy that labels each visited state.
    """

    def __init__(
        self,
        observation: TensorDict,
        actor: Any,
        actor_inputs: Inputs,
        teacher_inputs: Inputs,
        cfg: MimicDistillationCfg,
        teacher: Teacher,
    ):
        self.cfg = cfg
        """Options of the distillation."""
        self.teacher = teacher
        """Policy that labels each visited state."""
        self.teacher_inputs = teacher_inputs
        """Inputs of the teacher."""
        storage = RolloutStorageMM(
            "distillation",
            observation.batch_size[0],
            cfg.steps_per_env,
            obs_shape=(sum(actor_inputs.sizes),),
            ref_obs_shape=(actor_inputs.reference_size,),
            privileged_obs_shape=None,
            privileged_ref_obs_shape=None,
            actions_shape=(actor.num_actions,),
            device=observation[actor_inputs.groups[0]].device,
        )
        super().__init__(
            {"actor": actor}, actor_inputs, storage, cfg.learning_rate, cfg.max_grad_norm
        )

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample the student's actions, and store the teacher's as labels for the update.

        Args:
            obs: Observation before the step.

        Returns:
            Actions of the student. Shape: (num_envs, num_actions).
        """
        self.transition.privileged_actions = self.teacher(*self.teacher_inputs.read(obs))
        seen = self.actor_inputs.read(obs)
        self.actor_inputs.keep(seen, self.transition, critic=False)
        self.actor(*seen)
        actions = processes.sample(self.actor.distribution)
        self.transition.actions = actions
        return actions

    @torch.no_grad()
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Mapping[str, Any]
    ) -> None:
        """Store the outcome of a step for the update.

        Args:
            obs: Observation after the step. Not used.
            rewards: Rewards. Shape: (num_envs,).
            dones: True where an episode ended. Shape: (num_envs,).
            extras: Additional outcomes of the step. Not used.
        """
        self.transition.rewards = rewards
        self.transition.dones = dones
        self.storage.add_transitions(self.transition)
        self.transition.clear()

    def compute_returns(self, obs: TensorDict) -> None:
        """Do nothing: supervised learning from a teacher's actions needs no returns.

        Args:
            obs: Observation after the rollout. Not used.
        """

    def update(self) -> dict[str, float]:
        """Learn the teacher's actions in the states of the rollout.

        Returns:
            ``distillation``: mean squared error between student and teacher.
        """
        losses = []
        for _ in range(self.cfg.epochs):
            for observation, _, reference, _, _, labels, _ in self.storage.generator():
                loss = functional.mse_loss(self.actor(observation, *reference), labels)
                self._descend(loss)
                losses.append({"distillation": loss})
        self.actor.update_normalizers(*self.actor_inputs.rollout(self.storage, critic=False))
        self.storage.clear()
        self.iteration += 1
        return means(losses)
