"""What changes over a training: physics, learning rate, discount and the weight of a trot."""

import numpy as np

from legged_envs.envs import CoreVectorEnv
from legged_envs.training.algorithm import Algorithm
from legged_envs.training.options import PPOCfg
from legged_envs.training.prepare import Prepared
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO

TROT_FADES = (1.8e6, 3.0e6)
"""Steps of all robots between which the weight of a trot falls to the task's: by then a quadruped
walks."""


class Schedule:
    """Sets the quantities that follow the progress of a training.

    Args:
        prepared: The training.
        algorithm: Its algorithm.
        core: Its environment, without wrappers.
    """

    def __init__(self, prepared: Prepared, algorithm: Algorithm, core: CoreVectorEnv):
        self._prepared = prepared
        self._algorithm = algorithm
        self._core = core
        self._trot_weight = 0.0
        if prepared.first_trot != 1.0:
            self._trot_weight = prepared.task.rewards["trot"].weight

    def apply(self, done: float, env_steps: int) -> None:
        """Set everything for the next update.

        Args:
            done: Share of the training that is done, from 0 to 1.
            env_steps: Steps of all robots so far.
        """
        self._set_physics(done)
        self._set_learning_rate(done)
        self._set_discount(done)
        self._set_trot_weight(env_steps)

    def _set_physics(self, done: float) -> None:
        decimation = self._prepared.task.sim.decimation
        if done < self._prepared.coarse:
            decimation = decimation // 2
        if decimation != self._core.decimation:
            # The control step stays as long as it is.
            dt = self._core.step_dt / decimation
            self._core.reconfigure({"sim.dt": dt, "sim.decimation": decimation})

    def _set_learning_rate(self, done: float) -> None:
        algo = self._prepared.algo
        if getattr(algo, "schedule", "fixed") != "fixed":
            # The algorithm sets it by the divergence of the policy.
            return
        start = algo.learning_rate
        end = algo.final_learning_rate
        rate = start + (end - start) * min(done, 1.0)
        self._algorithm.learning_rate = rate
        for group in self._algorithm.optimizer.param_groups:
            group["lr"] = rate

    def _set_discount(self, done: float) -> None:
        algo = self._prepared.algo
        if not isinstance(algo, PPOCfg):
            return
        assert isinstance(self._algorithm, BootstrapPPO)
        assert algo.gamma is not None and algo.final_gamma is not None, "prepare() completes them"
        gamma = np.interp(done, (0.0, 1.0), (algo.gamma, algo.final_gamma))
        self._algorithm.gamma = float(gamma)

    def _set_trot_weight(self, env_steps: int) -> None:
        first_trot = self._prepared.first_trot
        if first_trot == 1.0:
            return
        factor = np.interp(env_steps, TROT_FADES, (first_trot, 1.0))
        self._core.rewards.set_weight("trot", float(factor) * self._trot_weight)
