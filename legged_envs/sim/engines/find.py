"""Finds physics engines by name, of this package or of other packages, and makes simulations."""

import pkgutil
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points
from inspect import signature
from typing import TYPE_CHECKING

import torch

from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.cfg import SceneCfg, SimCfg
from legged_envs.sim.render.errors import rendering_error
from legged_envs.sim.simulation import Simulation

if TYPE_CHECKING:
    import mujoco

Engine = Callable[..., Simulation]
"""Type of a constructor of simulations: ``constructor(robot, cfg, num_envs, device)``.

It also has the parameter ``scene`` if the engine supports terrain, further robots or objects.
"""
ENGINES: dict[str, str | Engine] = {
    "mujoco": "legged_envs.sim.engines.mujoco:MujocoSimulation",
    "mujoco_warp": "legged_envs.sim.engines.mujoco_warp:WarpSimulation",
    "genesis": "legged_envs.sim.engines.genesis:GenesisSimulation",
}
"""Engines of this package by name: a constructor, or ``"module:name"``, which is imported when the
engine is first used. docs/engines.md describes what an engine must implement. Engines of other
packages are found by their entry points in the group ``legged_envs.engines``."""
EXTRAS = {"mujoco_warp": "warp", "genesis": "genesis"}
"""Names of engines with further requirements, and the extra of this package that installs each."""


def known_engines() -> dict[str, str | Engine]:
    """Return all known engines by name: `ENGINES` and the engines of other installed packages.

    The libraries that an engine needs are not checked.
    """
    known = dict(ENGINES)
    for entry in entry_points(group="legged_envs.engines"):
        # Another package cannot replace an engine of this one.
        known.setdefault(entry.name, entry.value)
    return known


def find_engine(name: str) -> Engine:
    """Return the constructor of an engine by its name, such as ``"mujoco"``.

    Raises:
        ValueError: There is no engine with this name.
        ModuleNotFoundError: The engine is not installed. The message has the pip command.
        ImportError: The file of the engine cannot be imported.
        RuntimeError: MuJoCo cannot be imported, because OpenGL does not load.
    """
    # Entry points are read only if they are needed, because this takes a while.
    known = ENGINES if name in ENGINES else known_engines()
    if name not in known:
        raise ValueError(
            f"unknown simulation engine sim={name!r}; available: {', '.join(map(repr, known))}"
        )
    engine = known[name]
    if not isinstance(engine, str):
        return engine
    try:
        return pkgutil.resolve_name(engine)
    except ModuleNotFoundError as error:
        command = f": pip install 'legged-envs[{EXTRAS[name]}]'" if name in EXTRAS else ""
        raise ModuleNotFoundError(
            f"sim={name!r} is not installed: {error}{command}", name=error.name
        ) from error
    except (AttributeError, ImportError, OSError, RuntimeError) as error:
        # MuJoCo loads OpenGL when it is imported.
        if "mujoco" not in sys.modules:
            raise rendering_error("MuJoCo cannot be imported", error) from error
        raise ImportError(
            f"sim={name!r} cannot be imported from {engine!r}: {error}", name=name
        ) from error


def find_device(device: str | torch.device) -> torch.device:
    """Return a PyTorch device by its name, such as ``"cpu"`` or ``"cuda:0"``.

    Raises:
        ValueError: PyTorch knows no device with this name.
    """
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
    """Make a simulation of many environments on a physics engine.

    Args:
        engine: Name of the engine, such as ``"mujoco"``. `known_engines` has all of them.
        robot: First robot of the scene.
        cfg: Physics settings.
        num_envs: Number of environments.
        device: Device of PyTorch, such as ``"cpu"`` or ``"cuda:0"``.
        scene: Other robots, objects and ground. None: one robot on a plane.

    Raises:
        ValueError: A configuration, the engine's name or the device is wrong. Or the engine cannot
            run on the device or does not support a part of the scene. Or the gains of a robot do
            not hold its default pose.
        ModuleNotFoundError: The engine is not installed.
        ImportError: The file of the engine cannot be imported.
    """
    cfg.check()
    scene = scene or SceneCfg()
    scene.check()
    torch_device = find_device(device)
    constructor = find_engine(engine)
    parts = _parts_of(scene)
    if parts:
        if "scene" not in signature(constructor).parameters:
            raise ValueError(
                f"sim={engine!r} has one robot on a plane: SceneCfg must be as it is, got "
                f"{', '.join(parts)}"
            )
        # Engines for one robot on a plane may have no parameter ``scene``.
        constructor = partial(constructor, scene=scene)
    sim = constructor(robot, cfg, num_envs, torch_device)
    # These modules import MuJoCo, which should not be loaded before an engine is made.
    from legged_envs.sim.gains import check_gains
    from legged_envs.sim.scene import build_scene

    for each in sim.robots.values():
        check_gains(each.robot)
    terrain = None if sim.ground is None else sim.ground.terrain

    def compile_with(appearance: str) -> "mujoco.MjModel":
        return build_scene(robot, cfg, scene, terrain, appearance)

    # An engine may have a renderer of another kind, or none.
    renderer = vars(sim).get("_renderer")
    if renderer is not None:
        renderer.compile_with = compile_with
    return sim


def _parts_of(scene: SceneCfg) -> list[str]:
    """Return the fields of a scene that differ from one robot on a plane."""
    default = vars(SceneCfg())
    return [name for name, value in vars(scene).items() if value != default[name]]
