"""Suites of cost terms with calibrated limits, by name: ``SafeLegged-v1/Go2-Flat/medium``.

A name may stand for the field ``costs`` in changes to a task: ``{"costs": "SafeLegged-v1/…"}``. The
file of a suite is written by ``python -m benchmarks.safe_limits``.
"""

import json
from collections.abc import Mapping
from math import inf, nan
from pathlib import Path
from typing import Any

from legged_envs.checks import check_known
from legged_envs.managers import CostTermCfg
from legged_envs.mdp import costs

SUITE = "SafeLegged-v1"
"""Name and version of the suite. A change of a limit makes a new version."""

LEVELS = {"loose": 1.3, "medium": 2.0, "tight": 3.0}
"""Factor by which the unconstrained policy breaks each binding limit, by level."""

SUITE_FILES = {SUITE: Path(__file__).parent / "suites" / "safe_legged_v1.json"}
"""File of each suite, by name and version."""


def read_suite(suite: str) -> dict[str, Any]:
    """Return the content of the file of a suite.

    Raises:
        ValueError: If there is no such suite.
    """
    check_known("there is no constraint suite", (suite,), SUITE_FILES, "suites")
    content: dict[str, Any] = json.loads(SUITE_FILES[suite].read_text())
    return content


def level_name(level: str | float, where: str = "--constraints") -> str:
    """Return the usual name of a level: ``medium`` for ``medium``, ``2`` and 2.0; ``2.5`` for 2.50.

    Args:
        level: Name of one of :data:`LEVELS`, or the factor by which the unconstrained policy breaks
            each binding limit.
        where: Name of the option, for the error.

    Raises:
        ValueError: If there is no such level.
    """
    if level in LEVELS:
        return str(level)
    try:
        factor = float(level)
    except ValueError:
        factor = nan
    if not 0.0 < factor < inf:
        raise ValueError(
            f"{where}: there is no level {level!r}; levels: {', '.join(LEVELS)}, or a factor above "
            "0, such as 2.5, by which the unconstrained policy breaks each binding limit"
        )
    for name, usual in LEVELS.items():
        if factor == usual:
            return name
    return f"{factor:g}"


def level_factor(level: str) -> float:
    """Return the factor by which the unconstrained policy breaks each binding limit of a level."""
    return LEVELS[level] if level in LEVELS else float(level)


def level_limit(cost: Mapping[str, Any], level: str) -> float:
    """Return the limit of a cost at a level, with three digits.

    Args:
        cost: Entry of the cost in the file of a suite.
        level: Usual name of the level.
    """
    if level in LEVELS:
        return float(cost[level])
    # A limit that does not bind is the same at all levels.
    limit = cost["unconstrained"] / float(level) if cost["binding"] else cost["medium"]
    return float(f"{limit:.3g}")


def suite_name(task_id: str, level: str | float) -> str:
    """Return the name of the costs of a task at a level, such as ``SafeLegged-v1/Go2-Flat/tight``.

    Args:
        task_id: Registered id of the task.
        level: Name of one of :data:`LEVELS`, or a factor as for :func:`level_name`.

    Raises:
        ValueError: If the suite has no such task or level.
    """
    level = level_name(level)
    tasks = read_suite(SUITE)["tasks"]
    plain_id = task_id.split(":")[-1]
    check_known(f"{SUITE} has no limits for", (plain_id,), tasks, "tasks")
    return f"{SUITE}/{_short(plain_id)}/{level}"


def suite_costs(name: str, robot: str) -> dict[str, CostTermCfg]:
    """Return the cost terms that a name stands for.

    Args:
        name: Name of suite, task and level, such as ``SafeLegged-v1/Go2-Flat/medium``.
        robot: Name of the robot of the task.

    Raises:
        ValueError: If there are no costs of this name, or they are for another robot.
    """
    parts = name.split("/")
    if len(parts) != 3:
        raise ValueError(
            f"costs must be the name of a suite such as {SUITE}/Go2-Flat/medium, got {name!r}"
        )
    suite, short, level = parts
    tasks = {_short(task_id): task for task_id, task in read_suite(suite)["tasks"].items()}
    check_known(f"{suite} has no task", (short,), tasks, "tasks")
    level = level_name(level, f"the level of {suite}/{short}")
    task = tasks[short]
    if task["robot"] != robot:
        raise ValueError(
            f"{name!r} has limits for the robot {task['robot']!r}, and the task has {robot!r}; "
            "name a task with this robot"
        )
    terms = {}
    for cost, entry in task["costs"].items():
        function = getattr(costs, entry["function"])
        terms[cost] = CostTermCfg(function, limit=level_limit(entry, level), params=entry["params"])
    return terms


def _short(task_id: str) -> str:
    """Return ``Go2-Flat`` for ``Legged/Go2-Flat-v0``."""
    return task_id.split("/")[-1].rsplit("-", 1)[0]
