"""Prints what :mod:`benchmarks.throughput` measured, each figure next to its limit."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

ANT = "Ant-v5"
"""Gymnasium's environment that a single robot is compared with."""
SINGLE = {
    "default": "one environment (gymnasium.make)",
    "ant": f"Gymnasium's {ANT}",
}
"""Names of what is measured one environment at a time."""
RATIO_LIMITS = {64: 1.4, 512: 1.08, 4096: 1.08}
"""Limit of the time of an environment step over raw physics, by number of environments."""
WRAPPER_LIMITS = {64: (25.0, 0.03), 1024: (0.0, 0.03)}
"""Limit of what seven wrappers add to a step, by number of environments.

Each is a time, µs, and a share of the environment's own time; the limit is their sum.
"""
SCALING_LIMIT = 1.05
"""Limit of the time per environment step, relative to the smallest batch. 1: the time is linear in
the number of environments.
"""
MEMORY_LIMIT_MB = 1500.0
"""Limit of the resident memory of a process with ``PROBE_ENVS`` environments, MB."""
STARTUP_LIMIT_S = 3.0
"""Limit of the time of ``make_vec`` with ``PROBE_ENVS`` environments in a fresh process, s."""
BUSY_LOAD = 0.5
"""Load average above which figures get worse."""


def print_bench(result: dict[str, Any], console: Console) -> None:
    """Print the tables of a result of :func:`benchmarks.throughput.bench`."""
    facts = result["machine"]
    console.print(
        f"{result['task_id']} on {facts['processor']}, {facts['cores']} cores, "
        f"load {facts['load_average']}"
    )
    versions = []
    for name in ("python", "mujoco", "torch", "numpy", "gymnasium"):
        versions.append(f"{name} {facts[name]}")
    console.print(f"{', '.join(versions)}; 1 torch thread; medians of {result['rounds']} rounds")
    if facts["load_average"] > BUSY_LOAD:
        console.print(
            "[yellow]other programs are running: "
            "the figures will be worse than those of an idle machine[/]"
        )
    console.print(_throughput_table(result))
    console.print(_layer_table(result))
    console.print(_wrapper_table(result))
    console.print(_scaling_table(result))
    console.print(_other_table(result))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left")
    return table


def _judged(text: str, good: bool) -> str:
    """Return a text in green or red."""
    colour = "green" if good else "red"
    return f"[{colour}]{text}[/]"


def _throughput_table(result: dict[str, Any]) -> Table:
    table = _table(
        "Full environment step against raw physics (ratio: to the faster raw loop)",
        "envs",
        "env [ms]",
        "batch [ms]",
        "mj_step [ms]",
        "ratio",
        "limit",
        "CPU ratio",
        "env-steps/s",
    )
    for row in result["throughput"]:
        limit = RATIO_LIMITS[row["num_envs"]]
        table.add_row(
            str(row["num_envs"]),
            f"{row['env_ms']:.2f}",
            f"{row['batch_ms']:.2f}",
            f"{row['mj_step_ms']:.2f}",
            _judged(f"{row['ratio']:.3f}", row["ratio"] <= limit),
            f"{limit:g}",
            f"{row['cpu_ratio']:.3f}",
            f"{row['env_steps_per_s']:,.0f}",
        )
    return table


def _layer_table(result: dict[str, Any]) -> Table:
    rows = result["throughput"]
    sizes = [f"{row['num_envs']} envs" for row in rows]
    table = _table("Time that each layer adds to a step", "layer", *sizes)
    for name in rows[0]["layers_us"]:
        cells = []
        for row in rows:
            times = row["layers_us"]
            share = times[name] / sum(times.values())
            cells.append(f"{times[name]:,.0f} µs {share:6.1%}")
        table.add_row(name, *cells)
    return table


def _wrapper_table(result: dict[str, Any]) -> Table:
    rows = result["wrappers"]
    inside_out = reversed(rows[0]["wrappers"])
    table = _table(
        " + ".join(inside_out), "envs", "environment [µs]", "adds [µs]", "share", "limit [µs]"
    )
    for row in rows:
        time_limit, share_limit = WRAPPER_LIMITS[row["num_envs"]]
        limit = time_limit + share_limit * row["environment_us"]
        table.add_row(
            str(row["num_envs"]),
            f"{row['environment_us']:,.0f}",
            _judged(f"{row['wrappers_us']:,.0f}", row["wrappers_us"] <= limit),
            f"{row['share']:.1%}",
            f"{limit:,.0f}",
        )
    return table


def _scaling_table(result: dict[str, Any]) -> Table:
    rows = result["scaling"]
    smallest = rows[0]["num_envs"]
    table = _table("Scaling", "envs", "per env-step [µs]", f"relative to {smallest}", "limit")
    for row in rows:
        table.add_row(
            str(row["num_envs"]),
            f"{row['us_per_env_step']:.2f}",
            _judged(f"{row['relative']:.3f}", row["relative"] <= SCALING_LIMIT),
            f"{SCALING_LIMIT:g}",
        )
    return table


def _other_table(result: dict[str, Any]) -> Table:
    table = _table("One environment; start and memory", "quantity", "value", "limit")
    _add_single_rows(table, result["single"])
    _add_startup_rows(table, result["startup"])
    return table


def _add_single_rows(table: Table, single: dict[str, Any]) -> None:
    for kind, name in SINGLE.items():
        if kind in single["missing"]:
            table.add_row(name, f"not measured: {single['missing'][kind]}", "")
        else:
            table.add_row(name, f"{single['steps_per_s'][kind]:,.0f} steps/s", "")
    for ratio in single["ratio"].values():
        judged = _judged(f"{ratio:.2f}", ratio >= 1.0)
        table.add_row(f"speed relative to {ANT}", judged, "at least 1")


def _add_startup_rows(table: Table, startup: dict[str, Any]) -> None:
    num_envs = startup["num_envs"]
    cold = startup["make_vec_cold_s"]
    judged = _judged(f"{cold:.2f} s", cold <= STARTUP_LIMIT_S)
    table.add_row(f"make_vec of {num_envs} with imports", judged, f"{STARTUP_LIMIT_S:g} s")
    table.add_row("make_vec again in the same process", f"{startup['make_vec_warm_s']:.2f} s", "")
    table.add_row("first reset", f"{startup['first_reset_s']:.2f} s", "")
    if startup["process_mb"] is None:
        return
    peak = startup["peak_mb"]
    judged = _judged(f"{peak:,.0f} MB", peak <= MEMORY_LIMIT_MB)
    table.add_row("peak memory of the process", judged, f"{MEMORY_LIMIT_MB:,.0f} MB")
    table.add_row("resident memory after some steps", f"{startup['process_mb']:,.0f} MB", "")
    increase = f"{startup['increase_mb']:,.0f} MB"
    table.add_row(f"memory of {num_envs} more environments", increase, "")
