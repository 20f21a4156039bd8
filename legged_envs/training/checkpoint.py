"""Which run folder a training writes to, and which checkpoint it continues from."""

import datetime
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from legged_envs.runs.checkpoint_file import CHECKPOINT, read_checkpoint_file
from legged_envs.system_checks import check_output
from legged_envs.training.mimic_options import (
    AmpCfg,
    DaggerCfg,
    LagrangeCfg,
    MimicDistillationCfg,
    MimicPPOCfg,
    RndCfg,
)
from legged_envs.training.options import PPOCfg, TrainCfg

FREE_OPTIONS = (
    "minutes",
    "iterations",
    "threads",
    "checkpoint_minutes",
    "keep",
    "episodes",
    "video",
    "video_seconds",
    "tracker",
)
"""Options that may differ from those of a run to resume, as may the folders."""

OPTION_CLASSES: dict[str, type] = {
    "TrainCfg": TrainCfg,
    "PPOCfg": PPOCfg,
    "MimicPPOCfg": MimicPPOCfg,
    "MimicDistillationCfg": MimicDistillationCfg,
    "AmpCfg": AmpCfg,
    "DaggerCfg": DaggerCfg,
    "RndCfg": RndCfg,
    "LagrangeCfg": LagrangeCfg,
}
"""Name → class of the options that a checkpoint holds."""

MINUTES_TOLERANCE = 0.99
"""Share of the minutes that a run has behind it which may be asked for again: the last update ends
a little late."""


def read_checkpoint(place: Path, task_id: str | None = None) -> dict[str, Any]:
    """Read a checkpoint and build the options of its run.

    Args:
        place: The file itself, or a run folder.
        task_id: Id of the task that the checkpoint must be of. None: of any task.

    Raises:
        FileNotFoundError: If there is no checkpoint.
        ValueError: If the file is damaged, holds anything but plain data, or is a checkpoint of
            another task.
    """
    return read_checkpoint_file(place, task_id, OPTION_CLASSES)


def run_folder(cfg: TrainCfg) -> Path:
    """Return the folder that a run is written to.

    Raises:
        FileExistsError: If there is another run in it.
        ValueError: If it cannot be written.
    """
    folder = _requested_folder(cfg)
    is_resumed = cfg.resume is not None and folder.resolve() == cfg.resume.resolve()
    if (folder / CHECKPOINT).exists() and not is_resumed:
        raise FileExistsError(
            f"there is a run in {str(folder)!r}: choose another --run-dir, or --resume it"
        )
    check_output("--run-dir", folder, "folder")
    return folder


def _requested_folder(cfg: TrainCfg) -> Path:
    if cfg.run_dir is not None:
        return cfg.run_dir
    # A run that continues from a numbered checkpoint, a file, gets a new folder.
    if cfg.resume is not None and not cfg.resume.is_file():
        return cfg.resume
    task_name = cfg.task_id.split("/")[-1].split(":")[-1]
    return Path("runs", task_name, f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}")


def resolve_resume(cfg: TrainCfg) -> tuple[TrainCfg, dict[str, Any] | None]:
    """Return the options of a run, and the checkpoint that it continues from.

    Options that were given, which differ from their defaults, replace those of the run to resume
    where they may.

    Args:
        cfg: The options as given.

    Returns:
        The options as given and None for a new run. The options of the run and its checkpoint if
        ``cfg.resume`` is set.

    Raises:
        FileNotFoundError: If there is no checkpoint to resume.
        ValueError: If an option was given that defines the run and is not the run's, or the run
            already has what is asked for.
    """
    if cfg.resume is None:
        return cfg, None
    # The last checkpoint of a folder stands for the folder.
    resume = cfg.resume.parent if cfg.resume.name == CHECKPOINT else cfg.resume
    cfg = replace(cfg, resume=resume)
    checkpoint = read_checkpoint(resume, cfg.task_id)
    if "cfg" not in checkpoint:
        raise ValueError(
            f"the checkpoint {str(resume)!r} is of an older version, which did not write the "
            "options of its run, and cannot be resumed; --warm-start begins a new run with its "
            "networks"
        )
    usual = TrainCfg(cfg.task_id)
    given = _given_free_options(cfg, usual)
    if "minutes" in given:
        # The updates of the run would hide the time that is asked for.
        given.setdefault("iterations", None)
    _check_continues(checkpoint, given)
    merged = replace(checkpoint["cfg"], run_dir=cfg.run_dir, resume=resume, **given)
    _check_same(cfg, merged, usual)
    return merged, checkpoint


def _given_free_options(cfg: TrainCfg, usual: TrainCfg) -> dict[str, Any]:
    given = {}
    for name in FREE_OPTIONS:
        value = getattr(cfg, name)
        if value != getattr(usual, name):
            given[name] = value
    return given


def _check_continues(checkpoint: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Check that a run is asked for more updates or minutes than it has."""
    done = checkpoint["iteration"]
    minutes = checkpoint["seconds"] / 60.0
    iterations = given.get("iterations")
    too_few_updates = iterations is not None and iterations < done
    too_few_minutes = "minutes" in given and given["minutes"] < MINUTES_TOLERANCE * minutes
    if too_few_updates or too_few_minutes:
        raise ValueError(
            f"--iterations and --minutes are those of the whole run, which has {done} and "
            f"{minutes:.1f} behind it: give more, or nothing to continue as begun"
        )


def _check_same(given: Any, run: Any, default: Any, prefix: str = "--") -> None:
    """Check that every option that was given is the run's.

    Args:
        given: Options as given.
        run: Options of the run.
        default: Options as they are when they are not given.
        prefix: What stands before the name of an option in an error.
    """
    for field in fields(given):
        asked = getattr(given, field.name)
        has = getattr(run, field.name)
        usual = getattr(default, field.name)
        option = prefix + field.name.replace("_", "-")
        if is_dataclass(asked) and type(asked) is type(has):
            if usual is None:
                options_class: Any = type(asked)
                usual = options_class()
            # The options of an algorithm stand on the command line without a name before them.
            _check_same(asked, has, usual, prefix if field.name == "algo" else f"{option}.")
        elif asked not in (has, usual):
            raise ValueError(
                f"{option} is {has} in the run to resume, got {asked}; leave it out, or train anew"
            )


def check_changes(changes: Any, path: str = "changes") -> None:
    """Check that a checkpoint can hold the changes to a task.

    Args:
        changes: The changes, or a value within them.
        path: Place of ``changes`` within all of them, for the error.

    Raises:
        ValueError: If a value is anything but plain data.
    """
    if isinstance(changes, dict):
        for key, value in changes.items():
            check_changes(value, f"{path}[{key!r}]")
    elif isinstance(changes, (list, tuple)):
        for i, value in enumerate(changes):
            check_changes(value, f"{path}[{i!r}]")
    elif type(changes) not in (str, int, float, bool, type(None)):
        raise ValueError(
            f"{path} = {changes!r}: changes must be values that a checkpoint can hold, which are "
            "numbers, strings, None, and tuples, lists and dicts of these; for functions and "
            "objects, register a task of your own"
        )
