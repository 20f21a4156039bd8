"""Checkpoints of a training run: files of tensors and plain data, which run no code when they are read."""

import datetime
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from legged_envs.checks import check_output
from legged_envs.training.mimic_options import AmpCfg, DaggerCfg, LagrangeCfg, RndCfg
from legged_envs.training.options import ALGORITHMS, TrainCfg

CHECKPOINT = "checkpoint.pt"
_FREE_OF_TRAINING = ("minutes", "iterations", "compile", "threads", "checkpoint_minutes", "keep")
FREE = (*_FREE_OF_TRAINING, "episodes", "video", "video_seconds", "tracker")
"""Options that may differ from those of a run to resume, as may the folders."""
_OPTIONS = (TrainCfg, *ALGORITHMS.values(), AmpCfg, DaggerCfg, RndCfg, LagrangeCfg)
_NUMPY = (
    np.ndarray,
    np.dtype,
    np.zeros(0).__reduce__()[0],
    *(type(np.dtype(kind)) for kind in "?bhilqBHILQefd"),
)
_READABLE: list[Any] = [*_OPTIONS, *_NUMPY, type(Path()), SimpleNamespace]
"""What a checkpoint may hold beside tensors, numbers, strings and containers of these."""


def write_checkpoint(folder: Path, state: dict[str, Any], keep: int | None = None) -> None:
    """Write ``state`` in one go: whoever looks finds the file as it was or as it is. With ``keep`` also write one with
    the number of its update, and delete all such but those written last."""
    for name in (CHECKPOINT, f"checkpoint_{state['iteration']:06d}.pt")[: 2 if keep else 1]:
        torch.save(state, folder / f"{name}.tmp")
        (folder / f"{name}.tmp").replace(folder / name)
    numbered = [
        path
        for path in folder.glob("checkpoint_*.pt")
        if path.stem.removeprefix("checkpoint_").isdigit()
    ]
    for path in sorted(numbered, key=lambda path: (path.stat().st_mtime_ns, path.name))[
        : -keep if keep else 0
    ]:
        path.unlink()


def checkpoint_file(place: Path) -> Path:
    """A checkpoint, the file or that in a run folder; FileNotFoundError if there is none."""
    path = place if place.is_file() else place / CHECKPOINT
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {str(path)!r} to go on from")
    return path


def read_checkpoint(place: Path, task_id: str | None = None) -> dict[str, Any]:
    """A checkpoint, the file or that in a run folder; FileNotFoundError or ValueError if there is none, of this task if
    it is given."""
    path = checkpoint_file(place)
    try:
        with torch.serialization.safe_globals(_READABLE):
            state = torch.load(path, weights_only=True)
    except Exception as error:  # of any kind, as a damaged file may hold anything
        text = str(error) or type(error).__name__
        reason = next((line for line in text.splitlines() if "GLOBAL" in line), text.split("\n")[0])
        raise ValueError(
            f"{str(path)!r} is no checkpoint that this version can read safely: {reason}"
        ) from error
    if not isinstance(state, dict) or not {"task_id", "algorithm"} <= state.keys():
        raise ValueError(
            f"{str(path)!r} is no checkpoint of legged-envs train: it has no task_id and algorithm"
        )
    if task_id is not None and state["task_id"].split(":")[-1] != task_id.split(":")[-1]:
        raise ValueError(
            f"{str(path)!r} is a checkpoint of {state['task_id']!r}, not of {task_id!r}"
        )
    return state


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
