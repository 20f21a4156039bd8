"""PPO with the wrapper ``SauteBudget``, whose remaining budgets are observations of the policy."""

import json
import time
from dataclasses import replace

import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs import unwrap
from legged_envs.evaluation.evaluator import metrics_of
from legged_envs.runs.run_folder import CONFIG, CURVE, lock_run_folder, write_json, write_session
from legged_envs.safe_benchmark.method import Method, PolicyFunction
from legged_envs.safe_benchmark.run import BenchmarkRun
from legged_envs.tasks import make_task_cfg
from legged_envs.training.learner.networks import make_network
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer
from legged_envs.wrappers.saute_budget import SauteBudget

UNSAFE_REWARD = -0.02
"""Reward of a step after a budget is spent: as far below 0 as a walking robot is above it."""

NETWORK_FILE = "saute.pt"
"""Name of the file with the network of the mean action, in the run folder."""


class SauteWrapper(Method):
    """PPO with the wrapper ``SauteBudget``, in training and evaluation.

    The budgets are those of an episode of the evaluation, and episodes of the training are as long.
    A policy that needs them cannot be exported or continued, so this method writes a network alone.
    """

    name = "saute_wrapper"

    def options(self, run: BenchmarkRun) -> TrainCfg:
        # The budgets have no mirror image.
        changes = {"episode_length_s": episode_seconds(run)}
        return replace(super().options(run), changes=changes, algo=PPOCfg(symmetry="off"))

    def wrap(self, envs: VectorEnv, run: BenchmarkRun) -> VectorEnv:
        horizon = round(episode_seconds(run) / unwrap(envs).step_dt)
        return SauteBudget(envs, horizon, unsafe_reward=UNSAFE_REWARD)

    def wrap_evaluation(self, envs: VectorEnv, run: BenchmarkRun) -> VectorEnv:
        return self.wrap(envs, run)

    def train(self, run: BenchmarkRun) -> None:
        """Train a run in this process, from its start, and write the network into its folder."""
        trainer = Trainer(prepare(self.options(run)), Console(), lambda envs: self.wrap(envs, run))
        with lock_run_folder(run.folder):
            write_json(run.folder / CONFIG, {"training": trainer.cfg, "task": trainer.task})
            write_session(run.folder, 0)
            begun = time.perf_counter()
            with (run.folder / CURVE).open("w", buffering=1) as file:
                while trainer.progress < 1.0:
                    trainer.set_schedule()
                    row = trainer.iterate()
                    row["seconds"] = time.perf_counter() - begun
                    file.write(json.dumps(row) + "\n")
            network = trainer.algorithm.get_policy().as_jit()
            torch.save(network.state_dict(), run.folder / NETWORK_FILE)

    def policy(self, run: BenchmarkRun) -> PolicyFunction:
        state = torch.load(run.folder / NETWORK_FILE, weights_only=True)
        algo = prepare(replace(self.options(run), run_dir=None)).algo
        assert isinstance(algo, PPOCfg) and algo.hidden is not None
        weights = [value for value in state.values() if value.dim() == 2]
        # The first layer reads the normalized observation, the last one has the actions.
        network = make_network(
            weights[0].shape[1], weights[-1].shape[0], algo.hidden, algo.activation
        )
        network.load_state_dict(state)
        return network.eval()

    def curve(self, run: BenchmarkRun) -> list[dict[str, float]]:
        lines = (run.folder / CURVE).read_text().splitlines()
        return [json.loads(line) for line in lines]


def episode_seconds(run: BenchmarkRun) -> float:
    """Return the duration of an episode of the evaluation, s."""
    return metrics_of(make_task_cfg(run.task_id)).EPISODE_SECONDS
