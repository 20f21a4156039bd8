"""Calibrates the limits of the suite SafeLegged-v1 with unconstrained policies.

    python -m benchmarks.safe_limits Legged/AnymalC-Flat-v0 Legged/G1-Flat-v0
    python -m benchmarks.safe_limits Legged/Go2-Flat-v0 --policies runs/none_1 runs/none_2

A binding cost receives the limit J / f, with the mean J of the unconstrained policies on unseen
episodes and the factor f of the level: 1.3, 2 and 3. Power and foot force count above an allowance,
the median of the same rollouts, so that a robot that walks at the commanded speed can keep the
limit. The script replaces the entries of the given tasks in the file of the suite.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from legged_envs.envs.cost_suites import LEVELS, SUITE, SUITE_FILES
from legged_envs.evaluation.evaluator import EVALUATION_SEED, Evaluator
from legged_envs.evaluation.standing import standing_costs
from legged_envs.managers import CostTermCfg
from legged_envs.mdp import costs
from legged_envs.policy.lookup import policy_and_task
from legged_envs.tasks import make_task_cfg
from legged_envs.tasks.kind import kind_of

ACCELERATIONS = (50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 400.0, 600.0, 800.0)
"""Candidates of the largest allowed joint acceleration, rad/s²."""
ACCELERATION_SHARE = 0.05
"""Share of the joints above the acceleration that is chosen, at most, for the unconstrained policy.
"""
FREE_QUANTILE = 0.5
"""Quantile of the power and of the largest foot force that is without a cost."""
SAFETY_LIMIT = 0.025
"""Limit of body contact and base orientation at every level, as in the tasks (Kim et al. 2024)."""
DIGITS = 3
"""Number of significant digits of allowances and limits."""


def measured_costs(has_terrain: bool) -> dict[str, CostTermCfg]:
    """Return the cost terms that a calibration measures, without allowances."""
    terms = {
        "energy": CostTermCfg(costs.energy, limit=1.0),
        "foot_contact_force": CostTermCfg(
            costs.foot_contact_force, limit=1.0, params={"allowed": 0.0}
        ),
        "touchdown_speed": CostTermCfg(costs.touchdown_speed, limit=1.0),
        "body_contact": CostTermCfg(costs.body_contact, limit=SAFETY_LIMIT),
    }
    if has_terrain:
        # Without the orientation: on stairs and slopes the base follows the ground.
        terms["stumble"] = CostTermCfg(costs.stumble, limit=1.0)
    else:
        terms["base_orientation"] = CostTermCfg(costs.base_orientation, limit=SAFETY_LIMIT)
    for largest in ACCELERATIONS:
        terms[f"acceleration_{largest:g}"] = CostTermCfg(
            costs.joint_acceleration, limit=1.0, params={"max_acceleration": largest}
        )
    return terms


def rollout(
    task_id: str, path: Path | None, episodes: int
) -> tuple[dict[str, torch.Tensor], torch.Tensor, str]:
    """Run a policy on unseen episodes.

    Args:
        task_id: Registered id of the task.
        path: Run folder or policy file. None: the pretrained policy.
        episodes: Number of episodes.

    Returns:
        Each cost of each step, (steps, num_envs); True in the steps that count; name of the robot.
    """
    policy, cfg, _ = policy_and_task(task_id, path)
    cfg.costs = measured_costs(kind_of(cfg).has_terrain)
    evaluator = Evaluator(task_id, cfg, episodes, groups=tuple(policy.inputs))
    found = evaluator.rollout(policy, EVALUATION_SEED)
    values = found.measures["costs"].unbind(-1)
    names = evaluator.core.cost_names
    # The step that ends an episode counts.
    alive = found.alive
    counted = torch.cat((torch.ones_like(alive[:1]), alive[:-1]))
    evaluator.close()
    return dict(zip(names, values, strict=True)), counted, cfg.robot.name


def rollouts(
    task_id: str, paths: Sequence[Path | None], episodes: int
) -> tuple[dict[str, torch.Tensor], torch.Tensor, str]:
    """Run several policies, each on the same episodes, as :func:`rollout` runs one.

    Returns:
        Each cost of each step, (steps, num_envs · number of policies); True in the steps that
        count; name of the robot.
    """
    found = [rollout(task_id, path, episodes) for path in paths]
    names, robot = found[0][0], found[0][2]
    values = {name: torch.cat([costs[name] for costs, _, _ in found], dim=1) for name in names}
    return values, torch.cat([counted for _, counted, _ in found], dim=1), robot


def mean_cost(values: torch.Tensor, counted: torch.Tensor) -> float:
    """Return the mean over the steps of an episode, then over episodes."""
    sums = (values * counted).sum(0)
    return (sums / counted.sum(0)).mean().item()


def rounded(value: float) -> float:
    """Return a number with :data:`DIGITS` significant digits."""
    return float(f"{value:.{DIGITS}g}")


def binding(function: str, params: dict[str, float], mean: float) -> dict[str, Any]:
    """Return the entry of a cost whose limits the unconstrained policy breaks."""
    entry: dict[str, Any] = {"function": function, "params": params, "binding": True}
    entry["unconstrained"] = rounded(mean)
    for level, factor in LEVELS.items():
        entry[level] = rounded(mean / factor)
    return entry


def calibrated(values: dict[str, torch.Tensor], counted: torch.Tensor) -> dict[str, Any]:
    """Return the entries of all costs of a task, by name."""
    entries = {}
    for name in ("energy", "foot_contact_force"):
        allowed = rounded(torch.quantile(values[name][counted], FREE_QUANTILE).item())
        excess = (values[name] - allowed).clamp(min=0.0)
        entries[name] = binding(name, {"allowed": allowed}, mean_cost(excess, counted))
    speed = mean_cost(values["touchdown_speed"], counted)
    entries["touchdown_speed"] = binding("touchdown_speed", {}, speed)
    for largest in ACCELERATIONS:
        share = mean_cost(values[f"acceleration_{largest:g}"], counted)
        params = {"max_acceleration": largest}
        if share <= ACCELERATION_SHARE:
            break
    entries["joint_acceleration"] = binding("joint_acceleration", params, share)
    if "stumble" in values:
        entries["stumble"] = binding("stumble", {}, mean_cost(values["stumble"], counted))
    for name in ("body_contact", "base_orientation"):
        if name not in values:
            continue
        entry = {"function": name, "params": {}, "binding": False}
        entry["unconstrained"] = rounded(mean_cost(values[name], counted))
        entries[name] = {**entry, **dict.fromkeys(LEVELS, SAFETY_LIMIT)}
    return entries


def with_standing(task_id: str, entries: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a task with the cost of a robot that stands, ``standing``.

    A limit below it could not be kept by standing.
    """
    terms = {}
    for name, entry in entries.items():
        terms[name] = CostTermCfg(
            getattr(costs, entry["function"]), limit=1.0, params=entry["params"]
        )
    cfg = make_task_cfg(task_id)
    cfg.costs = terms
    standing = standing_costs(task_id, cfg)
    return {name: {**entry, "standing": rounded(standing[name])} for name, entry in entries.items()}


def main() -> None:
    """Calibrate the tasks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="+", help="ids of tasks with a pretrained policy")
    parser.add_argument(
        "--policies",
        nargs="+",
        type=Path,
        help="unconstrained policies of a single task: run folders or files. Default: the "
        "pretrained policy",
    )
    parser.add_argument("--episodes", type=int, default=256, help="number of unseen episodes")
    arguments = parser.parse_args()
    if arguments.policies and len(arguments.tasks) > 1:
        parser.error(f"--policies are of one task, got {', '.join(arguments.tasks)}")
    path = SUITE_FILES[SUITE]
    content: dict[str, Any] = {"suite": SUITE, "factors": LEVELS, "tasks": {}}
    if path.exists():
        content = json.loads(path.read_text())
    for task_id in arguments.tasks:
        paths = arguments.policies or [None]
        values, counted, robot = rollouts(task_id, paths, arguments.episodes)
        content["tasks"][task_id] = {
            "robot": robot,
            "policies": len(paths) if arguments.policies else "pretrained",
            "episodes": arguments.episodes,
            "seed": EVALUATION_SEED,
            "costs": with_standing(task_id, calibrated(values, counted)),
        }
        path.write_text(json.dumps(content, indent=1) + "\n")
        print(task_id, json.dumps(content["tasks"][task_id]["costs"], indent=1))


if __name__ == "__main__":
    main()
