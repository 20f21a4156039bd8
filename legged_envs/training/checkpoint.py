"""Which run folder a training writes to, and which checkpoint it continues from."""

import datetime
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from legged_envs.runs.checkpoint_file import CHECKPOINT, read_checkpoint_file
from legged_envs.system_checks import check_output
from legged_envs.training.mimic_options import AmpCfg, DaggerCfg, LagrangeCfg, RndCfg
from legged_envs.training.options import ALGORITHMS, TrainCfg

_FREE_OF_TRAINING = ("minutes", "iterations", "compile", "threads", "checkpoint_minutes", "keep")
FREE = (*_FREE_OF_TRAINING, "episodes", "video", "video_seconds", "tracker")
"""Options that may differ from those of a run to resume, as may the folders."""
OPTION_CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (TrainCfg, *ALGORITHMS.values(), AmpCfg, DaggerCfg, RndCfg, LagrangeCfg)
}
"""Name → class of the options that a checkpoint holds."""


def read_checkpoint(place: Path, task_id: str | None = None) -> dict[str, Any]:
    """Read a checkpoint and build the options of its run.

    Args:
        place: The file itself, or a run folder.
        task_id: Id of the task that the checkpoint must be of. None: of any task.

    Raises:
        FileNotFoundError: If there is no checkpoint.
        ValueError: If the file is damaged, holds anything but plain data, or is a checkpoint of another task.
    """
    return read_checkpoint_file(place, task_id, OPTION_CLASSES)


def run_folder(cfg: TrainCfg) -> Path:
    """Where a run is written; FileExistsError if there is another one, ValueError if it cannot be."""
    usual = Path(
        "runs",
        cfg.task_id.split("/")[-1].split(":")[-1],
        f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}",
    )
    folder = cfg.run_dir or (cfg.resume if cfg.resume and not cfg.resume.is_file() else usual)
    if (folder / CHECKPOINT).exists() and (
        cfg.resume is None or folder.resolve() != cfg.resume.resolve()
    ):
        raise FileExistsError(
            f"there is a run in {str(folder)!r}: choose another --run-dir, or --resume it"
        )
    check_output("--run-dir", folder, "folder")
    return folder


def going_on(cfg: TrainCfg) -> tuple[TrainCfg, dict[str, Any] | None]:
    """The options of the run that ``cfg`` asks for and the checkpoint that it goes on from, None for a new one. A
    ValueError names an option that is given (differs from its default), defines the run and is not the run's."""
    if cfg.resume is None:
        return cfg, None
    resume = cfg.resume.parent if cfg.resume.name == CHECKPOINT else cfg.resume
    cfg, usual = replace(cfg, resume=resume), TrainCfg(cfg.task_id)
    checkpoint = read_checkpoint(resume, cfg.task_id)
    if "cfg" not in checkpoint:
        wrong = f"the checkpoint {str(resume)!r} is of an older version and does not hold the options of its run"
        raise ValueError(
            f"{wrong}, which cannot go on; --warm-start begins a new run with its networks"
        )
    given = {
        name: getattr(cfg, name) for name in FREE if getattr(cfg, name) != getattr(usual, name)
    }
    if "minutes" in given:
        given.setdefault(
            "iterations", None
        )  # those of the run would hide the time that was asked for
    done, minutes = checkpoint["iteration"], checkpoint["seconds"] / 60.0
    if (given.get("iterations") or done) < done or (
        "minutes" in given and given["minutes"] < 0.99 * minutes
    ):
        wrong = f"--iterations and --minutes are those of the whole run, which has {done} and {minutes:.1f} behind it"
        raise ValueError(f"{wrong}: give more, or nothing to go on as begun")
    merged = replace(checkpoint["cfg"], run_dir=cfg.run_dir, resume=resume, **given)
    _check_same(cfg, merged, usual)
    return merged, checkpoint


def _check_same(given: Any, run: Any, default: Any, prefix: str = "--") -> None:
    for name in (f.name for f in fields(given)):
        asked, has, usual = getattr(given, name), getattr(run, name), getattr(default, name)
        option, kind = prefix + name.replace("_", "-"), type(asked)
        if is_dataclass(kind) and kind is type(has):
            _check_same(asked, has, usual or kind(), prefix if name == "algo" else f"{option}.")
        elif asked not in (has, usual):
            raise ValueError(
                f"{option} is {has} in the run to resume, got {asked}; leave it out, or train anew"
            )


def check_changes(changes: Any, path: str = "changes") -> None:
    """Raise a ``ValueError`` that names what a checkpoint could not hold of ``changes`` to a task."""
    if isinstance(changes, (dict, list, tuple)):
        for key, value in changes.items() if isinstance(changes, dict) else enumerate(changes):
            check_changes(value, f"{path}[{key!r}]")
    elif type(changes) not in (str, int, float, bool, type(None)):
        which = "numbers, strings, None, and tuples, lists and dicts of these"
        how = f"which are {which}; for functions and objects, register a task of your own"
        raise ValueError(
            f"{path} = {changes!r}: changes must be values that a checkpoint can hold, {how}"
        )
