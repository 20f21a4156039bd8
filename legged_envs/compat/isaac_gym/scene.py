"""The model that all environments of a simulation share, and where each actor is in its arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from legged_envs.compat.isaac_gym.assets import Array, Asset
from legged_envs.compat.isaac_gym.records import (
    HeightFieldParams,
    PlaneParams,
    SimParams,
    TriangleMeshParams,
)
from legged_envs.sim.cfg import SimCfg
from legged_envs.sim.scene import GROUND, add_ground, lay_terrain
from legged_envs.terrains import Terrain

Collisions = tuple[tuple[bool, ...], ...]
"""Whether each actor of an environment touches each, itself among them."""


@dataclass
class Ground:
    """A plane, or a height field where there is ``terrain``."""

    friction: float
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    distance: float = 0.0
    terrain: Terrain | None = None


@dataclass
class Part:
    """One actor's parts of the arrays of a model."""

    bodies: slice
    geoms: Array
    """Shapes that collide."""
    joints: Array
    dofs: slice
    """Among the DOFs of an environment, which are its actuators."""
    floats: bool
    qpos: int
    qvel: int
    mocap: int
    """Whether it has a free joint, where that is, or else its mocap body."""


def plane(params: PlaneParams) -> Ground:
    if not any(params.normal.values):
        raise ValueError("add_ground: the normal of the plane must not be 0")
    return Ground(_friction_of(params), params.normal.values, params.distance)


def height_field(samples: Array, params: HeightFieldParams) -> Ground:
    """Heights as they lie in memory, [x, y], whichever of its axes the caller swapped; ValueError if their number is
    another than ``nbRows`` × ``nbColumns``, or the parameters do not fit."""
    heights = np.asarray(samples)
    heights = (
        heights.T if heights.flags.f_contiguous and not heights.flags.c_contiguous else heights
    )
    if heights.ndim != 2 or sorted(heights.shape) != sorted(
        (int(params.nbRows), int(params.nbColumns))
    ):
        wrong = f"add_heightfield: nbRows={params.nbRows}, nbColumns={params.nbColumns}"
        raise ValueError(
            f"{wrong} must be the two sides of the samples, got an array of shape {heights.shape}"
        )
    if params.row_scale != params.column_scale:
        raise ValueError(
            f"add_heightfield: row_scale={params.row_scale} and column_scale must be equal"
        )
    return _field(heights * params.vertical_scale, params.row_scale, (0.0, 0.0), params)


def triangle_mesh(vertices: Array, triangles: Array, params: TriangleMeshParams) -> Ground:
    """The height field of which ``convert_heightfield_to_trimesh`` made a mesh: MuJoCo's meshes collide as their convex
    hulls. A wall goes over one cell. ValueError for any other mesh."""
    points, cells = np.asarray(vertices, float).reshape(-1, 3), np.size(triangles) // 3
    columns = (
        int(np.max(np.ravel(triangles)[:6], initial=0)) - 1
    )  # the first cell is 0, 1, columns, columns + 1
    rows = len(points) // max(columns, 1)
    if min(rows, columns) > 1 and (rows * columns, 2 * (rows - 1) * (columns - 1)) == (
        len(points),
        cells,
    ):
        x, y, z = points.reshape(rows, columns, 3).transpose(2, 0, 1)
        scale = float(np.median(np.diff(y, axis=1)))
        ideal = (np.arange(rows)[:, None] + 0 * y, np.arange(columns)[None] + 0 * x)
        low = [
            float(np.median(line - scale * grid)) for line, grid in zip((x, y), ideal, strict=True)
        ]
        off = [
            abs(line - a - scale * g).max() for line, a, g in zip((x, y), low, ideal, strict=True)
        ]
        if scale > 0 and max(off) < 1.01 * scale:
            return _field(z, scale, (low[0], low[1]), params)
    wrong = (
        f"add_triangle_mesh: {len(points)} vertices and {cells} triangles are no grid of heights"
    )
    raise ValueError(
        f"{wrong}: give what terrain_utils.convert_heightfield_to_trimesh makes, or use add_heightfield"
    )


def _field(heights: Array, scale: float, low: tuple[float, float], params: Any) -> Ground:
    (x, y, z), turn, name = params.transform.p.values, params.transform.r, type(params).__name__
    if max(abs(turn.x), abs(turn.y), abs(turn.z)) > 1e-6:
        raise ValueError(
            f"{name}.transform.r must be no turn, got {vars(turn)}: turn the heights themselves"
        )
    if not (scale > 0 and np.isfinite(heights).all()):
        raise ValueError(
            f"{name}: heights must be finite and their distances above 0, got scale {scale:g}"
        )
    heights, low = (heights + z).astype(np.float32), (x + low[0], y + low[1])
    terrain = Terrain(heights, scale, low, np.zeros((1, 1, 3), np.float32), ("isaacgym",), 0.0)
    return Ground(_friction_of(params), terrain=terrain)


def _friction_of(params: Any) -> float:
    if params.dynamic_friction < 0:
        name = f"{type(params).__name__}.dynamic_friction"
        raise ValueError(f"{name} must not be negative, got {params.dynamic_friction:g}")
    return params.dynamic_friction


def compile_scene(
    assets: Sequence[Asset],
    collisions: Collisions,
    ground: Ground | None,
    params: SimParams,
    visuals: bool = False,
) -> mujoco.MjModel:
    """The actors on the ground. An actuator per DOF drives it; ``Part`` and parameters say how. Actor i has bit i + 1
    of the contact types, and in its affinities those that it touches; the ground has bit 0."""
    spec, cfg = mujoco.MjSpec(), SimCfg()
    option, step = spec.option, params.dt / params.substeps
    option.timestep, option.iterations, option.ls_iterations = (
        step,
        cfg.iterations,
        cfg.ls_iterations,
    )
    option.integrator, option.cone = (
        mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
        mujoco.mjtCone.mjCONE_PYRAMIDAL,
    )
    option.gravity = params.gravity.values
    add_ground(spec)
    floor = spec.geom(GROUND)
    if ground is None:
        spec.delete(floor)
    elif ground.terrain is not None:
        lay_terrain(spec, ground.terrain)
    else:
        floor.alt.zaxis, floor.pos = ground.normal, -ground.distance * np.array(ground.normal)
    for i, (asset, touched) in enumerate(zip(assets, collisions, strict=True)):
        robot = asset.read(visuals=True) if visuals else asset.spec.copy()
        for geom in robot.geoms:
            if geom.contype or geom.conaffinity:
                geom.contype, geom.conaffinity = (
                    2 << i,
                    1 + sum(2 << j for j, touches in enumerate(touched) if touches),
                )
            geom.priority = 1  # its friction is the average with the ground's
        robot.worldbody.bodies[0].add_site(name="imu")
        spec.attach(robot, frame=spec.worldbody.add_frame(), prefix=f"{i}/")
        for name in asset.dof_names:
            drive = spec.add_actuator(name=f"{i}/{name}", target=f"{i}/{name}", forcelimited=True)
            drive.trntype, drive.biastype = mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtBias.mjBIAS_AFFINE
            drive.forcerange = [-1.0, 1.0]
    for geom in spec.geoms:
        geom.solref, geom.solimp = [max(cfg.solref[0], 2 * step), cfg.solref[1]], cfg.solimp
    # An accelerometer makes the engine evaluate the contact force on every body.
    spec.add_sensor(
        type=mujoco.mjtSensor.mjSENS_ACCELEROMETER,
        objtype=mujoco.mjtObj.mjOBJ_SITE,
        objname="0/imu",
    )
    spec.stat.extent = 2.0
    model = spec.compile()
    model.dof_damping[:], model.jnt_actfrclimited[:] = 0.0, 0  # the drives have them
    model.jnt_limited[model.jnt_type != mujoco.mjtJoint.mjJNT_FREE] = (
        1  # a DOF without limits has the widest range
    )
    return model


def find_parts(model: mujoco.MjModel, assets: Sequence[Asset]) -> list[Part]:
    parts, body, dof = list[Part](), 1, 0
    for asset in assets:
        end, last = body + len(asset.body_names), dof + len(asset.dof_names)
        geoms = np.flatnonzero(
            np.isin(model.geom_bodyid, range(body, end)) & (model.geom_conaffinity > 0)
        )
        joints, floats = (
            np.flatnonzero(np.isin(model.jnt_bodyid, range(body, end))),
            model.body_mocapid[body] < 0,
        )
        root = (
            (int(model.jnt_qposadr[joints[0]]), int(model.jnt_dofadr[joints[0]]))
            if floats
            else (0, 0)
        )
        own = (
            slice(body, end),
            geoms,
            joints[int(floats) :],
            slice(dof, last),
            bool(floats),
            *root,
        )
        parts.append(Part(*own, int(model.body_mocapid[body])))
        body, dof = end, last
    return parts
