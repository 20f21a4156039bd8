"""What a robot looks like in pictures: the meshes of another model in place of its own primitive shapes."""

import os
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np

from legged_envs.checks import check_known
from legged_envs.robots import RobotCfg
from legged_envs.tables import shorten

MENAGERIE = {
    "a1": "unitree_a1/a1.xml",
    "anymal_c": "anybotics_anymal_c/anymal_c.xml",
    "g1": "unitree_g1/g1.xml",
    "g1_29": "unitree_g1/g1.xml",
    "go1": "unitree_go1/go1.xml",
    "go2": "unitree_go2/go2.xml",
    "h1": "unitree_h1/h1.xml",
    "t1": "booster_t1/t1.xml",
}
"""Model of the package, ``RobotCfg.xml`` without its ending → that of mujoco_menagerie."""
_PREFIX, _HIDDEN = "appearance/", 4
"""Names of what is added begin so; a group of shapes that no picture shows."""


def find_appearance(robot: RobotCfg, appearance: str) -> Path:
    """The MJCF file of ``ViewerCfg.appearance``. That of ``"menagerie"`` is in the checkout that the environment
    variable MENAGERIE_ROOT names, else the package mujoco-menagerie downloads it, once. ValueError if the menagerie has
    no such robot, ModuleNotFoundError, FileNotFoundError or RuntimeError, with what to do, if there is no such file."""
    path = Path(appearance)
    if appearance == "menagerie":
        what = f"robot {robot.name!r}: mujoco_menagerie has no"
        check_known(
            what,
            (Path(robot.xml).stem,),
            MENAGERIE,
            "an appearance can also be an MJCF file; robots",
        )
        path = Path(MENAGERIE[Path(robot.xml).stem])
        if root := os.environ.get("MENAGERIE_ROOT"):
            path = Path(root) / path
        elif find_spec("mujoco_menagerie") is None:
            how = "pip install mujoco-menagerie, or set MENAGERIE_ROOT to a git checkout of it"
            raise ModuleNotFoundError(
                f"appearance 'menagerie' of robot {robot.name!r}: there is none here: {how}"
            )
        else:
            import mujoco_menagerie

            try:
                path = mujoco_menagerie.get(path.parts[0]).path() / path.name
            except mujoco_menagerie.MenagerieError as error:
                raise RuntimeError(
                    f"mujoco_menagerie does not give {path.parts[0]!r}: {error}"
                ) from error
    if not path.is_file():
        how = "appearance is 'menagerie', from MENAGERIE_ROOT if that is set, or an MJCF file"
        raise FileNotFoundError(
            f"appearance {appearance!r} of robot {robot.name!r}: there is no file {path}; {how}"
        )
    return path


def dress(spec: mujoco.MjSpec, robot: RobotCfg, appearance: str) -> None:
    """Show the shapes of ``appearance`` that do not collide in place of those of ``robot``: each moves with the body of
    its body's name, else with that of the nearest body that holds it, and is where it is with all joints at 0. Joints
    and names of bodies must mean the same in both. ValueError if bodies or meshes are missing; otherwise as
    :func:`find_appearance`."""
    path = find_appearance(robot, appearance)
    try:
        look = mujoco.MjSpec.from_file(str(path))
        model = look.compile()
    except ValueError as error:
        how = "bring what it names, meshes and textures, with the file: whole folders of mujoco_menagerie"
        raise ValueError(f"appearance {str(path)!r}: {shorten(str(error), 200)}; {how}") from error
    own, known = spec.compile(), [model.body(i).name for i in range(1, model.nbody)]
    base, moving = spec.body(robot.base_body), own.body_jntnum > 0
    for name in (own.body(i).name for i in np.flatnonzero(moving)):
        check_known(
            f"robot {robot.name!r}: appearance {str(path)!r} has no body", (name,), known, "bodies"
        )
    for geom in base.find_all("geom"):
        geom.group = _HIDDEN
    for part in (
        *look.worldbody.bodies,
        *look.worldbody.geoms,
        *look.keys,
        *look.lights,
        *look.cameras,
    ):
        look.delete(part)
    look.option = spec.option  # else MuJoCo warns about differences
    spec.compiler.usethread = True  # for its meshes
    spec.attach(look, frame=spec.worldbody.add_frame(), prefix=_PREFIX)
    bodies, shapes = (_poses(each, robot.base_body) for each in (own, model))
    for i in np.flatnonzero(
        (model.geom_contype | model.geom_conaffinity == 0) & (model.geom_group < 3)
    ):
        holder = int(model.geom_bodyid[i])
        while holder and spec.body(model.body(holder).name) is None:
            holder = model.body_parentid[holder]
        if holder == 0:  # of the ground
            continue
        pose, mesh = shapes[0][i], int(model.geom_dataid[i])
        if is_mesh := mesh >= 0:  # which the compiler has moved to its centre
            pose = pose @ np.linalg.inv(
                _matrix(model.mesh_pos[mesh], _rotation(model.mesh_quat[mesh]))
            )
        body, material = model.body(holder).name, int(model.geom_matid[i])
        pose, quat = np.linalg.inv(bodies[1][own.body(body).id]) @ pose, np.empty(4)
        mujoco.mju_mat2Quat(quat, pose[:3, :3].ravel())
        spec.body(body).add_geom(
            type=model.geom_type[i],
            size=model.geom_size[i],
            pos=pose[:3, 3],
            quat=quat,
            rgba=model.geom_rgba[i],
            meshname=_PREFIX + model.mesh(mesh).name if is_mesh else "",
            material=_PREFIX + model.mat(material).name if material >= 0 else "",
            contype=0,
            conaffinity=0,
            group=2,
            mass=0.0,
        )


def _poses(model: mujoco.MjModel, base: str) -> tuple[np.ndarray, np.ndarray]:
    """Where shapes and bodies are in the frame of the base with all joints at 0. Shapes: (n, 4, 4)."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    to_base = np.linalg.inv(_matrix(data.body(base).xpos, data.body(base).xmat))
    shapes = [to_base @ _matrix(*each) for each in zip(data.geom_xpos, data.geom_xmat, strict=True)]
    bodies = [to_base @ _matrix(*each) for each in zip(data.xpos, data.xmat, strict=True)]
    return np.array(shapes), np.array(bodies)


def _matrix(position: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation.reshape(3, 3), position
    return pose


def _rotation(quat: np.ndarray) -> np.ndarray:
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quat)
    return matrix
