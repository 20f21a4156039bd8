"""Implements `legged-envs list`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from legged_envs.cli.columns import format_columns, terminal_width
from legged_envs.policy import shipped
from legged_envs.policy.header import (
    HARSH_KEY,
    Facts,
    harsh_headline,
    headline,
    read_evaluation,
    without_nan,
)
from legged_envs.system_checks import check_installed, check_output
from legged_envs.tasks import TASKS, make_task_cfg, plain_id
from legged_envs.tasks.summaries import summarize_task

NOT_MEASURED = "-"
"""Cell of a number that was not measured."""

HEADS = ("TASK", "M/S", "RAD/S", "FALLS", "TILES", "WHAT THE ROBOT DOES")
"""Titles of the columns of the list."""

LEGEND = """\
M/S and RAD/S are the mean errors of the pretrained policy's velocity, FALLS the
share of its episodes with a fall, TILES the share of the tiles of rough ground
that it crosses. Without numbers, the task has no pretrained policy yet.
Details: legged-envs list TASK_ID. Watch a policy: legged-envs play TASK_ID."""
"""Text below the list in a terminal."""


@dataclass
class ListCfg:
    """Options of `legged-envs list`."""

    tasks: Annotated[tuple[str, ...], Positional, arg(metavar="[TASK_ID ...]")] = ()
    """Registered ids, or module:Id of another package's task. List only these tasks, with their
    robot, evaluation, observation groups and costs."""
    json: bool = False
    """Print all numbers as JSON, for other programs."""
    harsh: bool = False
    """Show the numbers under harsh conditions: slippery ground, a payload, delayed actions, more
    noise, and commands that are reversed at speed."""
    picture: Path | None = None
    """Draw all robots of the package into this .png or .jpg. A robot with a pretrained policy is
    drawn as it walks."""


def list_tasks(cfg: ListCfg) -> None:
    """List the tasks, and how well their pretrained policies do.

    The numbers come from the file of the policy, where its evaluation is recorded.
    """
    if cfg.picture is not None:
        # A picture takes long to draw. That it can be written is checked before.
        check_output("--picture", cfg.picture, endings=(".png", ".jpg"))
        check_installed("matplotlib")
    ids = [plain_id(task_id) for task_id in cfg.tasks or TASKS]
    if cfg.json:
        print_json(ids, detailed=bool(cfg.tasks))
    elif cfg.tasks:
        print_details(cfg.tasks)
    else:
        print_list(ids, HARSH_KEY if cfg.harsh else None)
    if cfg.picture is not None:
        draw_picture(cfg.picture)


def print_list(task_ids: list[str], key: str | None = None) -> None:
    """Print one line for each task, with the results of its pretrained policy.

    Args:
        task_ids: Registered ids.
        key: Entry of the policy's file with the results. None: the usual evaluation.
    """
    width = terminal_width()
    rows = [list(HEADS)]
    for task_id in task_ids:
        rows.append([task_id, *result_cells(read_results(task_id, key)), explain_task(task_id)])
    print(format_columns(rows, width))
    # Other programs read the lines of a pipe: each is a task there.
    if width is not None:
        print(f"\n{LEGEND}")


def explain_task(task_id: str) -> str:
    """Return the phrase for a task, or the error of a task that cannot be made."""
    try:
        return summarize_task(task_id)
    except Exception as error:
        # A broken task of another package must not hide all other tasks.
        return f"cannot be made: {type(error).__name__}: {error}"


def read_results(task_id: str, key: str | None = None) -> Facts:
    """Return the recorded results of a task's pretrained policy, empty if there are none."""
    if task_id not in shipped.SHIPPED:
        return {}
    file = shipped.shipped_file(task_id)
    return read_evaluation(file) if key is None else read_evaluation(file, key)


def result_cells(results: Facts) -> list[str]:
    """Return the cells of one evaluation: errors of the velocity, falls and crossed tiles."""
    if not results:
        return [NOT_MEASURED] * 4
    lin_vel, ang_vel, falls, _ = headline(results)
    crossed = results.get("crossed")
    tiles = NOT_MEASURED if crossed is None else f"{crossed:.1%}"
    return [lin_vel, ang_vel, falls, tiles]


def print_details(task_ids: Sequence[str]) -> None:
    """Print a block of lines for each task: robot, evaluation, observations and costs.

    Args:
        task_ids: Ids as they were given, which commands in the lines repeat.
    """
    for task_id in task_ids:
        facts = describe_task(plain_id(task_id))
        print(f"{task_id}: {facts['summary']}")
        if "error" not in facts:
            print(format_columns(detail_rows(task_id, facts), terminal_width()))


def detail_rows(task_id: str, facts: Facts) -> list[list[str]]:
    """Return the rows (name, text) about one task.

    Args:
        task_id: Registered id.
        facts: Facts about the task, from :func:`describe_task`.
    """
    groups = [f"{name} ({size})" for name, size in facts["observations"].items()]
    costs = [f"{name} ({limit:g})" for name, limit in facts["cost_limits"].items()]
    rows = [["  robot", f"{facts['robot']}, {facts['joints']} joints"]]
    if facts["pretrained_policy"]:
        harsh = harsh_headline(facts["harsh_evaluation"])
        rows.append(["  policy", f"pretrained: legged-envs play {task_id}"])
        rows.append(["  evaluation", describe_results(facts["evaluation"])])
        if harsh:
            rows.append(["  under harsh conditions", harsh])
    else:
        rows.append(["  policy", f"none yet: legged-envs train {task_id}"])
    rows.append(["  observations (size)", ", ".join(groups)])
    rows.append(["  costs (limit)", ", ".join(costs) or NOT_MEASURED])
    return rows


def describe_results(results: Facts) -> str:
    """Return what was measured in an evaluation as a text, without what was not."""
    lin_vel, ang_vel, falls, remarks = headline(results)
    parts = []
    if lin_vel != NOT_MEASURED:
        parts.append(f"velocity error {lin_vel} m/s and {ang_vel} rad/s")
    if falls != NOT_MEASURED:
        parts.append(f"{falls} falls")
    if remarks:
        parts.append(remarks)
    return ", ".join(parts) or NOT_MEASURED


def print_json(task_ids: list[str], detailed: bool) -> None:
    """Print a JSON list with one object for each task.

    Args:
        task_ids: Registered ids.
        detailed: Add robot, observation groups and costs, for which each task is made.
    """
    objects = []
    for task_id in task_ids:
        facts = describe_task(task_id) if detailed else describe_policy(task_id)
        objects.append({"id": task_id, **facts})
    print(json.dumps(without_nan(objects), indent=2))


def describe_policy(task_id: str) -> Facts:
    """Return the phrase for a task and the results of its pretrained policy, by name."""
    return {
        "summary": explain_task(task_id),
        "pretrained_policy": task_id in shipped.SHIPPED,
        "evaluation": read_results(task_id),
        "harsh_evaluation": read_results(task_id, HARSH_KEY),
    }


def describe_task(task_id: str) -> Facts:
    """Return all facts about a task by name. ``error`` is among them if it cannot be made."""
    facts = describe_policy(task_id)
    try:
        return {**facts, **measure_task(task_id)}
    except Exception as error:
        # As in explain_task: other tasks are still described.
        message = f"{type(error).__name__}: {error}"
        return {**facts, "summary": f"cannot be made: {message}", "error": message}


def measure_task(task_id: str) -> dict[str, Any]:
    """Return robot, joints, sizes of observation groups and limits of costs of a task."""
    from legged_envs.registration import make_core

    # The sizes of the observations are known only when they are computed.
    core = make_core(make_task_cfg(task_id), 1)
    robot = core.cfg.robot
    facts = {
        "robot": robot.name,
        "joints": robot.num_joints,
        "observations": dict(core.group_sizes),
        "cost_limits": dict(zip(core.cost_names, core.cost_limits, strict=True)),
    }
    core.close()
    return facts


def draw_picture(path: Path) -> None:
    """Draw all robots of the package, and show the progress in the terminal."""
    from rich.console import Console

    from legged_envs.runs.progress import LINE_INTERVAL, showing
    from legged_envs.viewing.film_strip import draw_robots

    with showing(Console(), LINE_INTERVAL) as show:
        draw_robots(path, show)
