"""Train Go2 with skrl's PPO, and compare its returns on unseen episodes before and after."""

import argparse
import math
import os
import sys
import time

# OpenMP threads leave the cores to the physics after a short spin; read once, when torch loads.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

import gymnasium as gym
import torch

import legged_envs  # noqa: F401  (registers the ids)
from legged_envs.errors import print_mistake
from legged_envs.wrappers.skrl import BootstrapRunner, SkrlVecEnv

TASK = "Legged/Go2-Flat-v0"
STEPS_PER_UPDATE = 24
EPOCHS = 5
EVALUATION_SEED = 90_001  # training takes small seeds, so no robot of this one was trained on

sys.excepthook = print_mistake
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=2_500_000, help="of training, over all robots")
parser.add_argument("--num-envs", type=int, default=512)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--episodes", type=int, default=64, help="of an evaluation")
args = parser.parse_args()
# Threads of the update: the environment takes one thread for its own maths.
torch.set_num_threads(os.cpu_count() or 1)
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


decay = {"start_factor": 1.0, "end_factor": 0.1, "total_iters": updates * EPOCHS}
network = {"name": "net", "layers": [128, 128], "activations": "elu"}
cfg = {
    "seed": args.seed,
    "models": {
        "separate": True,
        "policy": {
            "class": "GaussianMixin",
            "initial_log_std": math.log(0.5),
            "network": [{**network, "input": "OBSERVATIONS"}],
            "output": "ACTIONS",
        },
        # The critic sees what the robot cannot sense: the observation group "critic" is skrl's state.
        "value": {
            "class": "DeterministicMixin",
            "network": [{**network, "input": "STATES"}],
            "output": "ONE",
        },
    },
    "memory": {"class": "RandomMemory", "memory_size": -1},
    "agent": {
        "class": "PPO",
        "rollouts": STEPS_PER_UPDATE,
        "learning_epochs": EPOCHS,
        "mini_batches": 3,
        "discount_factor": 0.99,
        "gae_lambda": 0.95,
        "learning_rate": 1e-3,
        "learning_rate_scheduler": torch.optim.lr_scheduler.LinearLR,
        "learning_rate_scheduler_kwargs": decay,
        "observation_preprocessor": "RunningStandardScaler",
        "state_preprocessor": "RunningStandardScaler",
        "value_preprocessor": "RunningStandardScaler",
        "entropy_loss_scale": 0.002,
        "value_loss_scale": 1.0,
        "grad_norm_clip": 1.0,
        "experiment": {"directory": "runs/skrl_ppo"},
    },
    "trainer": {
        "class": "SequentialTrainer",
        "timesteps": updates * STEPS_PER_UPDATE,
        "environment_info": "log",
        "close_environment_at_exit": False,
    },
}
envs = gym.make_vec(TASK, num_envs=args.num_envs, array="torch", observations="dict")
env = SkrlVecEnv(envs, seed=args.seed)
runner = BootstrapRunner(env, cfg)


def act(observation: torch.Tensor) -> torch.Tensor:
    """Actions drawn as in training."""
    runner.agent.enable_training_mode(False)
    with torch.no_grad():
        return runner.agent.act(observation, None, timestep=0, timesteps=0)[0]


untrained = mean_return(act)
begun = time.perf_counter()
runner.run("train")
seconds = time.perf_counter() - begun
env.close()
trained = mean_return(act)
still = mean_return(lambda observation: torch.zeros(args.episodes, 12))

steps = updates * STEPS_PER_UPDATE * args.num_envs
print(f"{steps} steps in {seconds:.0f} s; mean return of {args.episodes} unseen episodes:")
print(f"untrained {untrained:.2f}, trained {trained:.2f}, {trained / untrained:.1f} times as much")
print(f"a robot that only stands still: {still:.2f}")
