"""Train Go2 with Stable-Baselines3's PPO, and compare its returns on unseen episodes before and after."""

import argparse
import math
import os
import sys
import time

# OpenMP threads that wait leave the cores to the physics after a short spin; read once, when torch loads.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

import legged_envs  # noqa: F401  (registers the ids)
from legged_envs.errors import print_mistake
from legged_envs.wrappers.sb3 import Sb3VecEnv

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


def mean_return(act) -> float:
    """The mean return of the first episode of each of ``episodes`` robots; ``act`` gives actions for observations."""
    envs = gym.make_vec(TASK, num_envs=args.episodes)
    observation, _ = envs.reset(seed=EVALUATION_SEED)
    returns = np.full(args.episodes, np.nan)
    while np.isnan(returns).any():
        observation, _, _, _, info = envs.step(act(observation))
        if "episode" in info:
            first = info["_episode"] & np.isnan(returns)
            returns[first] = info["episode"]["r"][first]
    envs.close()
    return float(returns.mean())


env = VecNormalize(Sb3VecEnv(gym.make_vec(TASK, num_envs=args.num_envs)), gamma=0.99)
model = PPO(
    "MlpPolicy",
    env,
    learning_rate=lambda remaining: 1e-4 + 9e-4 * remaining,
    n_steps=STEPS_PER_UPDATE,
    batch_size=STEPS_PER_UPDATE * args.num_envs // 3,
    n_epochs=5,
    gamma=0.99,
    gae_lambda=0.95,
    ent_coef=0.002,
    vf_coef=1.0,
    max_grad_norm=1.0,
    policy_kwargs={
        "net_arch": [128, 128],
        "activation_fn": torch.nn.ELU,
        "log_std_init": math.log(0.5),
    },
    seed=args.seed,
    device="cpu",
    verbose=1,
)


def act(observation: np.ndarray) -> np.ndarray:
    """Actions drawn as in training."""
    return model.predict(env.normalize_obs(observation), deterministic=False)[0]


untrained = mean_return(act)
begun = time.perf_counter()
model.learn(args.steps, log_interval=10)
seconds = time.perf_counter() - begun
trained = mean_return(act)
still = mean_return(lambda observation: np.zeros((args.episodes, 12), np.float32))

print(
    f"{model.num_timesteps} steps in {seconds:.0f} s; mean return of {args.episodes} unseen episodes:"
)
print(f"untrained {untrained:.2f}, trained {trained:.2f}, {trained / untrained:.1f} times as much")
print(f"a robot that only stands still: {still:.2f}")
