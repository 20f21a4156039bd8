"""Checks of files, folders, ports and installed modules that a command line option needs.

They run before any slow work, so that a mistake in an option is reported at once.
"""

import os
import socket
import sys
import warnings
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from legged_envs.checks import check_choice, whole_number


def check_inputs(option: str, paths: Iterable[Path]) -> None:
    """Check that all files that an option names exist.

    Args:
        option: Name of the option that gave the paths, for the error.
        paths: Paths of the files.

    Raises:
        FileNotFoundError: If a path is not a file.
    """
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(
                f"{option} must name a file, and there is none at {str(path)!r}"
            )


def check_output(
    option: str, path: Path | None, kind: str = "file", endings: tuple[str, ...] = ()
) -> None:
    """Check that the file or folder that an option names can be written.

    Args:
        option: Name of the option that gave the path, for the error.
        path: Path to write to. Its parent folders may be missing. None: nothing is checked.
        kind: ``"file"`` or ``"folder"``.
        endings: Allowed suffixes of a file, such as ``(".png",)``. Empty: any suffix.

    Raises:
        ValueError: If the suffix is not allowed, or the file or folder cannot be written.
    """
    if path is None:
        return
    if endings:
        check_choice(f"the ending of {option}", path.suffix, endings)
    if not _can_write(path.absolute(), kind):
        raise ValueError(f"{option} must name a {kind} that can be written, got {str(path)!r}")


def _can_write(path: Path, kind: str) -> bool:
    nearest = path
    while not nearest.exists():
        nearest = nearest.parent
    # Missing folders are made inside of the nearest existing folder.
    needs_folder = kind == "folder" or nearest != path
    return nearest.is_dir() == needs_folder and os.access(nearest, os.W_OK)


def check_installed(*modules: str, extra: str = "train") -> None:
    """Check that optional Python modules are installed.

    Args:
        modules: Names of the modules.
        extra: Extra of this package that installs them, for the pip command in the error.

    Raises:
        ModuleNotFoundError: If some are missing. The message has their names and the pip command
            that installs them.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"there is no module {', '.join(missing)}: pip install 'legged-envs[{extra}]'"
        )


def has_display() -> bool:
    """Return True if this machine can open a window."""
    # macOS and Windows have a display without this variable.
    if sys.platform != "linux":
        return True
    if not os.environ.get("DISPLAY"):
        return False
    # The variable may name a display that is gone, with which MuJoCo's window ends the process.
    import glfw

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bool(glfw.init())


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    # Linux tells them apart from those of the machine, e.g. for taskset and Slurm.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_port(host: str, port: int) -> None:
    """Check that a web page can be served at a port of this machine.

    Args:
        host: Address to serve at, such as ``"127.0.0.1"``.
        port: Port to serve at.

    Raises:
        ValueError: If ``port`` is not a port number, or cannot be bound at ``host``.
    """
    whole_number("--port", port, least=1, most=65535)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ValueError(
                f"cannot serve at {host}, --port {port}: {error}; choose another"
            ) from None


def import_named(module: str, given: str) -> ModuleType:
    """Import the module that a command line argument ``module:Name`` names.

    Args:
        module: Part before the colon.
        given: Whole argument, for the error.

    Raises:
        ValueError: If ``module`` is not the dotted name of a module.
    """
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        raise ValueError(f"before the colon must be the whole name of a module, got {given!r}")
    return import_module(module)
