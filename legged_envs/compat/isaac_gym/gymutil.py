"""``isaacgym.gymutil``: command lines, configurations, and the names of drawings, which are not drawn."""

import argparse
import re
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from legged_envs.checks import check_spelling
from legged_envs.compat.isaac_gym.missing import make_missing_name_error
from legged_envs.compat.isaac_gym.records import SIM_FLEX, SIM_PHYSX, SimParams, Vec3
from legged_envs.compat.isaac_gym.torch_utils import present_device


def parse_device_str(device: str) -> tuple[str, int]:
    """``"cuda:1"`` → ("cuda", 1), ("cpu", 0) on a machine without CUDA; ValueError for what is no such device."""
    if not re.fullmatch(r"(cpu|cuda|gpu)(:\d+)?", str(device).lower()):
        raise ValueError(f"a device must be 'cpu', 'cuda' or 'cuda:<number>', got {device!r}")
    kind, _, number = present_device(str(device).lower().replace("gpu", "cuda")).partition(":")
    return kind, int(number or 0)


def parse_arguments(
    description: str = "Isaac Gym",
    headless: bool = False,
    no_graphics: bool = False,
    custom_parameters: list[dict[str, Any]] | None = None,
) -> argparse.Namespace:
    """The command line, by Isaac Gym's own options and ``custom_parameters``, dicts with ``name`` and what
    ``add_argument`` takes. Devices of CUDA become the CPU on a machine that has none."""
    parser = argparse.ArgumentParser(description=description)
    for option in ("--headless",) * headless + ("--nographics",) * no_graphics:
        parser.add_argument(option, action="store_true", help="run without a window")
    parser.add_argument(
        "--sim_device", default="cuda:0", help="device of the tensors: cpu or cuda:<number>"
    )
    parser.add_argument(
        "--pipeline", default="gpu", choices=("cpu", "gpu", "cuda"), help="where tensors are"
    )
    parser.add_argument("--graphics_device_id", type=int, default=0)
    for option in ("--physx", "--flex"):
        parser.add_argument(
            option, action="store_true", help="the engine is MuJoCo in place of PhysX; no FleX"
        )
    for option in ("--num_threads", "--subscenes", "--slices"):
        parser.add_argument(
            option, type=int, default=0, help="of the engine; num_threads alone has an effect"
        )
    for parameter in custom_parameters or []:
        parser.add_argument(
            parameter["name"], **{key: parameter[key] for key in parameter if key != "name"}
        )
    args = parser.parse_args()
    for name, value in vars(args).items():
        if (
            isinstance(value, str)
            and re.fullmatch(r"cuda(:\d+)?", value)
            and present_device(value) == "cpu"
        ):
            setattr(args, name, "cpu")
            print(
                f"legged_envs.compat.isaac_gym: --{name}={value} is the CPU on this machine",
                file=sys.stderr,
            )
    args.sim_device_type, args.compute_device_id = parse_device_str(args.sim_device)
    args.device, args.use_gpu = args.sim_device_type, args.sim_device_type == "cuda"
    args.use_gpu_pipeline = args.use_gpu and args.pipeline != "cpu"
    args.physics_engine = SIM_FLEX if args.flex else SIM_PHYSX
    return args


def parse_sim_config(config: Mapping[str, Any], params: SimParams) -> None:
    """Write a configuration to ``params``: a dict, or ``vars`` of a class, where parts are dicts or classes too. Names
    that are not of Isaac Gym are left to others; ValueError for one that is nearly one of them."""
    check_spelling("the sim config", config, SimParams.FIELDS)
    for name, value in config.items():
        if name == "gravity":
            params.gravity = value if isinstance(value, Vec3) else Vec3(*value)
        elif name in ("physx", "flex"):
            part = value if isinstance(value, Mapping) else vars(value)
            for key in params.physx.FIELDS.keys() & part.keys() if name == "physx" else ():
                setattr(params.physx, key, part[key])
        elif name in SimParams.FIELDS:
            setattr(params, name, value)


def draw_lines(*args: Any, **kwargs: Any) -> None:
    """Nothing is drawn, of no shape."""


WireframeBoxGeometry = WireframeSphereGeometry = draw_lines


def __getattr__(name: str) -> NoReturn:
    raise make_missing_name_error(f"gymutil.{name}")
