"""PPO on one page, in a project that only knows Gymnasium: the id names the package, nothing here imports it.

With ``--cost-weight`` above 0 the reward pays for costs. ``legged-envs list`` shows other ids: they take the
autoreset mode and report costs.
"""

import argparse
import time

import gymnasium as gym
import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--env-id", default="legged_envs:Legged/Go2-Flat-v0")
parser.add_argument("--num-envs", type=int, default=512)
parser.add_argument("--updates", type=int, default=200)
parser.add_argument("--cost-weight", type=float, default=0.0)
arguments = parser.parse_args()

STEPS, EPOCHS, MINI_BATCHES = 24, 5, 4
GAMMA, LAMBDA, CLIP, ENTROPY, LEARNING_RATE = 0.99, 0.95, 0.2, 0.002, 1e-3

torch.manual_seed(0)
envs = gym.make_vec(arguments.env_id, num_envs=arguments.num_envs, autoreset_mode="SameStep")
envs = gym.wrappers.vector.ClipAction(envs)
N, num_observations = envs.observation_space.shape
num_actions = envs.single_action_space.shape[0]


def network(outputs):
    hidden = nn.Linear(num_observations, 128), nn.ELU(), nn.Linear(128, 128), nn.ELU()
    return nn.Sequential(*hidden, nn.Linear(128, outputs))


actor, critic = network(num_actions), network(1)
log_std = nn.Parameter(torch.full((num_actions,), float(np.log(0.5))))
parameters = [*actor.parameters(), *critic.parameters(), log_std]
optimizer = torch.optim.Adam(parameters, LEARNING_RATE)


def distribution(observation):
    return torch.distributions.Independent(
        torch.distributions.Normal(actor(observation), log_std.exp()), 1
    )


def collect(observation):
    """STEPS steps of every robot. Shapes: (STEPS, N, …)."""
    rows = []
    for _ in range(STEPS):
        policy = distribution(observation)
        action = policy.sample()
        after, reward, terminated, truncated, info = envs.step(action.numpy())
        after, reward = torch.from_numpy(after), torch.from_numpy(reward)
        costs.append(info["cost"].mean())
        rewards.append(reward.mean())
        reward = reward - arguments.cost_weight * torch.from_numpy(info["cost"])
        # After a time-out, final_obs has the true next observation; `after` starts the next episode.
        following = torch.from_numpy(info["final_obs"]) if "final_obs" in info else after
        falls, ends = torch.from_numpy(terminated), torch.from_numpy(terminated | truncated)
        values = critic(observation).squeeze(1), critic(following).squeeze(1) * ~falls
        rows.append((observation, action, policy.log_prob(action), reward, *values, ends))
        observation = after
    return observation, [torch.stack(column) for column in zip(*rows, strict=True)]


def advantages_of(reward, value, next_value, end):
    """Generalized advantage estimates. Shape: (STEPS, N)."""
    result, last = torch.zeros_like(reward), torch.zeros(N)
    for t in reversed(range(STEPS)):
        last = reward[t] + GAMMA * next_value[t] - value[t] + GAMMA * LAMBDA * last * ~end[t]
        result[t] = last
    return result


def improve(observation, action, log_prob, advantage, target):
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(advantage)).chunk(MINI_BATCHES):
            policy = distribution(observation[rows])
            ratio = (policy.log_prob(action[rows]) - log_prob[rows]).exp()
            gain = torch.min(
                ratio * advantage[rows], ratio.clamp(1 - CLIP, 1 + CLIP) * advantage[rows]
            ).mean()
            error = (critic(observation[rows]).squeeze(1) - target[rows]).square().mean()
            optimizer.zero_grad()
            (error - gain - ENTROPY * policy.entropy().mean()).backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()


observation = torch.from_numpy(envs.reset(seed=0)[0])
rewards, costs, start = [], [], time.perf_counter()
for update in range(arguments.updates):
    optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - 0.9 * update / arguments.updates)
    with torch.no_grad():
        observation, (seen, action, log_prob, reward, value, next_value, end) = collect(observation)
        advantage = advantages_of(reward, value, next_value, end)
    improve(*(x.flatten(0, 1) for x in (seen, action, log_prob, advantage, advantage + value)))
    if update % 10 == 0 or update == arguments.updates - 1:
        print(
            f"update {update:4d}   {time.perf_counter() - start:4.0f} s   reward per step {np.mean(rewards):7.4f}   "
            f"cost per step {np.mean(costs):.4f} (limit {sum(envs.unwrapped.cost_limits):.4f})"
        )
        rewards, costs = [], []
envs.close()
