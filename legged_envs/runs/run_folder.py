"""Files of a run folder: its options, its curve and how it was made."""

import fcntl
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from legged_envs import __version__

CONFIG = "config.json"
"""File of the options of the training and of the task."""

CURVE = "curve.jsonl"
"""File with a line of JSON for each update."""

EVALUATION = "eval.json"
"""File of the evaluation at the end."""

ABOUT = "about.json"
"""File with a list of sessions from :func:`describe_session`, one for the start and one for each
continuation."""

PACKAGES = (
    "mujoco",
    "torch",
    "gymnasium",
    "numpy",
    "rsl-rl-lib",
    "mujoco-warp",
    "warp-lang",
)
"""Packages that a session lists with their versions, if they are installed."""


def as_json(value: object) -> object:
    """Return the form in which JSON holds a value that it does not know.

    Returns:
        The fields of a configuration, the qualified name of a function, the text of anything else.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return vars(value)
    module = getattr(value, "__module__", "")
    name = getattr(value, "__qualname__", "")
    if callable(value) and module and name:  # not every callable has both
        return f"{module}.{name}"
    return str(value)


def write_json(path: Path, values: object) -> None:
    """Write a JSON file, and its folder if it is missing.

    A reader finds the old file or the new one, never a part of one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(values, indent=1, default=as_json) + "\n")
    part.replace(path)


@contextmanager
def lock_run_folder(folder: Path) -> Iterator[None]:
    """Hold a run folder, which is made if it is missing, until the ``with`` block ends.

    Raises:
        FileExistsError: If another training holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FileExistsError(
                f"another training is writing to {str(folder)!r}: "
                "wait until it is over, or choose another --run-dir"
            ) from error
        yield
    finally:
        os.close(handle)


def flatten_numbers(values: object, path: str = "") -> dict[str, float]:
    """Return the numbers in nested dicts, with names such as ``costs/foot_slip``.

    Args:
        values: The dicts, or a value within them.
        path: Name of ``values``.
    """
    if isinstance(values, dict):
        numbers: dict[str, float] = {}
        for name, value in values.items():
            numbers.update(flatten_numbers(value, f"{path}/{name}".strip("/")))
        return numbers
    if isinstance(values, (int, float)):
        return {path: float(values)}
    return {}


def describe_session(update: int = 0) -> dict[str, Any]:
    """Describe this process: its time, command, hardware, versions and commits.

    Commits are those of a checkout of the package and of the working directory, with ``-dirty`` if
    files differ.

    Args:
        update: Number of the update from which this process continues.
    """
    return {
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "update": update,
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "hardware": _hardware(),
        "versions": _versions(),
        "commits": _commits(),
    }


def _hardware() -> str:
    import torch

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    machine = f"{os.cpu_count()} cores, {memory:.0f} GiB"
    return ", ".join([_processor(), machine, platform.platform(), *gpus])


def _processor() -> str:
    """Return the processor's name on Linux, elsewhere its architecture."""
    file = Path("/proc/cpuinfo")
    if file.exists():
        found = re.search(r"model name\s*: (.+)", file.read_text())
        if found is not None:
            return found[1]
    return platform.machine()


def _versions() -> dict[str, str]:
    versions = {"legged-envs": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _commits() -> dict[str, str]:
    places = {"legged-envs": Path(__file__).parents[2], "working directory": Path.cwd()}
    commits = {}
    for name, place in places.items():
        commit = _commit(place)
        if commit:
            commits[name] = commit
    return commits


def _commit(folder: Path) -> str:
    """Return the commit of a checkout, empty if the folder is not the root of one."""
    # Without this test git would find the repository around a .venv.
    if not (folder / ".git").exists() or not shutil.which("git"):
        return ""
    describe = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    command = ["git", "-C", str(folder), *describe]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()
