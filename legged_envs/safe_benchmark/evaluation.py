"""Evaluation of the finished runs of a folder: each becomes a result file."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from legged_envs.runs.run_folder import ABOUT, CONFIG, EVALUATION, as_json
from legged_envs.safe_benchmark.measurement import (
    BENCHMARK_SEED,
    measure_policy,
    steps_per_second,
    violating_updates,
)
from legged_envs.safe_benchmark.method_options import (
    SEPARATOR,
    base_of,
    differing_options,
    read_trained,
)
from legged_envs.safe_benchmark.methods import (
    Method,
    OptionMethod,
    method_of,
    shipped_method,
    shipped_methods,
)
from legged_envs.safe_benchmark.results import RunResult, read_result, write_result
from legged_envs.safe_benchmark.run import BenchmarkRun, run_in
from legged_envs.sweeps.finished import is_finished
from legged_envs.sweeps.folder import RUNS
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare

PUBLIC_FOLDER = Path("benchmarks_safe")
"""Folder that the commands of a table name, whatever folder the runs were trained in."""

FIXED_OPTIONS = ("changes", "coarse", "first_trot", "warm_start", "learner", "clips", "minutes")
"""Options of a training that all runs of a method share."""


def evaluate_folder(
    folder: Path,
    results: Path,
    suite: str,
    episodes: int,
    methods: Mapping[str, Method],
    console: Console,
) -> None:
    """Evaluate the finished runs of a folder that have no result yet, and write their results.

    All runs are checked before the first one is evaluated.

    Args:
        folder: Folder of the benchmark. Run folders are in its ``runs/``.
        results: Folder of the result files.
        suite: Name and version of the suite.
        episodes: Number of episodes of each evaluation.
        methods: Methods by name.
        console: Console for a line about each run that is evaluated or not finished.

    Raises:
        FileNotFoundError: If there are no run folders.
        ValueError: If a run does not fit its name, or its method is not known.
    """
    folders = sorted(path for path in (folder / RUNS).glob("*") if path.is_dir())
    if not folders:
        raise FileNotFoundError(f"there are no run folders in {str(folder / RUNS)!r}")
    chosen = []
    for path in folders:
        run = run_in(path, suite)
        method = method_of(run, methods, repr(str(path)))
        check_run(run, method)
        chosen.append((run, method))
    for run, method in chosen:
        if not is_finished(run.folder):
            line = f"{run.name}: not finished"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        elif not has_result(run, results, episodes):
            result = evaluate_run(run, method, episodes)
            write_result(results, result)
            line = f"{run.name}: worst J/d {result.worst_ratio:.2f} ({result.worst}), "
            line += f"{result.lin_vel_error:.3f} m/s, falls {result.falls:.1%}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def check_run(run: BenchmarkRun, method: Method) -> None:
    """Raise a ValueError if a run folder does not hold the training that its name says.

    A folder without a configuration passes: methods of other libraries write none.

    Raises:
        ValueError: If its task, costs, seed or options differ, or the task was changed.
    """
    training = read_training(run.folder)
    # A method of another library writes no configuration.
    if not training:
        return
    trained: dict[str, Any] = {
        "task": training["task_id"],
        "costs": training["changes"].get("costs"),
        "seed": training["seed"],
    }
    named: dict[str, Any] = {"task": run.task_id, "costs": run.costs, "seed": run.seed}
    algo = read_ppo_options(run)
    if isinstance(method, OptionMethod):
        trained["method"] = algo.constraint.method
        named["method"] = method.algo.constraint.method
    if trained != named:
        raise ValueError(
            f"{str(run.folder)!r} was trained with {trained}, but is named for {named}: "
            "rename it or move it away"
        )
    usual = prepare(replace(method.options(run), run_dir=None)).cfg
    check_unchanged(run, training, usual)
    assert isinstance(usual.algo, PPOCfg)
    differing = differing_options(algo, usual.algo)
    if differing:
        raise ValueError(
            f"{str(run.folder)!r} was trained with {', '.join(differing)}, and its name says "
            f"otherwise: {how_to_name(run, algo)}"
        )


def how_to_name(run: BenchmarkRun, algo: PPOCfg) -> str:
    """Return what to do with a run whose training has other options than its name."""
    base = shipped_method(base_of(run.method)) if base_of(run.method) in shipped_methods() else None
    if not isinstance(base, OptionMethod):
        return "move it away"
    usual = prepare(replace(base.options(run), run_dir=None)).algo
    assert isinstance(usual, PPOCfg)
    name = SEPARATOR.join((base.name, *differing_options(algo, usual)))
    return f"rename it to {replace(run, method=name).name!r}, or move it away"


def read_ppo_options(run: BenchmarkRun) -> PPOCfg:
    """Return the PPO options that a run was trained with.

    Raises:
        ValueError: If these are options of another algorithm.
    """
    try:
        return read_trained(read_training(run.folder)["algo"])
    except ValueError as error:
        raise ValueError(f"{str(run.folder)!r} is no run of the benchmark: {error}") from error


def check_unchanged(run: BenchmarkRun, training: Mapping[str, Any], usual: TrainCfg) -> None:
    """Raise a ValueError if a training changed more of its task than costs and limits.

    Args:
        run: The run.
        training: Options of the training, from its configuration.
        usual: Options of a training by its method.
    """
    for name in FIXED_OPTIONS:
        # As the configuration has it: paths are text there.
        expected = json.loads(json.dumps(getattr(usual, name), default=as_json))
        if training.get(name, expected) != expected:
            raise ValueError(
                f"{str(run.folder)!r} was trained with {name} = {training[name]}, and the "
                f"benchmark has {expected}: move it away"
            )


def read_training(folder: Path) -> dict[str, Any]:
    """Return the options of the training in a run folder, an empty dict if it has none."""
    if not (folder / CONFIG).is_file():
        return {}
    options: dict[str, Any] = json.loads((folder / CONFIG).read_text())["training"]
    return options


def has_result(run: BenchmarkRun, results: Path, episodes: int) -> bool:
    """Return True if the run has a result that is up to date.

    A result is up to date if it has the suite and the environment steps of the training, the given
    number of episodes, and their present seed.
    """
    path = results / f"{run.name}.json"
    if not path.is_file():
        return False
    result = read_result(path)
    trained_steps = json.loads((run.folder / EVALUATION).read_text())["env_steps"]
    return (result.suite, result.env_steps, result.episodes, result.evaluation_seed) == (
        run.suite,
        trained_steps,
        episodes,
        BENCHMARK_SEED,
    )


def evaluate_run(run: BenchmarkRun, method: Method, episodes: int) -> RunResult:
    """Evaluate a finished run.

    Args:
        run: The run.
        method: Its method.
        episodes: Number of episodes.
    """
    curve = method.curve(run)
    numbers = measure_policy(run, method, episodes)
    limits = {name: cost.limit for name, cost in numbers["costs"].items()}
    session = last_session(run.folder)
    machine = session.get("hardware", "not recorded").split(", ")
    return RunResult(
        suite=run.suite,
        task=run.task,
        level=run.level,
        method=run.method,
        seed=run.seed,
        source=method.source or method.name,
        command=public_command(run, method),
        package_version=session.get("versions", {}).get("legged-envs", "not recorded"),
        # Processor, cores and memory; the system is left out.
        hardware=", ".join(machine[:3]),
        env_steps=json.loads((run.folder / EVALUATION).read_text())["env_steps"],
        steps_per_second=steps_per_second(curve),
        violating_updates=violating_updates(curve, limits),
        **numbers,
    )


def last_session(folder: Path) -> dict[str, Any]:
    """Return the description of the last process that trained a run, empty if there is none."""
    if not (folder / ABOUT).is_file():
        return {}
    sessions: list[dict[str, Any]] = json.loads((folder / ABOUT).read_text())
    return sessions[-1]


def public_command(run: BenchmarkRun, method: Method) -> str:
    """Return the command that trains a run again, in a folder that any machine has."""
    training = read_training(run.folder)
    if training:
        usual = prepare(replace(method.options(run), run_dir=None)).cfg
        iterations = training["iterations"]
        run = replace(
            run,
            num_envs=training["num_envs"],
            iterations=None if iterations == usual.iterations else iterations,
        )
    else:
        # The learner of another library writes no configuration.
        sizes = json.loads((run.folder / EVALUATION).read_text())
        run = replace(
            run,
            num_envs=sizes.get("num_envs", run.num_envs),
            iterations=sizes.get("iterations", run.iterations),
        )
    run = replace(run, folder=PUBLIC_FOLDER / RUNS / run.name, threads=0)
    return shlex.join(["legged-envs", *method.words(run)])
