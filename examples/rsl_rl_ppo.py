"""Train Go2 with rsl_rl's PPO, and compare its returns on unseen episodes before and after.

``legged-envs train`` does more: it mirrors half of each mini-batch, lets the learning rate fall and exports the policy.
"""

import argparse
import math
import os
import sys
import time

# OpenMP threads that wait leave the cores to the physics after a short spin; read once, when torch loads.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

import gymnasium as gym
import torch
from rsl_rl.runners import OnPolicyRunner

import legged_envs  # noqa: F401  (registers the ids)
from legged_envs.errors import print_mistake
from legged_envs.wrappers.rsl_rl import BootstrapPPO, RslRlVecEnv

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
torch.set_num_threads(
    os.cpu_count() or 1
)  # of the update: the environment takes one thread for its own maths
torch.manual_seed(args.seed)
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


network = {
    "class_name": "rsl_rl.models:MLPModel",
    "hidden_dims": [128, 128],
    "activation": "elu",
    "obs_normalization": True,
}
noise = {"class_name": "rsl_rl.modules.distribution:GaussianDistribution", "init_std": 0.5}
cfg = {
    "algorithm": {
        "class_name": BootstrapPPO,
        "num_learning_epochs": 5,
        "num_mini_batches": 3,
        "learning_rate": 1e-3,
        "schedule": "adaptive",
        "desired_kl": 0.01,
        "gamma": 0.99,
        "lam": 0.95,
        "clip_param": 0.2,
        "entropy_coef": 0.002,
        "value_loss_coef": 1.0,
        "max_grad_norm": 1.0,
    },
    "actor": {**network, "distribution_cfg": noise},
    "critic": dict(network),
    "obs_groups": {
        "actor": ["policy"],
        "critic": ["critic"],
    },  # the critic sees what the robot cannot sense
    "num_steps_per_env": STEPS_PER_UPDATE,
    "save_interval": 100,
}
env = RslRlVecEnv(
    gym.make_vec(TASK, num_envs=args.num_envs, array="torch", observations="dict"),
    seed=args.seed,
)
runner = OnPolicyRunner(env, cfg, log_dir=f"runs/rsl_rl_ppo/{time.strftime('%Y-%m-%d_%H-%M-%S')}")


def act(observation: torch.Tensor) -> torch.Tensor:
    """Actions drawn as in training."""
    with torch.inference_mode():
        return runner.get_inference_policy()({"policy": observation}, stochastic_output=True)


untrained = mean_return(act)
begun = time.perf_counter()
runner.learn(updates, init_at_random_ep_len=True)
seconds = time.perf_counter() - begun
trained = mean_return(act)
still = mean_return(lambda observation: torch.zeros(args.episodes, 12))

steps = updates * STEPS_PER_UPDATE * args.num_envs
print(f"{steps} steps in {seconds:.0f} s; mean return of {args.episodes} unseen episodes:")
print(f"untrained {untrained:.2f}, trained {trained:.2f}, {trained / untrained:.1f} times as much")
print(f"a robot that only stands still: {still:.2f}")
