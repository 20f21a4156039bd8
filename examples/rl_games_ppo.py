"""Train Go2 with rl_games' PPO, and compare its returns on unseen episodes before and after."""

import argparse
import math
import os
import sys
import time

# OpenMP threads that wait leave the cores to the physics after a short spin; read once, when torch loads.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

import gymnasium as gym
import torch
from rl_games.common.algo_observer import IsaacAlgoObserver

import legged_envs  # noqa: F401  (registers the ids)
from legged_envs.errors import print_mistake
from legged_envs.wrappers.rl_games import BootstrapRunner, register

TASK = "Legged/Go2-Flat-v0"
STEPS_PER_UPDATE = 24
EVALUATION_SEED = 90_001  # training takes small seeds, so no robot of this one was trained on

sys.excepthook = print_mistake
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=2_500_000, help="of training, over all robots")
parser.add_argument("--num-envs", type=int, default=512)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--episodes", type=int, default=64, help="of an evaluation")
args = parser.parse_args()
updates = max(1, args.steps // (STEPS_PER_UPDATE * args.num_envs))


def mean_return(act) -> float:
    """The mean return of the first episode of each of ``episodes`` robots; ``act`` gives actions for observations."""
    envs = gym.make_vec(TASK, num_envs=args.episodes, array="torch")
    observation, _ = envs.reset(seed=EVALUATION_SEED)
    returns = torch.full((args.episodes,), math.nan)
    while returns.isnan().any():
        observation, _, _, _, info = envs.step(act(observation))
        if "episode" in info:
            first = info["_episode"] & returns.isnan()
            returns[first] = info["episode"]["r"][first]
    envs.close()
    return returns.mean().item()


class Observer(IsaacAlgoObserver):
    """Keeps the agent that rl_games makes, and writes the environment's log to TensorBoard."""

    def after_init(self, algo):
        super().after_init(algo)
        self.untrained = mean_return(self.act)

    def act(self, observation: torch.Tensor) -> torch.Tensor:
        """Actions drawn as in training."""
        return self.algo.get_action_values({"obs": observation})["actions"]


actions = {"mu_activation": "None", "sigma_activation": "None", "fixed_sigma": True}
actions["mu_init"] = {"name": "default"}
actions["sigma_init"] = {"name": "const_initializer", "val": math.log(0.5)}
cfg = {
    "seed": args.seed,
    "algo": {"name": "a2c_continuous"},
    "model": {"name": "continuous_a2c_logstd"},
    "network": {
        "name": "actor_critic",
        "separate": True,
        "space": {"continuous": actions},
        "mlp": {"units": [128, 128], "activation": "elu", "initializer": {"name": "default"}},
    },
    "config": {
        "name": "go2",
        "env_name": TASK,
        "env_config": {},
        "num_actors": args.num_envs,
        "device": "cpu",
        "device_name": "cpu",  # what rl_games' player calls it
        "torch_compile": False,
        "max_epochs": updates,
        "horizon_length": STEPS_PER_UPDATE,
        "minibatch_size": STEPS_PER_UPDATE * args.num_envs // 3,
        "mini_epochs": 5,
        "learning_rate": 1e-3,
        "lr_schedule": "linear",
        "gamma": 0.99,
        "tau": 0.95,
        "e_clip": 0.2,
        "clip_value": False,
        "critic_coef": 2.0,  # rl_games halves it
        "entropy_coef": 0.002,
        "bounds_loss_coef": 0.0,
        "truncate_grads": True,
        "grad_norm": 1.0,
        "normalize_input": True,
        "normalize_value": True,
        "normalize_advantage": True,
        "reward_shaper": {"scale_value": 1.0},
        "train_dir": "runs/rl_games_ppo",
    },
}
register(TASK)
observer = Observer()
runner = BootstrapRunner(observer)
runner.load({"params": cfg})
begun = time.perf_counter()
runner.run({"train": True})
seconds = time.perf_counter() - begun
trained = mean_return(observer.act)
still = mean_return(lambda observation: torch.zeros(args.episodes, 12))

untrained = observer.untrained
steps = updates * STEPS_PER_UPDATE * args.num_envs
print(f"{steps} steps in {seconds:.0f} s; mean return of {args.episodes} unseen episodes:")
print(f"untrained {untrained:.2f}, trained {trained:.2f}, {trained / untrained:.1f} times as much")
print(f"a robot that only stands still: {still:.2f}")
