"""Checkpoint files of a run: tensors and plain data. Reading one runs no code."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

CHECKPOINT = "checkpoint.pt"
"""Name of the last checkpoint in a run folder."""

_TRAINING_OPTIONS = ("TrainCfg", "PPOCfg")
_MIMIC_OPTIONS = (
    "MimicPPOCfg",
    "MimicDistillationCfg",
    "AmpCfg",
    "DaggerCfg",
    "RndCfg",
    "LagrangeCfg",
)

OPTION_CLASSES: dict[str, tuple[str, ...]] = {
    "legged_envs.training.options": _TRAINING_OPTIONS,
    "legged_envs.training.mimic_options": _MIMIC_OPTIONS,
    # Places of the same classes in earlier versions. Checkpoints name a class by its place.
    "legged_envs.rl.config": _TRAINING_OPTIONS,
    "legged_envs.rl.mimic_config": _MIMIC_OPTIONS,
}
"""Module → names of the classes of options that a checkpoint may hold."""

_NUMPY_SCALARS = "?bhilqBHILQefd"

_PLAIN_CLASSES: tuple[Any, ...] = (
    np.ndarray,
    np.dtype,
    np.zeros(0).__reduce__()[0],
    *(type(np.dtype(kind)) for kind in _NUMPY_SCALARS),
    type(Path()),
    SimpleNamespace,
)
"""Classes of plain data that a checkpoint may hold, in addition to those that PyTorch reads by
default."""


def write_checkpoint(folder: Path, state: dict[str, Any], keep: int | None = None) -> None:
    """Write a checkpoint into a run folder.

    A reader finds the old file or the new one, never a part of one.

    Args:
        folder: The run folder.
        state: What to write, with the number of updates under ``iteration``.
        keep: Number of numbered checkpoints to keep. None or 0: no numbered checkpoint is written
            or deleted.
    """
    _write_whole(folder / CHECKPOINT, state)
    if not keep:
        return
    _write_whole(folder / f"checkpoint_{state['iteration']:06d}.pt", state)
    for path in _numbered_checkpoints(folder)[:-keep]:
        path.unlink()


def _write_whole(path: Path, state: dict[str, Any]) -> None:
    part = path.with_name(f"{path.name}.tmp")
    torch.save(state, part)
    part.replace(path)


def _numbered_checkpoints(folder: Path) -> list[Path]:
    """Return the numbered checkpoints of a folder, the one that was written last at the end."""
    numbered = []
    for path in folder.glob("checkpoint_*.pt"):
        if path.stem.removeprefix("checkpoint_").isdigit():
            numbered.append(path)
    return sorted(numbered, key=_age_and_name)


def _age_and_name(path: Path) -> tuple[int, str]:
    return path.stat().st_mtime_ns, path.name


def checkpoint_file(place: Path) -> Path:
    """Return the path of a checkpoint.

    Args:
        place: The file itself, or a run folder.

    Raises:
        FileNotFoundError: If there is no checkpoint.
    """
    path = place if place.is_file() else place / CHECKPOINT
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {str(path)!r} to continue from")
    return path


def read_checkpoint_file(
    place: Path, task_id: str | None = None, option_classes: Mapping[str, type] | None = None
) -> dict[str, Any]:
    """Read a checkpoint.

    Args:
        place: The file itself, or a run folder.
        task_id: Id of the task that the checkpoint must be of. None: of any task.
        option_classes: Name → class of options to build. Options of other classes become a
            ``SimpleNamespace``.

    Raises:
        FileNotFoundError: If there is no checkpoint.
        ValueError: If the file is damaged, holds anything but plain data, or is a checkpoint of
            another task.
    """
    path = checkpoint_file(place)
    try:
        with torch.serialization.safe_globals(_readable_classes(option_classes or {})):
            state = torch.load(path, weights_only=True)
    except Exception as error:  # of any kind, as a damaged file may hold anything
        raise ValueError(
            f"{str(path)!r} is not a checkpoint that this version can read safely: "
            f"{_reason_of_load_error(error)}"
        ) from error
    if not isinstance(state, dict) or "task_id" not in state or "algorithm" not in state:
        raise ValueError(
            f"{str(path)!r} is not a checkpoint of legged-envs train: "
            "it has no task_id and algorithm"
        )
    if task_id is not None and _name_of(state["task_id"]) != _name_of(task_id):
        raise ValueError(
            f"{str(path)!r} is a checkpoint of {state['task_id']!r}, not of {task_id!r}"
        )
    return state


def _readable_classes(option_classes: Mapping[str, type]) -> list[Any]:
    readable = list(_PLAIN_CLASSES)
    for module, names in OPTION_CLASSES.items():
        for name in names:
            # A pair allows a class under the name by which the file knows it.
            readable.append((option_classes.get(name, SimpleNamespace), f"{module}.{name}"))
    return readable


def _reason_of_load_error(error: Exception) -> str:
    """Return the line of PyTorch's long text that names a forbidden class, or else the first
    line."""
    lines = (str(error) or type(error).__name__).split("\n")
    for line in lines:
        if "GLOBAL" in line:
            return line
    return lines[0]


def _name_of(task_id: str) -> str:
    """Return the registered id of ``module:Id``."""
    return task_id.split(":")[-1]
