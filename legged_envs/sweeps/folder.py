"""Folder of a sweep: the runs that are planned in it, checked before anything is written."""

import datetime
import json
import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from legged_envs.runs.run_folder import write_json
from legged_envs.sweeps.options import SweepCfg
from legged_envs.sweeps.plan import SWEEP, PlannedRun, TrialRun, plan_runs
from legged_envs.system_checks import check_output
from legged_envs.training.command import train_words
from legged_envs.training.options import TrainCfg
from legged_envs.training.prepare import Prepared, prepare
from legged_envs.training.standing_check import check_standing

RUNS = "runs"
"""Name of the folder with the run folders, in the folder of a sweep."""

STATE = "tune"
"""Name of the folder with Tune's state, from which a sweep is resumed."""

OPTIONS_OF_RESUME = ("task_id", "resume", "address", "imports")
"""Names of the options that may stand next to ``--resume``."""


def new_folder(cfg: SweepCfg) -> Path:
    """Return the folder for a new sweep. It is not created.

    Raises:
        FileExistsError: If the folder is not empty.
        ValueError: If the folder cannot be written to.
    """
    folder = cfg.sweep_dir
    if folder is None:
        task_name = cfg.task_id.split("/")[-1].split(":")[-1]
        folder = Path("sweeps", task_name, f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}")
    check_output("--sweep-dir", folder, "folder")
    if (folder / SWEEP).exists():
        raise FileExistsError(
            f"there is a sweep in {str(folder)!r}: choose another --sweep-dir, or --resume it"
        )
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"--sweep-dir must be empty or new, got {str(folder)!r}")
    return folder


def make_runs(cfg: SweepCfg, folder: Path) -> list[TrialRun]:
    """Return the runs of a new sweep. Each setting is checked as a training checks it.

    Args:
        cfg: Options of the sweep.
        folder: Folder of the sweep.

    Raises:
        TypeError: If a value does not fit its path.
        ValueError: If an option, a path or a value is wrong.
    """
    runs = []
    checked: dict[str, Prepared] = {}
    for planned in plan_runs(cfg):
        run_dir = folder.resolve() / RUNS / planned.name
        training = _training(cfg, planned, run_dir)
        # Runs that differ only in their seed are checked once.
        setting = repr(planned.changes)
        if setting not in checked:
            checked[setting] = prepare(training)
            check_standing(checked[setting])
        completed = checked[setting].cfg
        runs.append(
            TrialRun(
                name=planned.name,
                folder=str(run_dir),
                command=shlex.join(["legged-envs", *train_words(training)]),
                imports=list(cfg.imports),
                working_directory=str(Path.cwd()),
                cpus=cfg.cpus_per_run,
                gpus=int(cfg.device.startswith("cuda")),
                iterations=completed.iterations,
                minutes=completed.minutes,
            )
        )
    return runs


def _training(cfg: SweepCfg, planned: PlannedRun, run_dir: Path) -> TrainCfg:
    """Return the options of the training of a run."""
    shared = {option.name: getattr(cfg, option.name) for option in fields(TrainCfg)}
    # If the sweep sets a whole section such as "costs", and a change sets a path below it, the
    # section is set first. Set later, it would overwrite the path.
    wholes = {}
    for path, value in planned.changes.items():
        if any(given.startswith(f"{path}.") for given in cfg.changes):
            wholes[path] = value
    return replace(
        TrainCfg(**shared),
        seed=planned.seed,
        run_dir=run_dir,
        threads=cfg.cpus_per_run,
        changes={**wholes, **cfg.changes, **planned.changes},
    )


def write_runs(folder: Path, task_id: str, runs: Sequence[TrialRun]) -> None:
    """Write the runs of a sweep into its folder."""
    write_json(folder / SWEEP, {"task_id": task_id, "runs": runs})


def read_runs(cfg: SweepCfg) -> list[TrialRun]:
    """Return the runs of the sweep to resume.

    Args:
        cfg: Options of the sweep, with ``resume``.

    Raises:
        FileNotFoundError: If there is no sweep in the folder.
        ValueError: If the sweep is of another task, was moved, or an option is given that it has
            already.
    """
    assert cfg.resume is not None
    file = cfg.resume / SWEEP
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no sweep in {str(cfg.resume)!r} to resume: it has no {SWEEP}"
        )
    _check_nothing_new(cfg)
    sweep: dict[str, Any] = json.loads(file.read_text())
    if sweep["task_id"] != cfg.task_id:
        raise ValueError(
            f"the sweep in {str(cfg.resume)!r} trains {sweep['task_id']!r}, not {cfg.task_id!r}"
        )
    runs: list[TrialRun] = sweep["runs"]
    begun_in = Path(runs[0]["folder"]).parents[1]
    if begun_in != cfg.resume.resolve():
        raise ValueError(
            f"the sweep in {str(cfg.resume)!r} was started in {str(begun_in)!r}: move it back there"
        )
    return runs


def _check_nothing_new(cfg: SweepCfg) -> None:
    """Raise a ValueError if an option is given that is fixed in a resumed sweep."""
    usual = SweepCfg(cfg.task_id)
    for option in fields(SweepCfg):
        is_given = getattr(cfg, option.name) != getattr(usual, option.name)
        if is_given and option.name not in OPTIONS_OF_RESUME:
            raise ValueError(
                f"--{option.name.replace('_', '-')} is fixed by the sweep that is resumed: leave "
                "it out"
            )
