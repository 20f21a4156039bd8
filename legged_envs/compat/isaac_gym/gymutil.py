"""`isaacgym.gymutil`: command lines and configurations. Drawings have names, but are not drawn."""

import argparse
import math
import os
import re
import sys
from bisect import bisect
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from legged_envs.checks import check_spelling
from legged_envs.compat.isaac_gym import gymapi
from legged_envs.compat.isaac_gym.enums import SimType
from legged_envs.compat.isaac_gym.missing import make_missing_name_error
from legged_envs.compat.isaac_gym.record import Record
from legged_envs.compat.isaac_gym.records import SimParams
from legged_envs.compat.isaac_gym.torch_utils import present_device
from legged_envs.compat.isaac_gym.vectors import Vec3

# A star import brings these modules too, as in Isaac Gym.
__all__ = [
    "AxesGeometry",
    "LineGeometry",
    "WireframeBBoxGeometry",
    "WireframeBoxGeometry",
    "WireframeSphereGeometry",
    "argparse",
    "bisect",
    "draw_line",
    "draw_lines",
    "gymapi",
    "math",
    "np",
    "os",
    "parse_arguments",
    "parse_device_str",
    "parse_sim_config",
    "sys",
]


def parse_device_str(device: str) -> tuple[str, int]:
    """Return type and index of a device: ``("cuda", 1)`` for ``"cuda:1"``.

    On a machine without CUDA, each device is ``("cpu", 0)``.

    Raises:
        ValueError: If there is no such kind of device.
    """
    name = str(device).lower()
    if not re.fullmatch(r"(cpu|cuda|gpu)(:\d+)?", name):
        raise ValueError(f"a device must be 'cpu', 'cuda' or 'cuda:<number>', got {device!r}")
    # Isaac Gym takes gpu for cuda.
    kind, _, number = present_device(name.replace("gpu", "cuda")).partition(":")
    return kind, int(number or 0)


def parse_arguments(
    description: str = "Isaac Gym",
    headless: bool = False,
    no_graphics: bool = False,
    custom_parameters: list[dict[str, Any]] | None = None,
) -> argparse.Namespace:
    """Read the command line. Devices of CUDA become the CPU on a machine without CUDA.

    Args:
        description: Text of ``--help``.
        headless: Add the option ``--headless``.
        no_graphics: Add the option ``--nographics``.
        custom_parameters: Further options: dicts with ``name``, and arguments of ``add_argument``.

    Returns:
        The options, and ``device``, ``use_gpu``, ``use_gpu_pipeline`` and ``physics_engine``.
    """
    parser = argparse.ArgumentParser(description=description)
    if headless:
        parser.add_argument("--headless", action="store_true", help="run without a window")
    if no_graphics:
        parser.add_argument("--nographics", action="store_true", help="run without a window")
    _add_own_options(parser)
    for parameter in custom_parameters or []:
        options = {key: value for key, value in parameter.items() if key != "name"}
        parser.add_argument(parameter["name"], **options)
    args = parser.parse_args()
    if no_graphics and args.nographics:
        args.headless = True
    _replace_missing_devices(args)
    args.sim_device_type, args.compute_device_id = parse_device_str(args.sim_device)
    args.device = args.sim_device_type
    args.use_gpu = args.sim_device_type == "cuda"
    args.use_gpu_pipeline = args.use_gpu and args.pipeline != "cpu"
    args.physics_engine = SimType.SIM_FLEX if args.flex else SimType.SIM_PHYSX
    return args


def _add_own_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sim_device", default="cuda:0", help="device of the tensors: cpu or cuda:<number>"
    )
    parser.add_argument(
        "--pipeline",
        default="gpu",
        type=str.lower,
        choices=("cpu", "gpu", "cuda"),
        help="where tensors are",
    )
    parser.add_argument("--graphics_device_id", type=int, default=0)
    engine_help = "the engine is MuJoCo instead of PhysX; no FleX"
    parser.add_argument("--physx", action="store_true", help=engine_help)
    parser.add_argument("--flex", action="store_true", help=engine_help)
    number_help = "of the engine; only num_threads has an effect"
    parser.add_argument("--num_threads", type=int, default=0, help=number_help)
    parser.add_argument("--subscenes", type=int, default=0, help=number_help)
    parser.add_argument("--slices", type=int, default=0, help=number_help)


def _replace_missing_devices(args: argparse.Namespace) -> None:
    """Replace devices of CUDA by the CPU on a machine without CUDA, and print which."""
    # Codebases add further options that name devices, such as --rl_device.
    for name, value in vars(args).items():
        if not isinstance(value, str) or not re.fullmatch(r"cuda(:\d+)?", value):
            continue
        if present_device(value) == "cpu":
            setattr(args, name, "cpu")
            print(
                f"legged_envs.compat.isaac_gym: --{name}={value} is the CPU on this machine",
                file=sys.stderr,
            )


def parse_sim_config(config: Mapping[str, Any], params: SimParams) -> None:
    """Write a configuration into parameters.

    Args:
        config: A dict, or ``vars`` of a class. Its parts are dicts or classes too. Names that Isaac
            Gym does not have are ignored.
        params: The parameters.

    Raises:
        ValueError: If a name is nearly one of Isaac Gym's.
    """
    # Other names are ignored, so a typo would be lost without a word.
    check_spelling("the sim config", config, SimParams.FIELDS)
    # All is written to a copy first, so that a refused configuration changes nothing.
    parsed = params.copy()
    for name, value in config.items():
        if name == "gravity":
            parsed.gravity = value if isinstance(value, Vec3) else Vec3(*value)
        elif name in ("physx", "flex"):
            _parse_part(value, getattr(parsed, name))
        elif name in SimParams.FIELDS:
            setattr(parsed, name, value)
    for name in SimParams.FIELDS:
        setattr(params, name, getattr(parsed, name))


def _parse_part(config: object, part: Record) -> None:
    """Write a part of a configuration, a dict or a class, into its record."""
    values = config if isinstance(config, Mapping) else vars(config)
    for name in part.FIELDS:
        if name in values:
            setattr(part, name, values[name])


def draw_lines(*args: object, **kwargs: object) -> None:
    """Do nothing: no lines are drawn."""


def draw_line(*args: object, **kwargs: object) -> None:
    """Do nothing: no lines are drawn."""


class LineGeometry:
    """Lines that are not drawn."""

    def __init__(self, *args: object, **kwargs: object) -> None: ...


class AxesGeometry(LineGeometry):
    """Axes that are not drawn."""


class WireframeBBoxGeometry(LineGeometry):
    """A box of two corners that is not drawn."""


class WireframeBoxGeometry(LineGeometry):
    """A box that is not drawn."""


class WireframeSphereGeometry(LineGeometry):
    """A sphere that is not drawn."""


def __getattr__(name: str) -> NoReturn:
    raise make_missing_name_error(f"gymutil.{name}")
