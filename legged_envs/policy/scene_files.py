"""Export of the robot and the ground of a task as files that plain MuJoCo reads.

No file contains a path of this machine: meshes, textures and heights lie next to the scene.
"""

import shutil
from pathlib import Path
from typing import Any

import mujoco

from legged_envs.envs.cfg import TaskCfg
from legged_envs.sim.scene import HEIGHTS_FILE, lay_terrain, spec_on_ground
from legged_envs.terrains import Terrain
from legged_envs.terrains.terrain import make_terrain

ASSETS = "assets"
"""Folder of meshes, textures and heights, next to the scene."""


def scene_spec(cfg: TaskCfg, terrain: Terrain | None = None) -> mujoco.MjSpec:
    """Return an uncompiled model of one robot of a task on its ground.

    The model has the actuators, contacts and physics options of the simulation, and the default
    pose as the keyframe `home`.

    Args:
        cfg: The task.
        terrain: Rough ground. None: a plane.
    """
    robot = cfg.robot
    spec = spec_on_ground(robot, cfg.sim)
    base_pose = [0.0, 0.0, robot.base_height, 1.0, 0.0, 0.0, 0.0]
    if terrain is not None:
        lay_terrain(spec, terrain)
        # The middle tile of the first level, where robots start.
        tile = terrain.origins[0, terrain.origins.shape[1] // 2]
        for axis in range(3):
            base_pose[axis] += float(tile[axis])
    spec.add_key(
        name="home",
        qpos=[*base_pose, *robot.default_joint_pos],
        ctrl=robot.default_joint_pos,
    )
    return spec


def write_scene(path: Path, cfg: TaskCfg, torques: bool = False) -> None:
    """Write the first robot of a task on its ground as MJCF, with all files that it needs.

    Args:
        path: File to write. `ASSETS` is made next to it if there are meshes or heights.
        cfg: The task.
        torques: True for motors that take torques, on a plane, for control loops that compute the
            torques of a joint PD themselves.

    Raises:
        ValueError: If the model does not compile. Nothing is written then.
    """
    terrain_cfg = cfg.scene.terrain
    terrain = None if terrain_cfg is None or torques else make_terrain(terrain_cfg)
    spec = scene_spec(cfg, terrain)
    if torques:
        _make_motors(spec)
    # A model that does not compile leaves no files behind.
    spec.compile()
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.parent / ASSETS
    _copy_assets(spec, cfg.robot.path.parent, folder)
    if terrain is not None:
        _write_heights(spec, folder)
    spec.meshdir = ASSETS
    spec.texturedir = ASSETS
    spec.modelfiledir = str(path.parent.absolute())
    # The text of a spec is complete only after it was compiled.
    spec.compile()
    path.write_text(spec.to_xml())


def _make_motors(spec: mujoco.MjSpec) -> None:
    for actuator in spec.actuators:
        actuator.set_to_motor()
    for key in spec.keys:
        key.ctrl = [0.0] * len(spec.actuators)


def _copy_assets(spec: mujoco.MjSpec, model_folder: Path, folder: Path) -> None:
    """Copy the files of meshes and textures, and let the model name the copies."""
    kinds = ((spec.meshes, spec.meshdir), (spec.textures, spec.texturedir))
    for assets, subfolder in kinds:
        for asset in assets:
            if not asset.file:
                continue
            source = model_folder / subfolder / asset.file
            folder.mkdir(exist_ok=True)
            # Files of one name may lie in several folders.
            name = _free_name(folder, source)
            shutil.copyfile(source, folder / name)
            _set_file(asset, name)


def _set_file(asset: Any, name: str) -> None:
    # A mesh without a name is called by its file, which gets another name here.
    if not asset.name:
        asset.name = Path(asset.file).stem
    asset.file = name


def _free_name(folder: Path, source: Path) -> str:
    name = source.name
    number = 1
    while (folder / name).exists() and (folder / name).read_bytes() != source.read_bytes():
        number += 1
        name = f"{source.stem}_{number}{source.suffix}"
    return name


def _write_heights(spec: mujoco.MjSpec, folder: Path) -> None:
    """Write the heights of the ground, which the model has as a file in memory, to a file."""
    folder.mkdir(exist_ok=True)
    assets = dict(spec.assets)
    (folder / HEIGHTS_FILE).write_bytes(assets.pop(HEIGHTS_FILE))
    spec.assets = assets
