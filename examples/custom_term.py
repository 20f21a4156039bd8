"""Add a reward and a cost to a task: one function and one line each."""

import gymnasium as gym
import numpy as np
import torch

from legged_envs import make_task_cfg
from legged_envs.managers import CostTermCfg, RewardTermCfg
from legged_envs.mdp.context import Env


def heading_straight(env: Env, sigma: float) -> torch.Tensor:
    """exp(−ψ² / σ), ψ the yaw of the base."""
    return torch.exp(-env.robot.heading().square() / sigma)


def power(env: Env, free: float) -> torch.Tensor:
    """(Σ |τ q̇| − free)⁺, the power of the joints above ``free``, W."""
    watts = (env.robot.joint_torque * env.robot.joint_vel).abs().sum(dim=1)
    return (watts - free).clamp(min=0.0)


cfg = make_task_cfg("Legged/Go2-Flat-v0")
cfg.rewards["heading_straight"] = RewardTermCfg(
    heading_straight, weight=0.5, params={"sigma": 0.25}
)
cfg.costs["power"] = CostTermCfg(power, limit=20.0, params={"free": 100.0})

envs = gym.make_vec("Legged/Go2-Flat-v0", num_envs=64, cfg=cfg)
envs.reset(seed=0)
rng = np.random.default_rng(0)
for _ in range(50):
    actions = rng.uniform(-0.5, 0.5, envs.action_space.shape).astype(np.float32)
    _, _, _, _, info = envs.step(actions)

column = envs.unwrapped.cost_names.index("power")
print(envs.unwrapped.costs)
print(f"\nmean power above 100 W in the last step: {info['costs'][:, column].mean():.1f} W")
envs.close()
