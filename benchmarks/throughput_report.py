"""Prints what :mod:`benchmarks.throughput` measured, each figure beside the bar that it is held to."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

ANT = "Ant-v5"
"""Gymnasium's environment that a single robot is compared with."""
SINGLE = {
    "default": "one environment (gymnasium.make)",
    "compiled": "one environment with compile=True",
    "ant": f"Gymnasium's {ANT}",
}
"""What is measured one environment at a time."""
RATIO_LIMITS = {64: 1.4, 512: 1.08, 4096: 1.08}
"""num_envs → time of an environment step over raw physics that the package promises."""
WRAPPER_LIMITS = {64: (25.0, 0.03), 1024: (0.0, 0.03)}
"""num_envs → what a stack of seven wrappers may add to a step: µs, and share of the environment's own time."""
SCALING_LIMIT = 1.05
"""Time per environment step relative to that of the smallest batch: 1 is linear, the rest is for noise."""
MEMORY_LIMIT_MB = 1500.0
"""Resident memory of a process with ``PROBE_ENVS`` environments."""
STARTUP_LIMIT_S = 3.0
"""Time of ``gymnasium.make_vec`` with ``PROBE_ENVS`` environments in a fresh process."""


def print_bench(result: dict[str, Any], console: Console) -> None:
    """Print the tables of a result."""
    about = result["machine"]
    versions = ", ".join(
        f"{name} {about[name]}" for name in ("python", "mujoco", "torch", "numpy", "gymnasium")
    )
    console.print(
        f"{result['task_id']} on {about['processor']}, {about['cores']} cores, load {about['load_average']}"
    )
    console.print(f"{versions}; 1 torch thread; medians of {result['rounds']} rounds")
    if result["compile"]:
        console.print("batches made with compile=True")
    if about["load_average"] > 0.5:
        console.print(
            "[yellow]other programs are running: the figures will be worse than those of an idle machine[/]"
        )
    for table in (_throughput_table, _layer_table, _wrapper_table, _scaling_table, _other_table):
        console.print(table(result))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left")
    return table


def _judged(text: str, good: bool) -> str:
    return f"[{'green' if good else 'red'}]{text}[/]"


def _throughput_table(result: dict[str, Any]) -> Table:
    columns = (
        "envs",
        "env [ms]",
        "batch [ms]",
        "mj_step [ms]",
        "ratio",
        "limit",
        "CPU ratio",
        "env-steps/s",
    )
    table = _table(
        "Full environment step against raw physics (ratio: to the faster raw loop)", *columns
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
    table = _table(
        "What each layer adds to a step", "layer", *(f"{row['num_envs']} envs" for row in rows)
    )
    for name in rows[0]["layers_us"]:
        shares = [row["layers_us"][name] / sum(row["layers_us"].values()) for row in rows]
        cells = [
            f"{row['layers_us'][name]:,.0f} µs {share:6.1%}"
            for row, share in zip(rows, shares, strict=True)
        ]
        table.add_row(name, *cells)
    return table


def _wrapper_table(result: dict[str, Any]) -> Table:
    rows = result["wrappers"]
    table = _table(
        " + ".join(reversed(rows[0]["wrappers"])),
        "envs",
        "environment [µs]",
        "adds [µs]",
        "share",
        "limit [µs]",
    )
    for row in rows:
        fixed, share = WRAPPER_LIMITS[row["num_envs"]]
        limit = fixed + share * row["environment_us"]
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
    columns = ("envs", "per env-step [µs]", f"relative to {rows[0]['num_envs']}", "limit")
    table = _table("Scaling", *columns)
    for row in rows:
        relative = _judged(f"{row['relative']:.3f}", row["relative"] <= SCALING_LIMIT)
        table.add_row(
            str(row["num_envs"]), f"{row['us_per_env_step']:.2f}", relative, f"{SCALING_LIMIT:g}"
        )
    return table


def _other_table(result: dict[str, Any]) -> Table:
    single, startup = result["single"], result["startup"]
    table = _table("One environment; start and memory", "quantity", "value", "limit")
    for kind, name in SINGLE.items():
        if kind in single["missing"]:
            table.add_row(name, f"not measured: {single['missing'][kind]}", "")
        else:
            table.add_row(name, f"{single['steps_per_s'][kind]:,.0f} steps/s", "")
    for kind, ratio in single["ratio"].items():
        table.add_row(
            f"speed relative to {ANT}, {kind}", _judged(f"{ratio:.2f}", ratio >= 1.0), "at least 1"
        )
    num_envs, cold = startup["num_envs"], startup["make_vec_cold_s"]
    judged = _judged(f"{cold:.2f} s", cold <= STARTUP_LIMIT_S)
    table.add_row(f"make_vec of {num_envs} with imports", judged, f"{STARTUP_LIMIT_S:g} s")
    table.add_row("make_vec again in the same process", f"{startup['make_vec_warm_s']:.2f} s", "")
    table.add_row("first reset", f"{startup['first_reset_s']:.2f} s", "")
    if startup["process_mb"] is not None:
        judged = _judged(f"{startup['peak_mb']:,.0f} MB", startup["peak_mb"] <= MEMORY_LIMIT_MB)
        table.add_row("peak memory of the process", judged, f"{MEMORY_LIMIT_MB:,.0f} MB")
        table.add_row("resident memory after some steps", f"{startup['process_mb']:,.0f} MB", "")
        table.add_row(
            f"memory of {num_envs} more environments", f"{startup['increase_mb']:,.0f} MB", ""
        )
    return table
