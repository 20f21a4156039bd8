"""Implements `legged-envs list`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from legged_envs.policy.header import (
    HARSH_COLUMN,
    HARSH_KEY,
    HEADLINE_COLUMNS,
    harsh_headline,
    headline,
    read_evaluation,
)
from legged_envs.system_checks import check_installed, check_output
from legged_envs.tasks import TASKS, make_task_cfg, plain_id


@dataclass
class ListCfg:
    """Options of `legged-envs list`."""

    tasks: Annotated[tuple[str, ...], Positional, arg(metavar="TASK_ID")] = ()
    """Registered ids, or module:Id of another package's task. List only these, with their
    observation groups and costs."""
    picture: Path | None = None
    """Draw all robots of the package into this .png or .jpg. A robot with a shipped policy is
    drawn as it walks."""


def list_tasks(cfg: ListCfg) -> None:
    """List the registered tasks: robot, joints, whether a policy ships, and how well it walks.

    The numbers were measured when the policy was made: errors of the velocity command, falls,
    imitated motions, crossed tiles, and the same under harsh conditions. "-" was not measured.
    """
    if cfg.picture is not None:
        # A picture takes long to draw. That it can be written is checked before.
        check_output("--picture", cfg.picture, endings=(".png", ".jpg"))
        check_installed("matplotlib")
    ids = [plain_id(task_id) for task_id in cfg.tasks or TASKS]
    print_table(ids, detailed=bool(cfg.tasks))
    if cfg.picture is not None:
        draw_picture(cfg.picture)


def print_table(task_ids: list[str], detailed: bool) -> None:
    """Print a table with a row for each task, with the results of the policy of this package.

    Args:
        task_ids: Registered ids.
        detailed: Show observation groups and cost terms in place of these results.
    """
    from rich.console import Console
    from rich.table import Column, Table

    if detailed:
        heads = ["robot", "joints", "observation groups", "costs (limit)"]
    else:
        heads = ["robot", "joints", "policy", *HEADLINE_COLUMNS, HARSH_COLUMN]
    columns = [Column(head, overflow="fold") for head in heads]
    # Ids are copied into commands, so they are not broken into two lines.
    table = Table(Column("id", no_wrap=True), *columns)
    for task_id in task_ids:
        try:
            cells = describe_task(task_id) if detailed else describe_shipped_policy(task_id)
        except Exception as error:
            # A broken task of another package must not hide all other tasks.
            empty = [""] * (len(heads) - 2)
            cells = ["cannot be made:", *empty, f"{type(error).__name__}: {error}"]
        table.add_row(task_id, *cells)
    Console().print(table)


def describe_shipped_policy(task_id: str) -> list[str]:
    """Return the cells of a task: robot, joints, and the results of the shipped policy."""
    from legged_envs.policy.policy import SHIPPED, shipped_file

    robot = make_task_cfg(task_id).robot
    cells = [robot.name, str(robot.num_joints)]
    if task_id in SHIPPED:
        file = shipped_file(task_id)
        cells.append("ships")
        cells.extend(headline(read_evaluation(file)))
        cells.append(harsh_headline(read_evaluation(file, HARSH_KEY)))
    return cells


def describe_task(task_id: str) -> list[str]:
    """Return the cells of a task: robot, joints, sizes of observation groups, limits of costs."""
    from legged_envs.registration import make_core

    # The sizes of the observations are known only when they are computed.
    core = make_core(make_task_cfg(task_id), 1)
    groups = [f"{name} ({size})" for name, size in core.group_sizes.items()]
    costs = []
    for name, limit in zip(core.cost_names, core.cost_limits, strict=True):
        costs.append(f"{name} ({limit:g})")
    robot = core.cfg.robot
    core.close()
    return [robot.name, str(robot.num_joints), ", ".join(groups), ", ".join(costs)]


def draw_picture(path: Path) -> None:
    """Draw all robots of the package, and show the progress in the terminal."""
    from rich.console import Console

    from legged_envs.runs.progress import LINE_INTERVAL, showing
    from legged_envs.viewing.film_strip import draw_robots

    with showing(Console(), LINE_INTERVAL) as show:
        draw_robots(path, show)
