"""The benchmark from plan to page: trains, evaluates, and summarizes the results."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from legged_envs.envs.cost_suites import SUITE, read_suite
from legged_envs.safe_benchmark.aggregate import aggregate, aggregate_table
from legged_envs.safe_benchmark.evaluation import evaluate_folder
from legged_envs.safe_benchmark.methods import find_methods, profile_methods, shipped_methods
from legged_envs.safe_benchmark.options import BenchmarkCfg
from legged_envs.safe_benchmark.page import write_page
from legged_envs.safe_benchmark.results import RunResult, notices, read_results
from legged_envs.safe_benchmark.rows import make_rows
from legged_envs.safe_benchmark.sweep_rows import (
    limit_sweeps,
    limit_table,
    multiplier_profiles,
    profile_table,
)
from legged_envs.safe_benchmark.table import main_table, risk_table, title_of
from legged_envs.safe_benchmark.training import train_one, train_unfinished
from legged_envs.tables import Table, format_text

RESULTS = "results"
"""Name of the folder with the result files, in the folder of a benchmark."""

PUBLISHED = Path(__file__).parents[2] / "benchmarks" / "safe_results"
"""Folder of the published results, in a clone of this package."""


def run_benchmark(cfg: BenchmarkCfg) -> None:
    """Train, evaluate and summarize what the options ask for.

    Args:
        cfg: Options of the benchmark.

    Raises:
        ValueError: If an option, a run folder or a result is wrong.
        FileNotFoundError: If there is nothing to evaluate or to summarize.
        RuntimeError: If trainings failed. The other runs are evaluated and in the table.
        KeyboardInterrupt: If the benchmark is interrupted.
    """
    suite = cfg.suite or SUITE
    read_suite(suite)
    # A penalty may be that of a method that --methods names too.
    methods = {**profile_methods(cfg.penalties), **find_methods(cfg.methods)}
    if cfg.run is not None:
        train_one(cfg, methods)
        return
    console = Console()
    failure = None
    if cfg.tasks and not cfg.evaluate_only:
        try:
            train_unfinished(cfg, methods, console)
        except RuntimeError as error:
            # Raised below: the finished runs are evaluated first.
            failure = error
    results = results_folder(cfg)
    if cfg.tasks or cfg.evaluate_only:
        # Runs of earlier commands may be of methods that this one does not name.
        known = {**shipped_methods(), **methods}
        evaluate_folder(cfg.folder, results, suite, cfg.episodes, known, console)
    found = read_results(results, suite)
    console.print(f"{len(found)} results in {results}", markup=False, soft_wrap=True)
    print_tables(found, console)
    if cfg.page is not None:
        write_page(cfg.page, suite, found)
    if failure is not None:
        raise failure


def results_folder(cfg: BenchmarkCfg) -> Path:
    """Return the folder of the result files."""
    if cfg.results is not None:
        return cfg.results
    own = cfg.folder / RESULTS
    only_summarizes = not (cfg.tasks or cfg.evaluate_only)
    if only_summarizes and not own.exists() and PUBLISHED.is_dir():
        return PUBLISHED
    return own


def print_tables(results: Sequence[RunResult], console: Console) -> None:
    """Print the tables of each task and level, and what limits their comparison."""
    for setting, rows in make_rows(results).items():
        console.print(f"\n{title_of(setting, rows)}", markup=False, highlight=False)
        for table in (main_table(rows), risk_table(rows)):
            console.print(f"\n{format_text(table)}", markup=False, highlight=False, soft_wrap=True)
    for table in summary_tables(results):
        console.print(f"\n{format_text(table)}", markup=False, highlight=False, soft_wrap=True)
    found = aggregate(results)
    for line in [*notices(results), *(found.notices if found else [])]:
        console.print(f"notice: {line}", markup=False, highlight=False, soft_wrap=True)


def summary_tables(results: Sequence[RunResult]) -> list[Table]:
    """Return the tables over several tasks, limits and multipliers."""
    tables = []
    found = aggregate(results)
    if found is not None and found.methods:
        tables.append(aggregate_table(found))
    tables += [limit_table(sweep) for sweep in limit_sweeps(results)]
    tables += [profile_table(sweep) for sweep in multiplier_profiles(results)]
    return tables
