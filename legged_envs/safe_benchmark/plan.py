"""Plan of the benchmark: all combinations of tasks, levels, methods and seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from legged_envs.checks import check_known
from legged_envs.envs.cost_suites import SUITE, level_name, read_suite
from legged_envs.safe_benchmark.method import Method, command_of
from legged_envs.safe_benchmark.options import BenchmarkCfg
from legged_envs.safe_benchmark.run import BenchmarkRun
from legged_envs.sweeps.folder import RUNS
from legged_envs.sweeps.plan import TrialRun
from legged_envs.training.prepare import prepare


def plan_runs(cfg: BenchmarkCfg, methods: Mapping[str, Method]) -> list[BenchmarkRun]:
    """Return the runs that the options ask for: all methods with the first seed, then the next.

    Args:
        cfg: Options of the benchmark.
        methods: Methods by name.

    Raises:
        ValueError: If there is no such suite, task or level, or one is given twice.
    """
    suite = cfg.suite or SUITE
    task_ids = read_suite(suite)["tasks"]
    known_tasks = [short_name(task_id) for task_id in task_ids]
    tasks = [short_name(task) for task in cfg.tasks]
    check_known(f"--tasks: {suite} has no limits for", tasks, known_tasks, "tasks")
    levels = [level_name(level, "--levels") for level in cfg.levels]
    check_once("--tasks", tasks)
    check_once("--levels", levels)
    runs = []
    # The seeds last, so that an interrupted benchmark has compared all methods.
    for seed in range(1, cfg.seeds + 1):
        for task in tasks:
            for level in levels:
                for method in methods:
                    run = BenchmarkRun(
                        suite=suite,
                        task=task,
                        level=level,
                        method=method,
                        seed=seed,
                        folder=Path(),
                        iterations=cfg.iterations,
                        num_envs=cfg.num_envs,
                        threads=cfg.cpus_per_run,
                    )
                    folder = cfg.folder.resolve() / RUNS / run.name
                    runs.append(replace(run, folder=folder))
    return runs


def trial_runs(runs: Sequence[BenchmarkRun], methods: Mapping[str, Method]) -> Iterator[TrialRun]:
    """Yield the runs in the form in which a sweep trains them. Their options are checked.

    Args:
        runs: Planned runs.
        methods: Methods by name.

    Raises:
        ValueError: If the options of a training are wrong.
    """
    iterations: dict[tuple[str, str, str], int | None] = {}
    for run in runs:
        method = methods[run.method]
        setting = (run.task, run.level, run.method)
        # Runs that differ only in their seed are checked once.
        if setting not in iterations:
            prepared = prepare(replace(method.options(run), run_dir=None))
            iterations[setting] = prepared.cfg.iterations
        yield TrialRun(
            name=run.name,
            folder=str(run.folder),
            command=command_of(method, run),
            imports=[],
            working_directory=str(Path.cwd()),
            cpus=run.threads,
            gpus=0,
            iterations=iterations[setting],
            minutes=None,
        )


def short_name(task: str) -> str:
    """Return ``Go2-Flat`` for ``Legged/Go2-Flat-v0`` and for itself."""
    return task.removeprefix("Legged/").removesuffix("-v0")


def check_once(option: str, names: Sequence[str]) -> None:
    """Raise a ValueError if a name is given twice, or none is given."""
    if not names:
        raise ValueError(f"{option} needs at least one name")
    for name in names:
        if list(names).count(name) > 1:
            raise ValueError(f"{option} has {name!r} twice: give each name once")
