"""Training of the planned runs: all with Ray Tune, or one in this process."""

import shutil
from collections.abc import Mapping
from dataclasses import replace

from rich.console import Console

from legged_envs.runs.run_folder import EVALUATION, write_json
from legged_envs.safe_benchmark.methods import Method, method_of
from legged_envs.safe_benchmark.options import BenchmarkCfg
from legged_envs.safe_benchmark.plan import plan_runs, trial_runs
from legged_envs.safe_benchmark.run import run_in
from legged_envs.sweeps.finished import is_finished
from legged_envs.sweeps.folder import RUNS, STATE, write_runs
from legged_envs.system_checks import check_installed

SWEEP_MODULES = ("ray", "pandas", "pyarrow")
"""Modules that a sweep imports and that only the extra ``ray`` installs."""


def train_unfinished(cfg: BenchmarkCfg, methods: Mapping[str, Method], console: Console) -> None:
    """Train the planned runs that are not finished, as many at once as the cores allow.

    Args:
        cfg: Options of the benchmark.
        methods: Methods by name.
        console: Console for a line about the plan.

    Raises:
        ValueError: If an option is wrong.
        FileExistsError: If another process runs this benchmark.
        RuntimeError: If trainings failed. The others are finished.
        KeyboardInterrupt: If the benchmark is interrupted.
    """
    planned = plan_runs(cfg, methods)
    unfinished = [run for run in planned if not is_finished(run.folder)]
    line = f"{len(planned)} runs, {len(planned) - len(unfinished)} of them finished → {cfg.folder}"
    console.print(line, markup=False, soft_wrap=True)
    if not unfinished:
        return
    check_installed(*SWEEP_MODULES, extra="ray")
    from legged_envs.sweeps.cluster import check_resources, running_ray
    from legged_envs.sweeps.sweep import locked, train_runs
    from legged_envs.sweeps.trial import LOG

    trials = list(trial_runs(unfinished, methods))
    with running_ray(cfg.address, cfg.cpus_per_run):
        check_resources(cfg.cpus_per_run, 0)
        with locked(cfg.folder):
            # Tune would resume the runs of its last state, but the plan may have others now. Each
            # training resumes from the checkpoint in its own folder.
            shutil.rmtree(cfg.folder / STATE, ignore_errors=True)
            write_runs(cfg.folder, unfinished[0].task_id, trials)
            try:
                reasons = train_runs(cfg.folder, trials)
            except KeyboardInterrupt:
                console.print("interrupted; the same command continues", markup=False)
                raise
    if reasons:
        named = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise RuntimeError(
            f"number of runs that failed: {len(reasons)} ({named}); each has its output in {LOG} "
            f"of its folder below {str(cfg.folder / RUNS)!r}, and the same command tries them again"
        )


def train_one(cfg: BenchmarkCfg, methods: Mapping[str, Method]) -> None:
    """Train the run that ``--run`` names, in this process.

    Args:
        cfg: Options of the benchmark.
        methods: Methods by name.

    Raises:
        ValueError: If the run, its task or its method is not known.
    """
    assert cfg.run is not None
    named = run_in(cfg.folder.resolve() / RUNS / cfg.run)
    method = method_of(named, methods, f"--run {cfg.run}")
    run = replace(named, iterations=cfg.iterations, num_envs=cfg.num_envs, threads=cfg.cpus_per_run)
    if is_finished(run.folder):
        return
    method.train(run)
    # The learner of another library writes none. It marks a run as finished.
    if not (run.folder / EVALUATION).exists():
        steps = method.curve(run)[-1]["env_steps"]
        sizes = {"num_envs": run.num_envs, "iterations": run.iterations}
        write_json(run.folder / EVALUATION, {"env_steps": steps, **sizes})
