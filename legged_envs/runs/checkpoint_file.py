"""Writing and reading of checkpoint files.

A checkpoint holds tensors and plain data, so reading an untrusted one executes no code.
"""

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from legged_envs.runs.run_folder import CHECKPOINT as CHECKPOINT
from legged_envs.tables import shorten

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
    "legged_envs.training.learner_options": (
        "AmpCfg",
        "RndCfg",
        "LagrangeCfg",
        "ConstraintCfg",
    ),
    "legged_envs.training.ppo_options": ("PPOCfg",),
    "legged_envs.training.scheme_options": (
        "TSCfg",
        "CTSCfg",
        "EECfg",
        "DreamWaQCfg",
        "HIMCfg",
        "LSTMCfg",
    ),
    "legged_envs.motion_reading": ("MotionReading",),
    # Places of the same classes in earlier versions. Checkpoints name a class by its place.
    "legged_envs.rl.config": _TRAINING_OPTIONS,
    "legged_envs.rl.mimic_config": _MIMIC_OPTIONS,
}
"""Names of the option classes that a checkpoint may hold, by the module that defined them when the
checkpoint was written."""

ENTRY_TYPES: dict[str, tuple[type, ...]] = {
    "task_id": (str,),
    "algorithm": (dict,),
    "iteration": (int,),
    "seconds": (float, int),
    "curve": (list,),
    "time_to_walk": (dict, type(None)),
    "env": (dict,),
    "rng": (torch.Tensor,),
}
"""Types of the entries of a checkpoint. Checkpoints of earlier versions lack some of them."""

# NumPy's type codes of booleans, integers and floats: each has a separate class to allow.
_NUMPY_SCALARS = "?bhilqBHILQefd"

_PLAIN_CLASSES: tuple[Any, ...] = (
    np.ndarray,
    np.dtype,
    # The private function with which NumPy rebuilds an array. Its module differs by version.
    np.zeros(0).__reduce__()[0],
    *(type(np.dtype(kind)) for kind in _NUMPY_SCALARS),
    type(Path()),
    SimpleNamespace,
)
"""Classes of plain data that a checkpoint may hold, in addition to PyTorch's default classes."""


def write_checkpoint(folder: Path, state: dict[str, Any], keep: int | None = None) -> None:
    """Write a checkpoint into a run folder, replacing the latest one.

    The replacement is atomic: a concurrent reader finds either the old or the new file, complete.

    Args:
        folder: The run folder.
        state: State to write, by name. ``iteration`` is the number of updates.
        keep: Number of numbered checkpoints, such as checkpoint_000250.pt, to keep in addition to
            the latest one; older ones are deleted. None or 0: numbered checkpoints are neither
            written nor deleted.
    """
    _write_whole(folder / CHECKPOINT, state)
    if not keep:
        return
    _write_whole(folder / f"checkpoint_{state['iteration']:06d}.pt", state)
    for path in _numbered_checkpoints(folder)[:-keep]:
        path.unlink()


def _write_whole(path: Path, state: dict[str, Any]) -> None:
    # A rename within a folder is atomic; a write is not.
    part = path.with_name(f"{path.name}.tmp")
    try:
        torch.save(state, part)
    except RuntimeError as error:
        # PyTorch does not name the system's error, which is nearly always a full disk.
        part.unlink(missing_ok=True)
        free = shutil.disk_usage(path.parent).free
        raise OSError(
            f"{str(path)!r} cannot be written, its disk has {free / 1e6:.1f} MB free: "
            "make room, and train --resume the run"
        ) from error
    part.replace(path)


def _numbered_checkpoints(folder: Path) -> list[Path]:
    """Return the numbered checkpoints of a folder, oldest first."""
    numbered = []
    for path in folder.glob("checkpoint_*.pt"):
        if path.stem.removeprefix("checkpoint_").isdigit():
            numbered.append(path)
    return sorted(numbered, key=_age_and_name)


def _age_and_name(path: Path) -> tuple[int, str]:
    # By age first: a run that was begun again in the folder has smaller numbers.
    return path.stat().st_mtime_ns, path.name


def checkpoint_file(place: Path) -> Path:
    """Return the path of the checkpoint at ``place``.

    Args:
        place: A checkpoint file, or a run folder, which stands for its latest checkpoint.

    Raises:
        FileNotFoundError: If there is no checkpoint at ``place``.
    """
    path = place if place.is_file() else place / CHECKPOINT
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {str(path)!r} to continue from")
    return path


def read_checkpoint_file(
    place: Path, task_id: str | None = None, option_classes: Mapping[str, type] | None = None
) -> dict[str, Any]:
    """Read a checkpoint of a training without executing code from the file.

    Args:
        place: A checkpoint file, or a run folder, from which the latest checkpoint is read.
        task_id: Id of the task that the checkpoint must have been trained on. None: any task.
        option_classes: Classes of options to construct, by class name. Options of classes that are
            not in it become a ``SimpleNamespace`` with the same attributes.

    Returns:
        The state that ``legged-envs train`` saved, by name: ``task_id``, ``algorithm`` (state of
        networks and optimizers), ``iteration``, ``cfg`` (options) and others.

    Raises:
        FileNotFoundError: If there is no checkpoint at ``place``.
        ValueError: If the file is damaged, holds anything but plain data, or was trained on
            another task.
    """
    path = checkpoint_file(place)
    _check_not_packed(path)
    try:
        with torch.serialization.safe_globals(_readable_classes(option_classes or {})):
            state = torch.load(path, weights_only=True)
    # Of any kind: a damaged file makes PyTorch raise nearly every type of error.
    except Exception as error:
        raise ValueError(
            f"{str(path)!r} is not a checkpoint that this version can read safely: "
            f"{_reason_of_load_error(error)}"
        ) from error
    if not isinstance(state, dict) or "task_id" not in state or "algorithm" not in state:
        raise ValueError(
            f"{str(path)!r} is not a checkpoint of legged-envs train: "
            "it has no task_id and algorithm"
        )
    for name, kinds in ENTRY_TYPES.items():
        if name in state and not isinstance(state[name], kinds):
            raise ValueError(
                f"{name} of the checkpoint {str(path)!r} must be a {kinds[0].__name__}, "
                f"got {shorten(repr(state[name]), 100)}; take another checkpoint"
            )
    if task_id is not None and _name_of(state["task_id"]) != _name_of(task_id):
        raise ValueError(
            f"{str(path)!r} is a checkpoint of {state['task_id']!r}, not of {task_id!r}"
        )
    return state


def _check_not_packed(path: Path) -> None:
    """Raise a ValueError if a checkpoint unpacks to more bytes than it has.

    PyTorch does not compress what it writes. A stranger's file of a megabyte could fill the memory.
    """
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    size = path.stat().st_size
    if unpacked > size:
        raise ValueError(
            f"{str(path)!r} has {size:,} bytes and unpacks to {unpacked:,}: it is not a checkpoint "
            "as legged-envs train writes it"
        )


def _readable_classes(option_classes: Mapping[str, type]) -> list[Any]:
    readable = list(_PLAIN_CLASSES)
    for module, names in OPTION_CLASSES.items():
        for name in names:
            # A pair of a class and a name lets the file refer to the class by that name.
            readable.append((option_classes.get(name, SimpleNamespace), f"{module}.{name}"))
    return readable


def _reason_of_load_error(error: Exception) -> str:
    """Return the line of PyTorch's error that names a forbidden class, or its first line."""
    lines = (str(error) or type(error).__name__).split("\n")
    for line in lines:
        if "GLOBAL" in line:
            return line
    return lines[0]


def _name_of(task_id: str) -> str:
    """Return the registered id of ``module:Id``."""
    return task_id.split(":")[-1]
