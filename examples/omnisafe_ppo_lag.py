"""OmniSafe's PPOLag on Go2: as much reward as it can get while the costs of an episode stay below a limit.

It needs ``make omnisafe``. The figures before training come from OmniSafe's log of its first epoch, those after it from
episodes of another seed.
"""

import argparse
import csv
import sys
from functools import partial
from pathlib import Path

import gymnasium as gym
import torch

from legged_envs.errors import print_mistake

from legged_envs.wrappers.omnisafe import make, register  # isort: skip (before omnisafe: it makes it importable)
import omnisafe

sys.excepthook = print_mistake
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--num-envs", type=int, default=64)
parser.add_argument("--epochs", type=int, default=54)
parser.add_argument(
    "--episode-steps", type=int, default=200, help="OmniSafe starts each epoch with new episodes"
)
parser.add_argument("--cost-limit", type=float, default=0.1, help="Σ of all costs, mean per step")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--log-dir", type=Path, default=Path("runs/omnisafe"))
arguments = parser.parse_args()

STD = (
    0.5,
    0.2,
)  # of the exploration, in the first and in the last epoch; 1 is the whole range of an action

go2 = partial(
    gym.make_vec, "Legged/Go2-Flat-v0", array="torch", max_episode_steps=arguments.episode_steps
)
env_id = register("Go2", go2)
steps_per_epoch = (
    arguments.num_envs * arguments.episode_steps
)  # every environment ends an episode in each epoch
cost_limit = (
    arguments.cost_limit * arguments.episode_steps
)  # OmniSafe limits the sum over an episode
network = {"hidden_sizes": [128, 128], "activation": "tanh", "lr": 1e-3}

cfgs = {
    "seed": arguments.seed,
    "train_cfgs": {
        "vector_env_nums": arguments.num_envs,
        "total_steps": arguments.epochs * steps_per_epoch,
        "torch_threads": arguments.threads,
    },
    "algo_cfgs": {
        "steps_per_epoch": steps_per_epoch,
        "update_iters": 5,
        "batch_size": steps_per_epoch // 4,
        "target_kl": 0.04,
        "max_grad_norm": 1.0,
        "use_critic_norm": False,  # its weight decay outweighs returns of the size that there are here
    },
    "model_cfgs": {
        "actor": network,
        "critic": network,
        "exploration_noise_anneal": True,
        "std_range": list(STD),
    },
    # Plain gradient ascent: Adam would remember the violations of the first epochs in its step size for the whole run.
    "lagrange_cfgs": {"cost_limit": cost_limit, "lambda_optimizer": "SGD", "lambda_lr": 0.002},
    "logger_cfgs": {
        "use_wandb": False,
        "use_tensorboard": False,
        "log_dir": str(arguments.log_dir),
    },
}
agent = omnisafe.Agent("PPOLag", env_id, custom_cfgs=cfgs)
algorithm = agent.agent
policy, normalizer = algorithm._actor_critic, algorithm._env.save()["obs_normalizer"]
policy.actor.std = STD[0]  # OmniSafe anneals only from the second epoch on
agent.learn()


@torch.no_grad()
def evaluate(num_episodes=256, seed=1000):
    """Mean return, cost and length of one episode of each robot, with the exploration that training ended with."""
    env = make(env_id, num_envs=num_episodes)
    observation, _ = env.reset(seed=seed)
    totals, running = torch.zeros(num_episodes, 3), torch.ones(num_episodes, dtype=torch.bool)
    for _ in range(arguments.episode_steps):
        scaled = ((observation - normalizer.mean) / normalizer.std).clamp(-5, 5)
        observation, reward, cost, terminated, truncated, _ = env.step(policy.step(scaled)[0])
        totals += torch.stack((reward, cost, torch.ones_like(cost)), 1) * running[:, None]
        running &= ~(terminated | truncated)
    env.close()
    return totals.mean(0).tolist()


with open(Path(algorithm.logger.log_dir) / "progress.csv") as log:
    epochs = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(log)]
before = [epochs[0][f"Metrics/Ep{name}"] for name in ("Ret", "Cost", "Len")]
print(f"\n{len(epochs) * steps_per_epoch} steps in {epochs[-1]['Time/Total']:.0f} s, ", end="")
print(f"multiplier {epochs[-1]['Metrics/LagrangeMultiplier']:.3f}, cost limit {cost_limit:g}\n")
print("         return     cost   length")
for name, (episode_return, cost, length) in {"before": before, "after": evaluate()}.items():
    print(
        f"{name:6s} {episode_return:8.2f} {cost:8.2f} {length:8.0f}{'' if cost <= cost_limit else '   exceeded'}"
    )
