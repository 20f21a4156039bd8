"""Implements `legged-envs benchmark`."""

from legged_envs.checks import whole_number
from legged_envs.runs.options import check_size
from legged_envs.safe_benchmark.options import BenchmarkCfg
from legged_envs.system_checks import check_installed, check_output
from legged_envs.training.options import TRAINING_MODULES


def benchmark(cfg: BenchmarkCfg) -> None:
    """Compare constrained training methods, and make a leaderboard.

    The runs are all combinations of tasks, levels, methods and seeds, each an ordinary training.
    Ray Tune schedules them. Finished runs are kept, so the same command continues a benchmark that
    was interrupted. Each run is evaluated on unseen episodes, and its numbers are a small file in
    results/. The table and the page are made from these files. docs/safe-benchmark.md.
    """
    for name in ("seeds", "episodes", "cpus_per_run"):
        whole_number(f"--{name.replace('_', '-')}", getattr(cfg, name))
    if cfg.iterations is not None:
        whole_number("--iterations", cfg.iterations)
    check_size("--num-envs", cfg.num_envs)
    check_output("--page", cfg.page, endings=(".html",))
    check_output("--folder", cfg.folder, "folder")
    check_output("--results", cfg.results, "folder")
    check_installed("rliable", "matplotlib", extra="bench")
    if cfg.tasks or cfg.evaluate_only or cfg.run:
        check_installed(*TRAINING_MODULES)
    from legged_envs.safe_benchmark.benchmark import run_benchmark

    run_benchmark(cfg)
