"""Evaluation of a run of the benchmark: costs, errors and falls on unseen episodes."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import torch

from legged_envs.envs.cfg import override
from legged_envs.evaluation.evaluator import EVALUATION_SEED, Evaluator
from legged_envs.evaluation.metrics.task import Rollout
from legged_envs.safe_benchmark.method import Method
from legged_envs.safe_benchmark.results import CostResult
from legged_envs.safe_benchmark.run import BenchmarkRun
from legged_envs.tasks import make_task_cfg

BENCHMARK_SEED = EVALUATION_SEED + 1000
"""Seed of the episodes. Those of trainings and of the calibration have other seeds."""

WORST_SHARE = 0.1
"""Share of the episodes with the largest costs; CVaR₀.₁ is their mean."""


def episode_costs(costs: torch.Tensor, alive: torch.Tensor) -> np.ndarray:
    """Return the mean of each cost over the steps of each episode, in float64.

    The step that ends an episode counts, later ones do not. The limits were calibrated with the
    same mean.

    Args:
        costs: Costs of each step. Shape: (steps, episodes, K).
        alive: True until the episode terminates. Shape: (steps, episodes), bool.

    Returns:
        Shape: (episodes, K).
    """
    counted = torch.cat((torch.ones_like(alive[:1]), alive[:-1]))
    weight = counted.unsqueeze(-1).double()
    sums = (costs.double() * weight).sum(0)
    means: np.ndarray = (sums / weight.sum(0)).cpu().numpy()
    return means


def cost_result(episodes: np.ndarray, limit: float) -> CostResult:
    """Return the numbers of a cost.

    Args:
        episodes: Mean cost per step of each episode. Shape: (episodes,).
        limit: Limit d of the mean cost per step.
    """
    mean = float(episodes.mean())
    worst = np.sort(episodes)[-math.ceil(WORST_SHARE * len(episodes)) :]
    return CostResult(
        mean=mean,
        limit=limit,
        ratio=mean / limit,
        exceeded=float((episodes > limit).mean()),
        cvar=float(worst.mean()),
    )


def violating_updates(curve: Sequence[Mapping[str, float]], limits: Mapping[str, float]) -> float:
    """Return the share of the updates of a training in which a mean cost is above its limit.

    Args:
        curve: Numbers of each update, with ``cost/NAME``. Updates without them do not count.
        limits: Limit of each cost.

    Returns:
        A share from 0 to 1. NaN if no update has costs.
    """
    counted = 0
    violating = 0
    for row in curve:
        costs = {name: row.get(f"cost/{name}") for name in limits}
        if any(cost is None or math.isnan(cost) for cost in costs.values()):
            continue
        counted += 1
        violating += any(row[f"cost/{name}"] > limit for name, limit in limits.items())
    return violating / counted if counted else math.nan


def steps_per_second(curve: Sequence[Mapping[str, float]]) -> float:
    """Return the median over the updates of the environment steps per second. NaN without any."""
    speeds = [row["steps_per_second"] for row in curve if "steps_per_second" in row]
    return median(speeds) if speeds else math.nan


def measure_policy(run: BenchmarkRun, method: Method, episodes: int) -> dict[str, Any]:
    """Evaluate the policy of a run on unseen episodes of the registered task.

    Whatever the training changed, the task is the registered one with the costs of the suite.

    Args:
        run: The run.
        method: Its method, which has the policy.
        episodes: Number of episodes.

    Returns:
        Fields of a :class:`~legged_envs.safe_benchmark.results.RunResult`, by name.
    """
    cfg = override(make_task_cfg(run.task_id), {"costs": run.costs})
    policy = method.policy(run)
    evaluator = Evaluator(
        run.task_id,
        cfg,
        episodes,
        groups=tuple(getattr(policy, "inputs", ())),
        wrap=lambda envs: method.wrap_evaluation(envs, run),
    )
    try:
        rollout = evaluator.rollout(policy, BENCHMARK_SEED)
        return numbers_of(rollout, evaluator)
    finally:
        evaluator.close()


def numbers_of(rollout: Rollout, evaluator: Evaluator) -> dict[str, Any]:
    """Return the numbers of a rollout as fields of a result, by name."""
    core = evaluator.core
    alive = rollout.alive
    seconds = alive.double().sum(0) * core.step_dt
    forward = rollout.measures["speed_along_command"].double() * alive
    commanded = core.commands["velocity"][:, :2].double().norm(dim=1) * seconds
    costs = episode_costs(rollout.measures["costs"], alive)
    counted = torch.cat((torch.ones_like(alive[:1]), alive[:-1]))
    returns = (rollout.measures["reward"].double() * counted).sum(0)
    by_cost = {}
    for k, name in enumerate(core.cost_names):
        by_cost[name] = cost_result(costs[:, k], float(core.cost_limits[k]))
    # The result removes measures that it has used.
    walk = evaluator.metrics.result(dict(rollout.measures), alive)
    return {
        "episodes": core.num_envs,
        "episode_seconds": len(alive) * core.step_dt,
        "evaluation_seed": BENCHMARK_SEED,
        "lin_vel_error": walk.lin_vel_error,
        "ang_vel_error": walk.ang_vel_error,
        "distance": (forward.sum(0) * core.step_dt).mean().item(),
        "commanded_distance": commanded.mean().item(),
        "falls": walk.falls,
        "crossed": getattr(walk, "crossed", None),
        "costs": by_cost,
        "episode_return": returns.mean().item(),
    }
