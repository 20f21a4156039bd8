"""DAgger: a loss that pulls the mean action towards a teacher's action in the visited states."""

import torch
from torch.nn import functional

from legged_envs.training.learner.inputs import Inputs
from legged_envs.training.learner.part import Loss, Part, Pass, Step, Teacher


class Dagger(Part):
    """Weighted mean squared error between the mean action and a teacher's (Ross et al. 2011).

    Args:
        teacher: Policy that labels each visited state.
        inputs: Inputs of the teacher.
        coefficient: Weight of the loss in the first update.
        decay_iterations: Number of updates over which the weight falls linearly to 0. 0: never.
    """

    name = "dagger"
    labels_actions = True

    def __init__(self, teacher: Teacher, inputs: Inputs, coefficient: float, decay_iterations: int):
        self.teacher = teacher
        self.inputs = inputs
        self.coefficient = coefficient
        self.decay_iterations = decay_iterations

    def weight(self, iteration: int) -> float:
        """Return the weight of the loss after a number of updates."""
        if not self.decay_iterations:
            return self.coefficient
        return self.coefficient * max(0.0, 1.0 - iteration / self.decay_iterations)

    def collect(self, step: Step, rewards: torch.Tensor) -> torch.Tensor:
        """Store the teacher's actions as labels of the states before the step.

        Returns:
            ``rewards``, unchanged. Shape: (num_envs,).
        """
        transition = step.transition
        if self.weight(step.iteration) > 0.0:
            transition.dagger_actions = self.teacher(*self.inputs.read(step.before))
        else:
            # At weight 0 the loss does not read the labels, but the storage needs some. The
            # teacher need not be evaluated.
            transition.dagger_actions = transition.actions
        return rewards

    def learn(self, done: Pass) -> Loss:
        """Return the weighted error of a mini-batch."""
        weight = self.weight(done.iteration)
        if weight == 0.0:
            return None, {}
        assert done.batch.dagger_actions is not None
        error = functional.mse_loss(done.mean, done.batch.dagger_actions)
        return weight * error, {"dagger": error}
