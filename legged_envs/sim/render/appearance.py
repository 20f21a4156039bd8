"""Draws robots with the detailed meshes of another model instead of their primitive shapes."""

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
"""Robots of this package, as ``RobotCfg.xml`` without its ending, and their models in
mujoco_menagerie."""
PREFIX = "appearance/"
"""Beginning of the names of shapes, meshes and materials that an appearance adds to a model."""
HIDDEN_GROUP = 4
"""Number of the geom group of shapes that are not drawn: the robot's own primitive shapes."""
FIRST_COLLISION_GROUP = 3
"""Lowest number of the geom groups with collision shapes in models of mujoco_menagerie.

Shapes in lower groups are drawn.
"""


def find_appearance(robot: RobotCfg, appearance: str) -> Path:
    """Return the path of the MJCF file with the appearance of a robot.

    Args:
        robot: Robot that is drawn.
        appearance: Value of ``ViewerCfg.appearance``: ``"menagerie"`` or the path of a file. With
            ``"menagerie"`` the file is in the checkout of mujoco_menagerie at the path in the
            environment variable MENAGERIE_ROOT. Without the variable, the package
            mujoco-menagerie downloads the robot's model once.

    Raises:
        ValueError: mujoco_menagerie does not have the robot.
        ModuleNotFoundError: There is neither a checkout nor the package mujoco-menagerie.
        RuntimeError: The package cannot download the model.
        FileNotFoundError: The file does not exist.
    """
    path = _find_in_menagerie(robot) if appearance == "menagerie" else Path(appearance)
    if not path.is_file():
        raise FileNotFoundError(
            f"appearance {appearance!r} of robot {robot.name!r}: there is no file {path}; "
            "appearance is 'menagerie', from MENAGERIE_ROOT if that is set, or an MJCF file"
        )
    return path


def _find_in_menagerie(robot: RobotCfg) -> Path:
    model = Path(robot.xml).stem
    check_known(
        f"robot {robot.name!r}: mujoco_menagerie has no",
        (model,),
        MENAGERIE,
        "an appearance can also be an MJCF file; robots",
    )
    path = Path(MENAGERIE[model])
    root = os.environ.get("MENAGERIE_ROOT")
    if root:
        return Path(root) / path
    if find_spec("mujoco_menagerie") is None:
        raise ModuleNotFoundError(
            f"appearance 'menagerie' of robot {robot.name!r} needs mujoco_menagerie: "
            "pip install mujoco-menagerie, or set MENAGERIE_ROOT to a git checkout of it"
        )
    import mujoco_menagerie

    folder = path.parts[0]
    try:
        return mujoco_menagerie.get(folder).path() / path.name
    except mujoco_menagerie.MenagerieError as error:
        raise RuntimeError(f"mujoco_menagerie does not give {folder!r}: {error}") from error


def dress(spec: mujoco.MjSpec, robot: RobotCfg, appearance: str) -> None:
    """Add the visual shapes of an appearance to a robot's model, and hide its own shapes.

    A shape is added to the robot's body with the same name as the shape's body in the appearance.
    If the robot has no such body, it is added to the nearest parent body that the robot has. With
    all joints at 0 the shape is at the same place as in the appearance. Names of bodies, and joint
    axes, must be the same in both models.

    Args:
        spec: Model of the robot, changed in place.
        robot: Configuration of the robot.
        appearance: ``"menagerie"`` or the path of an MJCF file, see `find_appearance`.

    Raises:
        ValueError: The appearance lacks a body or a mesh, or the menagerie does not have the robot.
        ModuleNotFoundError: There is neither a checkout of the menagerie nor the package.
        RuntimeError: The package cannot download the model.
        FileNotFoundError: The file does not exist.
    """
    path = find_appearance(robot, appearance)
    try:
        look = mujoco.MjSpec.from_file(str(path))
        look_model = look.compile()
    except ValueError as error:
        raise ValueError(
            f"appearance {str(path)!r}: {shorten(str(error), 200)}; bring what it names, meshes "
            "and textures, with the file: whole folders of mujoco_menagerie"
        ) from error
    # Before anything is added: its poses are the robot's only.
    own_model = spec.compile()
    _check_bodies(own_model, look_model, f"robot {robot.name!r}: appearance {str(path)!r}")
    for geom in spec.body(robot.base_body).find_all("geom"):
        geom.group = HIDDEN_GROUP
    _attach_assets(spec, look)
    body_poses = _body_poses(own_model, robot.base_body)
    geom_poses = _geom_poses(look_model, robot.base_body)
    does_not_collide = (look_model.geom_contype | look_model.geom_conaffinity) == 0
    is_shown = look_model.geom_group < FIRST_COLLISION_GROUP
    for geom in np.flatnonzero(does_not_collide & is_shown):
        holder = _find_holder(spec, look_model, int(look_model.geom_bodyid[geom]))
        if holder is not None:
            pose = np.linalg.inv(body_poses[own_model.body(holder).id]) @ geom_poses[geom]
            _add_shape(spec.body(holder), look_model, geom, pose)


def _check_bodies(own: mujoco.MjModel, look: mujoco.MjModel, subject: str) -> None:
    """Raise a ValueError unless an appearance has every body of the robot that a joint moves."""
    known = [look.body(i).name for i in range(1, look.nbody)]
    for i in np.flatnonzero(own.body_jntnum > 0):
        check_known(f"{subject} has no body", (own.body(i).name,), known, "bodies")


def _attach_assets(spec: mujoco.MjSpec, look: mujoco.MjSpec) -> None:
    """Add the meshes, textures and materials of an appearance, which loses all other parts."""
    world = look.worldbody
    for part in (*world.bodies, *world.geoms, *look.keys, *look.lights, *look.cameras):
        look.delete(part)
    # Otherwise MuJoCo warns about differences.
    look.option = spec.option
    # Threads load the meshes.
    spec.compiler.usethread = True
    spec.attach(look, frame=spec.worldbody.add_frame(), prefix=PREFIX)


def _find_holder(spec: mujoco.MjSpec, look: mujoco.MjModel, body: int) -> str | None:
    """Return the nearest body above, or ``body`` itself, that the robot has; None: the world."""
    while body != 0:
        name = look.body(body).name
        if spec.body(name) is not None:
            return str(name)
        body = int(look.body_parentid[body])
    return None


def _add_shape(body: mujoco.MjsBody, look: mujoco.MjModel, geom: np.intp, pose: np.ndarray) -> None:
    """Add a shape of an appearance to a body, at a pose (4, 4) in the frame of the body."""
    mesh = int(look.geom_dataid[geom])
    mesh_name = ""
    if mesh >= 0:
        mesh_name = PREFIX + look.mesh(mesh).name
        # The compiler has moved the mesh to its centre and turned it to its principal axes.
        moved = _pose(look.mesh_pos[mesh], _matrix_of(look.mesh_quat[mesh]))
        # Here the mesh is added as in its file, and moved again by the next compilation.
        pose = pose @ np.linalg.inv(moved)
    material = int(look.geom_matid[geom])
    material_name = ""
    if material >= 0:
        material_name = PREFIX + look.mat(material).name
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, pose[:3, :3].ravel())
    body.add_geom(
        type=look.geom_type[geom],
        size=look.geom_size[geom],
        pos=pose[:3, 3],
        quat=quat,
        rgba=look.geom_rgba[geom],
        meshname=mesh_name,
        material=material_name,
        contype=0,
        conaffinity=0,
        group=2,
        mass=0.0,
    )


def _geom_poses(model: mujoco.MjModel, base: str) -> np.ndarray:
    """Return the poses of all shapes in the frame of the base, all joints at 0. (ngeom, 4, 4)."""
    data = _at_zero(model)
    to_base = np.linalg.inv(_pose(data.body(base).xpos, data.body(base).xmat))
    poses = [to_base @ _pose(data.geom_xpos[i], data.geom_xmat[i]) for i in range(model.ngeom)]
    return np.array(poses)


def _body_poses(model: mujoco.MjModel, base: str) -> np.ndarray:
    """Return the poses of all bodies in the frame of the base, all joints at 0. (nbody, 4, 4)."""
    data = _at_zero(model)
    to_base = np.linalg.inv(_pose(data.body(base).xpos, data.body(base).xmat))
    poses = [to_base @ _pose(data.xpos[i], data.xmat[i]) for i in range(model.nbody)]
    return np.array(poses)


def _at_zero(model: mujoco.MjModel) -> mujoco.MjData:
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return data


def _pose(position: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Return a homogeneous matrix (4, 4) of a position (3,) and a rotation matrix (9,)."""
    pose = np.eye(4)
    pose[:3, :3] = rotation.reshape(3, 3)
    pose[:3, 3] = position
    return pose


def _matrix_of(quat: np.ndarray) -> np.ndarray:
    """Return the rotation matrix (9,) of a quaternion (w, x, y, z)."""
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quat)
    return matrix
