"""Make 256 robots, let them act at random for ten seconds, and see what the environment reports."""

import gymnasium as gym
import numpy as np

import legged_envs  # noqa: F401  (registers the ids)

NUM_ENVS = 256
STEPS = 500

envs = gym.make_vec("Legged/Go2-Flat-v0", num_envs=NUM_ENVS)
core = envs.unwrapped
print(
    f"observations {envs.observation_space.shape}, actions {envs.action_space.shape}, {1 / core.step_dt:.0f} Hz\n"
)
print(core.rewards, core.costs, sep="\n\n")

rng = np.random.default_rng(0)
observation, info = envs.reset(seed=0)
costs = np.zeros(len(core.cost_names))
episodes, falls = [], 0
for _ in range(STEPS):
    actions = rng.uniform(-0.5, 0.5, envs.action_space.shape).astype(np.float32)
    observation, reward, terminated, truncated, info = envs.step(actions)
    costs += info["costs"].mean(axis=0)
    falls += terminated.sum()
    if "episode" in info:
        ended = info["_episode"]
        episodes += zip(info["episode"]["r"][ended], info["episode"]["l"][ended], strict=True)
        # `observation` already starts the next episodes; the true last observations are in info["final_obs"].
        assert np.array_equal(info["final_obs"][~ended], observation[~ended])

print(f"\n{STEPS * NUM_ENVS} steps, {len(episodes)} episodes ended, {falls} of them by a fall")
if episodes:
    returns, lengths = np.mean(episodes, axis=0)
    print(f"mean return {returns:.2f}, mean length {lengths:.0f} steps")
print("\ncost               mean    limit")
for name, mean, limit in zip(core.cost_names, costs / STEPS, core.cost_limits, strict=True):
    print(f"{name:17s} {mean:.4f}  {limit:.4f}{'' if mean <= limit else '  exceeded'}")
envs.close()
