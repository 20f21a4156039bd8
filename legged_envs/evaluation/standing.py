"""Costs of a robot that stands still: a limit below them cannot be kept by standing."""

from contextlib import closing

import gymnasium as gym
import torch

from legged_envs.envs import CoreVectorEnv, unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.changes import apply_changes
from legged_envs.evaluation.conditions import EVALUATION_ENV_OPTIONS, evaluation_cfg

ROBOTS = 8
"""Number of robots that stand."""
SECONDS = 1.0
"""Duration of standing, s. Bipeds fall after it, because nothing balances them."""
LANDING_SECONDS = 0.2
"""Time at the start in which robots land, and costs do not count, s."""
LARGEST_TILT = 0.3
"""Angle between the base and the vertical above which a robot does not stand, rad."""
LEAST_HEIGHT_FRACTION = 0.8
"""Fraction of the default height of the base below which a robot does not stand."""


def standing_costs(task_id: str, cfg: TaskCfg) -> dict[str, float]:
    """Return the smallest costs of robots that hold their default pose, simulated by MuJoCo.

    In each step after the landing, a cost is averaged over the robots that stand. The result is the
    smallest of these averages. Bipeds soon swing and fall without a policy, and their later costs
    say nothing about standing.

    Args:
        task_id: Registered id of the task.
        cfg: Configuration of the task.

    Returns:
        Cost per step by name of the cost term. Empty if no robot stands.
    """
    placing = {name: event for name, event in cfg.events.items() if event.purpose == "place"}
    cfg = apply_changes(evaluation_cfg(cfg), {"events": placing, "max_action_delay": 0})
    envs = gym.make_vec(task_id, num_envs=ROBOTS, cfg=cfg, **EVALUATION_ENV_OPTIONS)
    rows = []
    with closing(envs):
        core = unwrap(envs)
        envs.reset(seed=0)
        assert envs.action_space.shape is not None
        action = torch.zeros(envs.action_space.shape, device=core.device)
        landing = round(LANDING_SECONDS / core.step_dt)
        for step in range(round(SECONDS / core.step_dt)):
            info = envs.step(action)[-1]
            standing = _stands(core)
            if step >= landing and standing.any():
                rows.append(info["costs"][standing].mean(0))
        names = core.cost_names
    if not rows:
        return {}
    smallest = torch.stack(rows).amin(0)
    return dict(zip(names, smallest.tolist(), strict=True))


def _stands(core: CoreVectorEnv) -> torch.Tensor:
    """Return True for robots that are upright and high. Shape: (num_envs,)."""
    robot = core.robot
    cos_tilt = -robot.projected_gravity[:, 2]
    is_upright = cos_tilt > torch.cos(torch.tensor(LARGEST_TILT))
    is_high = robot.base_height > LEAST_HEIGHT_FRACTION * core.cfg.robot.base_height
    return is_upright & is_high
