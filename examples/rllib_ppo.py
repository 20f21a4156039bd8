"""Train Go2 with RLlib's PPO: env runners on a Ray cluster, costs in its metrics, and limits on them with --constrained."""

import argparse
import sys

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env

from legged_envs.errors import print_mistake
from legged_envs.wrappers import ActionScale

TASK = "legged_envs:Legged/Go2-Flat-v0"  # each process of Ray imports the package to make it
RATE = 0.05  # of the multipliers, for each update


def make_robots(context):
    """Make the robots of one env runner, which resets in the next step, and has one CPU."""
    options = {"info": "arrays", "autoreset_mode": "NextStep", "cfg": {"sim.num_threads": 1}}
    envs = gym.make_vec(TASK, num_envs=context["num_envs"], **options)
    return ActionScale(envs, -2.0, 2.0)  # RLlib starts with a deviation of 1: half of it is meant


class LogCosts(RLlibCallback):
    """Adds the mean of each cost per step to RLlib's metrics of finished episodes."""

    def on_episode_end(self, *, episode, metrics_logger, env, **kwargs):
        totals = episode.get_infos(-1)["episode"]
        for name, total in zip(env.cost_names, totals["costs"], strict=True):
            metrics_logger.log_value(("costs", name), total / totals["l"], window=100)


class CostPenalty(ConnectorV2):
    """Lessens the rewards of a batch by the price of its costs, which rises while a cost is above its limit."""

    def __init__(self, *spaces, limits):
        super().__init__(*spaces)
        self.limits = np.array(limits)
        self.multipliers = np.zeros(len(limits))

    def __call__(self, *, batch, episodes, **kwargs):
        # The first info belongs to the first observation; the last step, added by RLlib, has no loss.
        costs = [np.stack([info["costs"] for info in e.get_infos()[1:]]) for e in episodes]
        mean = np.concatenate([part[:-1] for part in costs]).mean(0)
        self.multipliers += RATE * (mean / self.limits - 1.0)
        self.multipliers.clip(min=0.0, out=self.multipliers)
        price = (self.multipliers / self.limits).astype(np.float32)
        for episode, cost in zip(episodes, costs, strict=True):
            episode.set_rewards(new_data=episode.get_rewards() - cost @ price)
        return batch


def make_config(runners, num_envs, constrained, steps=2_500_000):
    """Return PPO's configuration; most numbers are the same as in the other examples."""
    batch_size = 24 * num_envs * max(runners, 1)
    register_env("robots", make_robots)
    config = PPOConfig().environment("robots", normalize_actions=False).callbacks(LogCosts)
    config.debugging(seed=1).fault_tolerance(env_runner_health_probe_timeout_s=2.0)
    config.env_runners(num_env_runners=runners, num_envs_per_env_runner=num_envs)
    config.env_runners(gym_env_vectorize_mode=gym.VectorizeMode.VECTOR_ENTRY_POINT)
    config.training(train_batch_size_per_learner=batch_size, minibatch_size=batch_size // 3)
    config.training(num_epochs=5, lr=[[0, 1e-3], [steps, 1e-4]], gamma=0.99, lambda_=0.95)
    config.training(clip_param=0.2, use_kl_loss=False, entropy_coeff=0.002, grad_clip=1.0)
    config.training(vf_clip_param=float("inf"), vf_loss_coeff=0.05)  # values are not normalized
    network = DefaultModelConfig([128, 128], fcnet_activation="elu", vf_share_layers=False)
    config.rl_module(model_config=network)
    if constrained:
        limits = make_robots({"num_envs": 1}).unwrapped.cost_limits
        config.learners(learner_connector=lambda *spaces: CostPenalty(*spaces, limits=limits))
    return config


def main():
    """Train, and print the mean return and the costs of the last 100 episodes after each update."""
    sys.excepthook = print_mistake
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2_500_000, help="over all robots")
    parser.add_argument("--runners", type=int, default=2, help="env runners, one CPU each")
    parser.add_argument("--num-envs", type=int, default=256, help="robots of each env runner")
    parser.add_argument("--constrained", action="store_true", help="keep the limits of all costs")
    parser.add_argument("--address", help="of a Ray cluster; by default one on this machine")
    args = parser.parse_args()
    ray.init(args.address)
    algorithm = make_config(args.runners, args.num_envs, args.constrained, args.steps).build_algo()
    steps = 0
    while steps < args.steps:
        result = algorithm.train()["env_runners"]
        steps = int(result["num_env_steps_sampled_lifetime"])
        costs = {name: round(float(cost), 3) for name, cost in result.get("costs", {}).items()}
        print(steps, "steps: mean return", result.get("episode_return_mean"), costs, flush=True)
    algorithm.stop()


if __name__ == "__main__":
    main()
