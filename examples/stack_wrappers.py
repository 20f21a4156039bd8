"""The same stack of wrappers on legged robots and on one of Gymnasium's own environments; its running statistics are
kept."""

import pickle

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

import legged_envs  # noqa: F401  (registers the ids)
from legged_envs.wrappers import (
    ActionScale,
    AutoReset,
    CostNormalize,
    EpisodeStatistics,
    ObsNormalize,
    RewardNormalize,
    TimeLimit,
)

NUM_ENVS = 16
STEPS = 200
DISABLED = {"autoreset_mode": AutoresetMode.DISABLED}  # the stack resets
ENVIRONMENTS = {
    "Legged/Go2-Flat-v0": DISABLED,
    "Hopper-v5": {"vectorization_mode": "sync", "vector_kwargs": DISABLED},
}


def make(env_id, norms):
    """The stack from the inside out. ``norms`` are the statistics that another one has saved, or ``{}``."""
    env = gym.make_vec(env_id, num_envs=NUM_ENVS, **ENVIRONMENTS[env_id])
    costs = hasattr(env.unwrapped, "cost_names")
    env = ActionScale(env, low=-2.0, high=2.0)
    env = TimeLimit(env, time_limit=80)
    env = EpisodeStatistics(env)
    env = AutoReset(env, "SameStep")  # above what counts steps …
    env = ObsNormalize(env, norms.get("obs_normalizer"))  # … and below what changes values
    env = RewardNormalize(env, norms.get("reward_normalizer"))
    return CostNormalize(env, norms.get("cost_normalizer")) if costs else env


def layers(env):
    """The wrappers from the outside in."""
    while isinstance(env, gym.vector.VectorWrapper):
        yield env
        env = env.env


def run(env, seed):
    """Act at random; returns every observation, (STEPS, num_envs, size), and prints what the wrappers report."""
    rng = np.random.default_rng(seed)
    values = {"obs": [], "reward": [], "cost": []}
    originals, lengths = {name: [] for name in values}, []
    env.reset(seed=seed)
    for _ in range(STEPS):
        actions = rng.uniform(-2.0, 2.0, env.action_space.shape).astype(np.float32)
        observation, reward, _, _, info = env.step(actions)
        for name, value in {"obs": observation, "reward": reward, "cost": info.get("cost")}.items():
            if value is not None:
                values[name].append(value)
                originals[name].append(info[f"original_{name}"])
        if "episode" in info:
            lengths += info["episode"]["l"][info["_episode"]].tolist()
    print(
        f"  {len(lengths)} episodes of {np.mean(lengths):.0f} steps; standard deviations:", end=""
    )
    for name in filter(values.get, values):
        print(f"  {name} {np.std(originals[name]):.3f} → {np.std(values[name]):.3f}", end="")
    print()
    return np.array(values["obs"])


for env_id in ENVIRONMENTS:
    env = make(env_id, {})
    print(
        f"\n{env_id} in {' in '.join(type(layer).__name__ for layer in reversed([*layers(env)]))}"
    )
    run(env, seed=0)
    saved = pickle.dumps(env.save())  # for a file
    env.close()

    print("  with these statistics, frozen, twice:")
    observations = []
    for _ in range(2):
        env = make(env_id, pickle.loads(saved))
        for layer in layers(env):
            if hasattr(layer, "freeze"):  # the statistics stay as training has left them
                layer.freeze()
        observations.append(run(env, seed=1))
        env.close()
    assert np.array_equal(*observations)
