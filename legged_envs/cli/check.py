"""Implements `legged-envs check`."""

import keyword
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from tyro.conf import Positional, arg

from legged_envs.checks import check_known
from legged_envs.robots import ROBOTS, RobotCfg
from legged_envs.robots.reading.size_limits import check_model_size
from legged_envs.system_checks import check_inputs, check_output, import_named

MODEL_ENDINGS = (".urdf", ".xml", ".mjcf", ".xacro")
"""File name endings of robot descriptions that `legged-envs check` can read."""


@dataclass
class CheckCfg:
    """Options of `legged-envs check`."""

    robot: Annotated[str, Positional, arg(metavar="ROBOT")]
    """The robot to check: a name such as go2, module:NAME of a RobotCfg, or a file: URDF, xacro or
    MJCF."""
    write: Path | None = None
    """Write a Python module, .py, with a draft of a RobotCfg for a URDF or MJCF file. The converted
    model is written next to it. Existing files are not replaced."""


def check(cfg: CheckCfg) -> None:
    """Check a robot: masses, joints, feet, gains and problems.

    The exit status is 0 without problems, 1 with some, and 2 if no robot can be compiled.
    """
    check_output("--write", cfg.write, endings=(".py",))
    if cfg.robot.endswith(MODEL_ENDINGS):
        problems = check_model_file(Path(cfg.robot), cfg.write)
    else:
        problems = check_named_robot(cfg.robot, cfg.write)
    # Mistakes in the options have status 2, so that a script can distinguish the two.
    if problems:
        sys.exit(1)


def check_named_robot(name: str, module_path: Path | None) -> list[str]:
    """Print a report on a robot of Python code, and return its problems.

    Args:
        name: Name of a robot of the package, or module:NAME.
        module_path: The option `--write`, which is only for files.

    Raises:
        ValueError: If no robot has this name, or ``module_path`` is given.
    """
    if module_path is not None:
        check_module_name(module_path)
        raise ValueError(f"--write is for a URDF or MJCF file, got {name!r}")
    # Unknown names are found before MuJoCo is imported.
    robot = find_robot(name)
    from legged_envs.robot_check import Report

    report = Report(robot, {})
    print(report)
    return report.problems


def check_model_file(path: Path, module_path: Path | None) -> list[str]:
    """Print a report on the robot of a URDF or MJCF file, and return its problems.

    Args:
        path: The file.
        module_path: Where to write a module with a first RobotCfg. None: nothing is written.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file describes no robot, or the module or its model exists already.
    """
    # The name of the model's file is also a name in the module.
    stem = (module_path or path).name.removesuffix(".xacro")
    name = _identifier(Path(stem).stem).lower()
    if module_path is not None:
        check_module_name(module_path)
        # Both files are checked before the robot is read, which takes seconds for large meshes.
        check_new(module_path)
        check_new(module_path.with_name(f"{name}.xml"))
    check_inputs("check", [path])
    # Before MuJoCo takes memory for what a stranger's file asks for.
    check_model_size(path)
    from legged_envs.robot_check import Report, raise_gains
    from legged_envs.robots.reading.draft import draft_robot
    from legged_envs.robots.reading.robot_module import format_module

    # Reading writes a model. Without --write nothing of it stays.
    with TemporaryDirectory() as folder:
        robot, gaps = draft_robot(path, name, Path(folder))
        # A file has no gains, or gains of another controller. The report is of a robot that
        # stands.
        robot = raise_gains(robot)
        report = Report(robot, gaps)
        print(report)
    if module_path is not None:
        # After the report: if the robot cannot be compiled, no file is left behind.
        draft_robot(path, name, module_path.parent)
        module_path.write_text(format_module(robot, gaps), encoding="utf-8")
    return report.problems


def _identifier(text: str) -> str:
    """Return a text as a name of Python, with "_" instead of what no name can have."""
    # Some characters that are letters or digits to `\\w`, such as ², cannot stand in a name.
    characters = [char if f"_{char}".isidentifier() else "_" for char in text]
    name = "".join(characters)
    return name if name.isidentifier() else f"_{name}"


def check_module_name(path: Path) -> None:
    """Raise a ValueError if the file of `--write` has a name that Python cannot import."""
    if not path.stem.isidentifier() or keyword.iskeyword(path.stem):
        raise ValueError(f"--write must name a module that Python can import, got {path.name!r}")


def check_new(path: Path) -> None:
    """Raise a ValueError if a file of the option `--write` exists, since nothing is overwritten."""
    if path.exists():
        raise ValueError(
            "--write must name a new module and model, "
            f"{str(path)!r} exists: nothing is overwritten"
        )


def find_robot(name: str) -> RobotCfg:
    """Return the configuration of a robot by its name.

    Args:
        name: Name of a robot of this package (a key of ``ROBOTS``), or module:NAME.

    Raises:
        ValueError: If there is no such robot.
    """
    if ":" not in name:
        known = "robots, in addition to module:NAME and files, .urdf, .xacro or .xml"
        check_known("unknown robot", [name], ROBOTS, known)
        return ROBOTS[name]
    module_name, _, attribute = name.partition(":")
    module = import_named(module_name, name)
    # An error lists only names that would be accepted.
    robots = {}
    for key, value in vars(module).items():
        if isinstance(value, RobotCfg):
            robots[key] = value
    check_known("unknown robot", [attribute], robots, f"robots of {module_name}")
    return robots[attribute]
