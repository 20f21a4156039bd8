"""Your own constraint method in the benchmark: a penalty on the square of each excess over its limit.

    legged-envs benchmark safe --tasks Go2-Flat --methods none p3o examples/benchmark_method.py:Quadratic --seeds 5

``QuadraticPenalty`` is the method, with the loss of the policy; ``Quadratic`` lets the benchmark train with it.
"""

from dataclasses import replace

import torch

from legged_envs.safe_benchmark.methods import Method
from legged_envs.safe_benchmark.run import BenchmarkRun
from legged_envs.training.learner.constraint_methods import METHODS
from legged_envs.training.learner.constraint_methods.method import (
    ConstraintMethod,
    Sample,
    clipped_surrogate,
)
from legged_envs.training.learner_options import ConstraintCfg
from legged_envs.training.options import TrainCfg


class QuadraticPenalty(ConstraintMethod):
    """Minimizes PPO's loss plus κ Σ_k max(J_k / d_k − 1, 0)², with J_k estimated for the new policy."""

    def loss(self, sample: Sample) -> torch.Tensor:
        change = (sample.ratio.unsqueeze(1) * sample.cost_advantages).mean(0)
        excess = (self.excess + change).clamp(min=0.0)
        return clipped_surrogate(sample) + self.cfg.kappa * excess.square().sum()


METHODS["quadratic"] = QuadraticPenalty


class Quadratic(Method):
    """The package's PPO with :class:`QuadraticPenalty`."""

    name = "quadratic"

    def options(self, run: BenchmarkRun) -> TrainCfg:
        """Return the usual options of a run, with the method and its weight."""
        options = super().options(run)
        constraint = ConstraintCfg(method="quadratic", kappa=1.0)
        return replace(options, algo=replace(options.algo, constraint=constraint))
