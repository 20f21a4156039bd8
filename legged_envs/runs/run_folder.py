"""Files of a run folder: options, learning curve, evaluation and a record of each session.

A session is one process that works on the run: the first one starts it, later ones resume it.
"""

import fcntl
import functools
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
"""Name of the file with the options of the training and the configuration of the task."""

CURVE = "curve.jsonl"
"""Name of the file with the learning curve: one line of JSON per update."""

CHECKPOINT = "checkpoint.pt"
"""File name of the latest checkpoint in a run folder."""

EVALUATION = "eval.json"
"""Name of the file with the evaluation of the trained policy."""

ABOUT = "about.json"
"""Name of the file with the sessions of the run: a list of results of
:func:`describe_session`."""

PACKAGES = (
    "mujoco",
    "torch",
    "gymnasium",
    "numpy",
    "rsl-rl-lib",
    "mujoco-warp",
    "warp-lang",
)
"""Names of packages that a session records the versions of, if they are installed."""


def as_json(value: object) -> object:
    """Convert a value that JSON cannot hold: ``default`` of ``json.dumps``.

    Returns:
        Fields by name for a dataclass; the qualified name for a function or class; function and
        arguments of a ``functools.partial``; class and attributes of another object that can be
        called; ``str(value)`` for others.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return vars(value)
    if isinstance(value, functools.partial):
        return {"partial": value.func, "args": value.args, "keywords": value.keywords}
    module = getattr(value, "__module__", "")
    name = getattr(value, "__qualname__", "")
    if callable(value) and module and name:  # not every callable has both
        return f"{module}.{name}"
    if callable(value) and hasattr(value, "__dict__"):
        # The text of such an object has its address, which differs from run to run.
        return {"class": type(value), **vars(value)}
    return str(value)


def write_json(path: Path, values: object) -> None:
    """Write a JSON file, and create its folder if it is missing.

    The replacement is atomic: a concurrent reader finds either the old or the new file, complete.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(values, indent=1, default=as_json) + "\n")
    part.replace(path)


@contextmanager
def lock_run_folder(folder: Path) -> Iterator[None]:
    """Lock a run folder against other trainings until the ``with`` block ends.

    The folder is created if it is missing.

    Raises:
        FileExistsError: If another training has locked it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # The system releases this lock when the process ends in any way, unlike a lock file.
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
    """Return all numbers in nested dicts, named by their path, such as ``costs/foot_slip``.

    Args:
        values: Nested dicts, or in recursive calls a value within them. Values that are not numbers
            are omitted.
        path: Path of ``values``.
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
    """Describe this process, so that the run can be reproduced.

    Args:
        update: Number of updates that the run already has.

    Returns:
        Start time, ``update``, command line, hardware, versions of packages, and Git commits of the
        package and of the working directory. A commit ends with ``-dirty`` if files were changed.
    """
    return {
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "update": update,
        "command": shlex.join([_program(), *sys.argv[1:]]),
        "hardware": _hardware(),
        "versions": _versions(),
        "commits": _commits(),
    }


def _program() -> str:
    """Return the name of the program of this process, without its folder."""
    path = Path(sys.argv[0])
    # `python -m legged_envs` is the same program as legged-envs.
    if path.parts[-2:] == ("legged_envs", "__main__.py"):
        return "legged-envs"
    return path.name


def write_session(folder: Path, update: int) -> None:
    """Write this session into a run folder. A resumed run keeps its earlier sessions.

    Args:
        folder: The run folder.
        update: Number of updates that the run already has.
    """
    path = folder / ABOUT
    sessions = []
    if update and path.is_file():
        sessions = json.loads(path.read_text())
    write_json(path, [*sessions, describe_session(update)])


def _hardware() -> str:
    # Imported here, because a report reads run folders without PyTorch's long import.
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
            # GPU engines are optional.
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
    # Without this test, Git would report the repository that contains the virtual environment.
    if not (folder / ".git").exists() or not shutil.which("git"):
        return ""
    describe = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    command = ["git", "-C", str(folder), *describe]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()
