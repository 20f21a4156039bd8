"""Engines by their names: those of this package, and those of other packages by entry points."""

import pkgutil
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points
from inspect import signature

import torch

from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.cfg import SceneCfg
from legged_envs.sim.simulation import SimCfg, Simulation, rendering_error

Engine = Callable[..., Simulation]
ENGINES: dict[str, str | Engine] = {
    "mujoco": "legged_envs.sim.mujoco_cpu:MujocoSimulation",
    "mujoco_warp": "legged_envs.sim.mujoco_warp:WarpSimulation",
    "genesis": "legged_envs.sim.genesis:GenesisSimulation",
}
"""Engine name → ``constructor(robot, cfg, num_envs, device)``, with ``scene=`` where a scene has more than one robot at
the origin, or where it is to be imported from when it is first used: ``"module:name"``. Entry points of the group
``legged_envs.engines``, of other packages, come on top; docs/engines.md says what an engine must give."""
EXTRAS = {"mujoco_warp": "warp", "genesis": "genesis"}
"""The extra of this package that installs an engine."""


def known_engines() -> dict[str, str | Engine]:
    """``ENGINES`` and those of other packages, whether what they need is installed or not."""
    others = entry_points(group="legged_envs.engines")
    return ENGINES | {entry.name: entry.value for entry in others if entry.name not in ENGINES}


def find_engine(name: str) -> Engine:
    """The constructor of an engine; ValueError if there is none of that name, ModuleNotFoundError, with the pip
    command, if it is not installed, ImportError if its file does not load."""
    known = ENGINES if name in ENGINES else known_engines()
    if name not in known:
        raise ValueError(
            f"unknown simulation engine sim={name!r}; available: {', '.join(map(repr, known))}"
        )
    make = known[name]
    try:
        return pkgutil.resolve_name(make) if isinstance(make, str) else make
    except ModuleNotFoundError as error:
        how = f": pip install 'legged-envs[{EXTRAS[name]}]'" if name in EXTRAS else ""
        raise ModuleNotFoundError(
            f"sim={name!r} is not installed: {error}{how}", name=error.name
        ) from error
    except (AttributeError, ImportError, OSError, RuntimeError) as error:
        if "mujoco" not in sys.modules:  # MuJoCo loads OpenGL when it is imported
            raise rendering_error("MuJoCo cannot be imported", error) from error
        raise ImportError(
            f"sim={name!r} cannot be imported from {make!r}: {error}", name=name
        ) from error


def find_device(device: str | torch.device) -> torch.device:
    """A device of PyTorch by its name; ValueError if there is none of that name."""
    try:
        return torch.device(device)
    except RuntimeError as error:
        raise ValueError(
            f"unknown device {device!r}; expected a torch device such as 'cpu'"
        ) from error


def make_simulation(
    engine: str,
    robot: RobotCfg,
    cfg: SimCfg,
    num_envs: int,
    device: str | torch.device,
    scene: SceneCfg | None = None,
) -> Simulation:
    """``num_envs`` copies of ``robot`` and what else is in ``scene`` on flat ground; ValueError or ModuleNotFoundError
    as :func:`find_engine`, ValueError if the engine is not for ``device`` or lacks what is in ``scene``."""
    cfg.check()
    scene = scene or SceneCfg()
    scene.check()
    torch_device, constructor = find_device(device), find_engine(engine)
    if parts := [name for name, part in vars(scene).items() if part != getattr(SceneCfg(), name)]:
        if "scene" not in signature(constructor).parameters:
            how = "SceneCfg must be as it is"
            raise ValueError(
                f"sim={engine!r} has one robot on a plane: {how}, got {', '.join(parts)}"
            )
        constructor = partial(constructor, scene=scene)
    sim = constructor(robot, cfg, num_envs, torch_device)
    from legged_envs.sim.gains import check_gains  # which needs MuJoCo, as the engines do
    from legged_envs.sim.scene import build_scene

    for each in sim.robots.values():
        check_gains(each.robot)
    if renderer := vars(sim).get("_renderer"):  # an engine may draw in its own way
        renderer.dressed = partial(
            build_scene, robot, cfg, scene, sim.ground and sim.ground.terrain
        )
    return sim
