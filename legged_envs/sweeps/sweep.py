"""Sweep: trains the planned runs with Ray Tune, and writes a page about them."""

import shlex
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ray import tune
from rich.console import Console

from legged_envs.checks import whole_number
from legged_envs.evaluation.report import write_report
from legged_envs.runs.interruption import Terminated
from legged_envs.runs.run_folder import lock_run_folder
from legged_envs.sweeps.cluster import check_resources, running_ray
from legged_envs.sweeps.finished import is_finished
from legged_envs.sweeps.folder import RUNS, STATE, make_runs, new_folder, read_runs, write_runs
from legged_envs.sweeps.options import SweepCfg
from legged_envs.sweeps.plan import TrialRun
from legged_envs.sweeps.table import SweepTable, name_of
from legged_envs.sweeps.trial import LOG, TrainingTrial
from legged_envs.tables import shorten
from legged_envs.training.command import import_words
from legged_envs.training.prepare import MOST_THREADS, default_config

PAGE = "report.html"
"""Name of the page about the finished runs."""

LONGEST_REASON = 200
"""Largest number of characters of a run's error line that are shown."""

STATE_FILES = "experiment_state-*.json"
"""Names of the files without which Tune cannot restore a sweep."""


def sweep(cfg: SweepCfg) -> Path:
    """Train all runs of a sweep, and write a page about the finished runs.

    Args:
        cfg: Options of the sweep.

    Returns:
        The folder of the sweep.

    Raises:
        ValueError: If an option is wrong, or differs from the sweep to resume.
        FileExistsError: If the folder is not empty, or another process runs this sweep.
        FileNotFoundError: If there is no sweep to resume.
        ConnectionError: If there is no cluster at ``--address``.
        RuntimeError: If runs failed. The page about the others is written.
        KeyboardInterrupt: If the sweep is interrupted.
    """
    whole_number("--cpus-per-run", cfg.cpus_per_run, most=MOST_THREADS)
    if cfg.resume is None:
        folder = new_folder(cfg)
        runs = make_runs(cfg, folder)
    else:
        folder = cfg.resume
        runs = read_runs(cfg)
    console = Console()
    with running_ray(cfg.address, runs[0]["cpus"]):
        check_resources(runs[0]["cpus"], runs[0]["gpus"])
        with locked(folder):
            if cfg.resume is None:
                write_runs(folder, cfg.task_id, runs)
            line = f"{cfg.task_id}: {len(runs)} runs → {folder}"
            console.print(line, markup=False, soft_wrap=True)
            try:
                reasons = train_runs(folder, runs)
            except KeyboardInterrupt:
                words = ["legged-envs", "sweep", cfg.task_id, "--resume", str(folder)]
                words += import_words(cfg.imports)
                line = f"interrupted; continue with: {shlex.join(words)}"
                console.print(line, markup=False, soft_wrap=True)
                raise
    _write_page(folder, runs)
    _raise_failures(folder, reasons)
    return folder


def train_runs(folder: Path, runs: Sequence[TrialRun]) -> dict[str, str]:
    """Train all runs that are not finished.

    Returns:
        Name of each run that failed → the last line that it printed.

    Raises:
        KeyboardInterrupt: If the sweep was interrupted.
    """
    tuner = _make_tuner(folder, runs)
    with _stopping_gently() as signals:
        results = tuner.fit()
    reasons = {}
    for result in results:
        if result.error is not None:
            # Its text is a traceback; the last line is the error of the training.
            line = str(result.error).strip().splitlines()[-1]
            reason = line.removeprefix("RuntimeError: ").removeprefix("legged-envs: error: ")
            reasons[Path(result.path).name] = shorten(reason, LONGEST_REASON)
    for run in runs:
        if run["name"] not in reasons and not is_finished(Path(run["folder"])):
            raise Terminated if signal.SIGTERM in signals else KeyboardInterrupt
    return reasons


def _make_tuner(folder: Path, runs: Sequence[TrialRun]) -> tune.Tuner:
    """Return the tuner of a sweep: as it was interrupted, or a new one."""
    state = folder.resolve() / STATE
    # A sweep that is killed in its first seconds has no state yet. Its runs continue nevertheless,
    # because each looks for its own checkpoint.
    if any(state.glob(STATE_FILES)):
        return tune.Tuner.restore(str(state), TrainingTrial, resume_errored=True)
    return tune.Tuner(
        TrainingTrial,
        param_space={"run": tune.grid_search(list(runs))},
        tune_config=tune.TuneConfig(
            reuse_actors=True,
            trial_name_creator=name_of,
            trial_dirname_creator=name_of,
        ),
        run_config=tune.RunConfig(
            name=STATE,
            storage_path=str(folder.resolve()),
            verbose=0,
            callbacks=[SweepTable()],
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
        ),
    )


@contextmanager
def _stopping_gently() -> Iterator[list[int]]:
    """Let SIGTERM end a sweep as SIGINT does, for which Tune saves its state and stops the runs.

    Yields:
        List that gets the number of each SIGTERM.
    """
    received: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        received.append(number)
        signal.raise_signal(signal.SIGINT)

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder of a sweep against other processes. It is created if it is missing.

    Raises:
        FileExistsError: If another process has locked it.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_run_folder(folder))
        except FileExistsError as error:
            raise FileExistsError(
                f"another process trains the sweep in {str(folder)!r}: wait until it is over, or "
                "choose another --sweep-dir"
            ) from error
        yield


def _write_page(folder: Path, runs: Sequence[TrialRun]) -> None:
    """Write the page about the runs that finished. Without any, no page is written."""
    finished = []
    for run in runs:
        if is_finished(Path(run["folder"])):
            finished.append(folder / RUNS / run["name"])
    if finished:
        write_report(finished, folder / PAGE, default_config)


def _raise_failures(folder: Path, reasons: dict[str, str]) -> None:
    """Raise a RuntimeError that names the runs that failed, if there are some."""
    if not reasons:
        return
    named = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise RuntimeError(
        f"number of runs that failed and are not on the page: {len(reasons)} ({named}); each has "
        f"its output in {LOG} of its folder below {str(folder / RUNS)!r}, and sweep --resume tries "
        "them again"
    )
