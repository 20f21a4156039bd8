"""OmniSafe's PPOLag in the benchmark: a learner of another library, with the methods ``train``, ``policy`` and ``curve``.

    legged-envs benchmark safe --tasks Go2-Flat --methods none examples/benchmark_omnisafe.py:PPOLag --seeds 1

It needs ``make omnisafe``. OmniSafe limits one cost: the sum of all costs, each divided by its limit. The limit of this
sum is the number of binding costs, so a cost may exceed its own limit while another one is below.
"""

import csv
from functools import partial

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs.envs.cost_suites import read_suite
from legged_envs.safe_benchmark.methods import Method, PolicyFunction
from legged_envs.safe_benchmark.run import BenchmarkRun
from legged_envs.training.prepare import prepare
from legged_envs.wrappers.cost_reduce import CostReduce
from legged_envs.wrappers.omnisafe import register

import omnisafe  # isort: skip (after legged_envs.wrappers.omnisafe, which makes it importable)
from omnisafe.utils.model import build_mlp_network  # isort: skip

NUM_ENVS = 256
STEPS = 180  # of an episode in training: OmniSafe begins each epoch with new episodes
STD = [0.5, 0.2]  # of the exploration, in the first and in the last epoch
HIDDEN = [128, 128]
FILE = "omnisafe.pt"


def make_envs(run: BenchmarkRun, **options: object) -> gym.vector.VectorEnv:
    """Make the environments of a run, with the sum of costs in units of their limits as the only cost."""
    cfg = {"costs": run.costs}
    envs = gym.make_vec(run.task_id, cfg=cfg, array="torch", max_episode_steps=STEPS, **options)
    return CostReduce(envs, "weighted")


class PPOLag(Method):
    """PPO-Lagrangian of OmniSafe 0.5, with the environment steps of the other methods."""

    name = "omnisafe_ppo_lag"

    def train(self, run: BenchmarkRun) -> None:
        """Train with OmniSafe, whose log goes into the folder of the run, and save the networks."""
        prepared = prepare(self.options(run))
        steps = prepared.cfg.iterations * prepared.algo.steps_per_env * run.num_envs
        num_envs = min(NUM_ENVS, run.num_envs)
        epoch = num_envs * STEPS
        costs = read_suite(run.suite)["tasks"][run.task_id]["costs"].values()
        network = {"hidden_sizes": HIDDEN, "activation": "tanh", "lr": 1e-3}
        cfgs = {
            "seed": run.seed,
            "train_cfgs": {
                "vector_env_nums": num_envs,
                "total_steps": max(round(steps / epoch), 1) * epoch,
                "torch_threads": run.threads or torch.get_num_threads(),
            },
            "algo_cfgs": {
                "steps_per_epoch": epoch,
                "update_iters": 5,
                "batch_size": epoch // 4,
                "target_kl": 0.04,
                "max_grad_norm": 1.0,
                "use_critic_norm": False,
            },
            "model_cfgs": {
                "actor": network,
                "critic": network,
                "exploration_noise_anneal": True,
                "std_range": STD,
            },
            "lagrange_cfgs": {
                "cost_limit": STEPS * sum(cost["binding"] for cost in costs),
                "lambda_optimizer": "SGD",
                "lambda_lr": 5e-6,
            },
            "logger_cfgs": {
                "use_wandb": False,
                "use_tensorboard": False,
                "log_dir": str(run.folder),
            },
        }
        env_id = register("BenchmarkRun", partial(make_envs, run))
        algorithm = omnisafe.Agent("PPOLag", env_id, custom_cfgs=cfgs).agent
        algorithm._actor_critic.actor.std = STD[0]  # OmniSafe anneals only from the second epoch on
        algorithm.learn()
        normalizer = algorithm._env.save()["obs_normalizer"]
        saved = {"mean": normalizer.mean, "std": normalizer.std}
        saved["actor"] = algorithm._actor_critic.actor.mean.state_dict()
        torch.save(saved, run.folder / FILE)

    def policy(self, run: BenchmarkRun) -> PolicyFunction:
        """Return the mean action of OmniSafe's actor for normalized observations."""
        saved = torch.load(run.folder / FILE, weights_only=True)
        weights = saved["actor"]
        sizes = [len(saved["mean"]), *HIDDEN, len(list(weights.values())[-1])]
        network = build_mlp_network(sizes, activation="tanh")
        network.load_state_dict(weights)

        def act(observation: Tensor) -> Tensor:
            scaled = (observation - saved["mean"]) / saved["std"]
            return network(scaled.clamp(-5.0, 5.0)).clamp(-1.0, 1.0)

        return act

    def curve(self, run: BenchmarkRun) -> list[dict[str, float]]:
        """Return the epochs of OmniSafe's log in the words of the benchmark."""
        # OmniSafe makes a new folder at each start: the last one is of the finished training.
        logs = run.folder.glob("**/progress.csv")
        log = max(logs, key=lambda path: path.stat().st_mtime)
        rows = []
        with log.open() as file:
            for epoch in csv.DictReader(file):
                row = {
                    "env_steps": int(float(epoch["TotalEnvSteps"])),
                    "steps_per_second": float(epoch["Time/FPS"]),
                }
                for name, value in epoch.items():
                    if name.startswith("Cost/"):
                        row[f"cost/{name.removeprefix('Cost/')}"] = float(value)
                rows.append(row)
        return rows
