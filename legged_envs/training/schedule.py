"""Schedule of a training: physics, learning rate, discount, trot reward and constraints."""

import numpy as np
import torch

from legged_envs.envs import CoreVectorEnv
from legged_envs.training.algorithm import Algorithm
from legged_envs.training.learner.ppo import PPO
from legged_envs.training.learner_options import OnPolicyCfg
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import Prepared
from legged_envs.training.scheme_options import SchemeCfg
from legged_envs.training.schemes.scheme import Scheme
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO

TROT_FADES = (1.8e6, 3.0e6)
"""Environment steps, summed over robots, at which the weight of the reward ``trot`` starts to fall
and at which it reaches the task's own weight. A quadruped walks by then."""


class Schedule:
    """Sets physics, learning rate, discount, trot weight and constraints during a training.

    Args:
        prepared: Checked options and task of the training.
        algorithm: The algorithm. Its learning rate, discount and constraints are set.
        core: The training environment, without wrappers. Its physics and rewards are set.
    """

    def __init__(self, prepared: Prepared, algorithm: Algorithm, core: CoreVectorEnv):
        self._prepared = prepared
        self._algorithm = algorithm
        self._core = core

        self.constraints_act = _constraints_acted(prepared)
        """True once the training has reached ``constraint.start``.

        It stays true if the run is resumed for longer.
        """
        self._trot_weight = 0.0
        if prepared.first_trot != 1.0:
            self._trot_weight = prepared.task.rewards["trot"].weight

    def apply(self, done: float, env_steps: int) -> None:
        """Set all scheduled quantities for the next update.

        Args:
            done: Share of the training that is done, from 0; above 1 counts as 1.
            env_steps: Environment steps so far, summed over robots.
        """
        self._set_physics(done)
        self._set_learning_rate(done)
        self._set_encoder_learning_rate(done)
        self._set_discount(done)
        self._set_trot_weight(env_steps)
        self._set_constraints(done)

    def _set_physics(self, done: float) -> None:
        decimation = self._prepared.task.sim.decimation
        if done < self._prepared.coarse:
            decimation = decimation // 2
        if decimation != self._core.decimation:
            # Half as many physics steps, each twice as long: the control step stays the same, so
            # the policy that is learnt is also valid for fine physics.
            dt = self._core.step_dt / decimation
            self._core.reconfigure({"sim.dt": dt, "sim.decimation": decimation})

    def _set_learning_rate(self, done: float) -> None:
        algo = self._prepared.algo
        if getattr(algo, "schedule", "fixed") != "fixed":
            # An adaptive schedule: the algorithm sets the rate from the policy's KL divergence.
            return
        rate = _on_the_way(algo.learning_rate, algo.final_learning_rate, done)
        self._algorithm.learning_rate = rate
        _set_rate(self._algorithm.optimizer, rate)

    def _set_encoder_learning_rate(self, done: float) -> None:
        algo = self._prepared.algo
        if not isinstance(algo, SchemeCfg):
            return
        assert isinstance(self._algorithm, PPO)
        for part in self._algorithm.parts:
            if isinstance(part, Scheme):
                first, last = algo.encoder_learning_rate, algo.encoder_final_learning_rate
                _set_rate(part.optimizer, _on_the_way(first, last, done))

    def _set_discount(self, done: float) -> None:
        algo = self._prepared.algo
        if not isinstance(algo, PPOCfg):
            return
        assert isinstance(self._algorithm, (PPO, BootstrapPPO))
        assert algo.gamma is not None and algo.final_gamma is not None, "prepare() completes them"
        self._algorithm.gamma = _on_the_way(algo.gamma, algo.final_gamma, done)

    def _set_trot_weight(self, env_steps: int) -> None:
        first_trot = self._prepared.first_trot
        if first_trot == 1.0:
            return
        # The factor is on the task's weight at the start of the run, not on the present one.
        factor = np.interp(env_steps, TROT_FADES, (first_trot, 1.0))
        self._core.rewards.set_weight("trot", float(factor) * self._trot_weight)

    def _set_constraints(self, done: float) -> None:
        algo = self._prepared.algo
        if not isinstance(algo, OnPolicyCfg) or algo.constraint.method == "none":
            return
        assert isinstance(self._algorithm, PPO)
        assert self._algorithm.constraints is not None, "the algorithm has a constraint method"
        # A run that is resumed for longer has done less of it, and still keeps its limits.
        self.constraints_act = self.constraints_act or done >= algo.constraint.start
        self._algorithm.constraints.is_active = self.constraints_act


def _on_the_way(start: float, end: float, done: float) -> float:
    """Interpolate linearly from ``start`` to ``end``; ``done`` above 1 counts as 1.

    With a time limit, the share of a training that is done can exceed 1 in the last update.
    """
    return start + (end - start) * min(done, 1.0)


def _set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def _constraints_acted(prepared: Prepared) -> bool:
    """Return True for a resumed run that had passed the start of its constraints."""
    checkpoint = prepared.checkpoint
    if checkpoint is None or not isinstance(prepared.algo, OnPolicyCfg):
        return False
    if "constraints_act" in checkpoint:
        return bool(checkpoint["constraints_act"])
    # A checkpoint of an earlier version.
    planned: TrainCfg = checkpoint["cfg"]
    done = 0.0
    if planned.iterations is not None:
        done = checkpoint["iteration"] / planned.iterations
    elif planned.minutes is not None:
        done = checkpoint["seconds"] / (60.0 * planned.minutes)
    return bool(done >= prepared.algo.constraint.start)
