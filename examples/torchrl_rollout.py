"""Collect a batch with TorchRL, costs included, and estimate the advantage of reward and of cost with its GAE."""

import gymnasium as gym
import torch
from torch import nn
from torchrl.data import Unbounded
from torchrl.envs import GymWrapper, default_info_dict_reader
from torchrl.objectives.value.functional import vec_generalized_advantage_estimate

import legged_envs  # noqa: F401  (registers the ids)

NUM_ENVS = 64
STEPS = 100
GAMMA, LAMBDA = 0.99, 0.95

# TorchRL itself resets ended episodes, so an environment without autoreset fits best.
envs = gym.make_vec(
    "Legged/Go2-Flat-v0", num_envs=NUM_ENVS, autoreset_mode="Disabled", max_episode_steps=80
)
core = envs.unwrapped
specs = {"cost": Unbounded((NUM_ENVS,)), "costs": Unbounded((NUM_ENVS, len(core.cost_names)))}
env = GymWrapper(envs)
env.set_info_dict_reader(default_info_dict_reader(list(specs), spec=list(specs.values())))

torch.manual_seed(0)
env.set_seed(0)
num_observations, num_actions = (
    envs.single_observation_space.shape[0],
    envs.single_action_space.shape[0],
)
policy = nn.Sequential(
    nn.Linear(num_observations, 64), nn.ELU(), nn.Linear(64, num_actions), nn.Tanh()
)
critics = nn.Sequential(
    nn.Linear(num_observations, 64), nn.ELU(), nn.Linear(64, 2)
)  # of reward and of cost


def act(tensordict):
    noise = 0.3 * torch.randn(NUM_ENVS, num_actions)
    return tensordict.set("action", (policy(tensordict["observation"]) + noise).clamp(-1, 1))


with torch.no_grad():
    batch = env.rollout(STEPS, policy=act, break_when_any_done=False)
    print(batch)
    values, next_values = critics(batch["observation"]), critics(batch["next", "observation"])
    done, terminated = batch["next", "done"], batch["next", "terminated"]
    signals = {"reward": batch["next", "reward"], "cost": batch["next", "cost"].unsqueeze(-1)}
    for i, (name, signal) in enumerate(signals.items()):
        advantage, target = vec_generalized_advantage_estimate(
            GAMMA,
            LAMBDA,
            values[..., i : i + 1],
            next_values[..., i : i + 1],
            signal,
            done,
            terminated,
        )
        print(
            f"{name:6s}  mean {signal.mean():7.4f}   advantage {advantage.mean():7.4f} ± {advantage.std():.4f}"
        )

ends, falls = int(done.sum()), int(terminated.sum())
print(
    f"\n{NUM_ENVS * STEPS} steps, {ends} episodes ended, {falls} of them by a fall\n\ncost               mean    limit"
)
for name, mean, limit in zip(
    core.cost_names, batch["next", "costs"].mean((0, 1)), core.cost_limits, strict=True
):
    print(f"{name:17s} {mean:.4f}  {limit:.4f}{'' if mean <= limit else '  exceeded'}")
env.close()
