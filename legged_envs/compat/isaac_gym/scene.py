"""The model that all environments of a simulation share, and where each actor is in its arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from legged_envs.compat.isaac_gym.assets import Asset
from legged_envs.compat.isaac_gym.ground import Ground
from legged_envs.compat.isaac_gym.mesh_pieces import Piece
from legged_envs.compat.isaac_gym.records import SimParams
from legged_envs.sim.cfg import SimCfg
from legged_envs.sim.scene import GROUND, add_ground, lay_terrain

Collisions = tuple[tuple[bool, ...], ...]
"""True where two actors of an environment collide. One row and one column per actor. The diagonal
is True where parts of one actor collide with each other."""


@dataclass
class Part:
    """Indices of one actor, such as a robot, in the arrays of the MuJoCo model of an
    environment."""

    bodies: slice
    """Indices of the actor's bodies."""
    geoms: np.ndarray
    """Indices of the actor's shapes that collide."""
    joints: np.ndarray
    """Indices of its joints, without the free joint."""
    dofs: slice
    """Indices of its DOFs in the environment, which are also the indices of its actuators."""
    is_free: bool
    """True if its base moves by a free joint, False if the base is fixed by a mocap body."""
    qpos: int
    """Index of the free joint's first position, 0 without a free joint."""
    qvel: int
    """Index of the free joint's first velocity, 0 without a free joint."""
    mocap: int
    """Index of its mocap body, −1 with a free joint."""


def make_scene(
    assets: Sequence[Asset],
    collisions: Collisions,
    ground: Ground | None,
    params: SimParams,
    visuals: bool = False,
) -> mujoco.MjSpec:
    """Return the specification of the actors of one environment and the ground.

    Each DOF has an actuator. Its gains and limits are set later, for each environment.

    Args:
        assets: Robot of each actor.
        collisions: Actors that collide.
        ground: The ground. None: there is no ground.
        params: Parameters of the simulation.
        visuals: Add the shapes that are only seen.
    """
    spec = mujoco.MjSpec()
    cfg = SimCfg()
    timestep = params.dt / params.substeps
    spec.option.timestep = timestep
    spec.option.iterations = cfg.iterations
    spec.option.ls_iterations = cfg.ls_iterations
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    spec.option.gravity = params.gravity.values
    _add_ground(spec, ground)
    for i, asset in enumerate(assets):
        _add_actor(spec, i, asset, collisions[i], visuals)
    for geom in spec.geoms:
        # MuJoCo's contacts are unstable with a time constant below two time steps.
        geom.solref = [max(cfg.solref[0], 2 * timestep), cfg.solref[1]]
        geom.solimp = cfg.solimp
    # An accelerometer makes the engine evaluate the contact force on every body.
    spec.add_sensor(
        type=mujoco.mjtSensor.mjSENS_ACCELEROMETER,
        objtype=mujoco.mjtObj.mjOBJ_SITE,
        objname="0/imu",
    )
    spec.stat.extent = 2.0
    return spec


def compile_scene(spec: mujoco.MjSpec) -> mujoco.MjModel:
    """Return the model of a specification from :func:`make_scene`."""
    model = spec.compile()
    # The actuators have the damping and the limits of effort, which may differ between
    # environments. Joints must not have them again.
    model.dof_damping[:] = 0.0
    model.jnt_actfrclimited[:] = 0
    # Limits can be given to a DOF later only if the engine evaluates limits for it. A DOF without
    # limits has the widest range.
    model.jnt_limited[model.jnt_type != mujoco.mjtJoint.mjJNT_FREE] = 1
    return model


def _add_ground(spec: mujoco.MjSpec, ground: Ground | None) -> None:
    add_ground(spec)
    floor = spec.geom(GROUND)
    if ground is None:
        spec.delete(floor)
    elif ground.terrain is not None:
        if ground.has_plane_too:
            _add_plane(spec, ground)
        lay_terrain(spec, ground.terrain)
        for i, piece in enumerate(ground.pieces):
            _add_piece(spec, i, piece)
    else:
        floor.alt.zaxis = ground.normal
        floor.pos = -ground.distance * np.array(ground.normal)


def _add_plane(spec: mujoco.MjSpec, ground: Ground) -> None:
    """Add a plane under a height field."""
    plane = spec.worldbody.add_geom(name="plane", type=mujoco.mjtGeom.mjGEOM_PLANE)
    plane.size = [0.0, 0.0, 1.0]
    plane.alt.zaxis = ground.normal
    plane.pos = -ground.distance * np.array(ground.normal)


def _add_piece(spec: mujoco.MjSpec, index: int, piece: Piece) -> None:
    """Add a static piece of the ground: a box if it is one, which is faster than a mesh."""
    name = f"ground_piece_{index}"
    box = piece.get_box()
    if box is not None:
        center, half_sides = box
        spec.worldbody.add_geom(
            name=name, type=mujoco.mjtGeom.mjGEOM_BOX, pos=center, size=half_sides
        )
        return
    spec.add_mesh(name=name, uservert=piece.points.ravel())
    spec.worldbody.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name)


def _add_actor(
    spec: mujoco.MjSpec, index: int, asset: Asset, collides: Sequence[bool], visuals: bool
) -> None:
    """Add a robot with an actuator per DOF.

    Bit 0 of the contact types belongs to the ground, bit i + 1 to actor i. The affinity of an
    actor has the bits of all that it collides with.
    """
    # Meshes that are only seen take time to read, so a simulation without pictures has none.
    robot = asset.read(visuals=True) if visuals else asset.spec.copy()
    affinity = 1
    for other, does_collide in enumerate(collides):
        if does_collide:
            affinity += 2 << other
    for geom in robot.geoms:
        if geom.contype or geom.conaffinity:
            geom.contype = 2 << index
            geom.conaffinity = affinity
        # MuJoCo takes the friction of the shape with the higher priority. This one is already the
        # average of the shape's and the ground's.
        geom.priority = 1
    robot.worldbody.bodies[0].add_site(name="imu")
    # The prefix keeps names apart if two actors are of one robot.
    spec.attach(robot, frame=spec.worldbody.add_frame(), prefix=f"{index}/")
    for name in asset.dof_names:
        drive = spec.add_actuator(
            name=f"{index}/{name}", target=f"{index}/{name}", forcelimited=True
        )
        drive.trntype = mujoco.mjtTrn.mjTRN_JOINT
        drive.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        # The compiler refuses an empty range. The limits of the DOF replace this one.
        drive.forcerange = [-1.0, 1.0]


def exclude_contacts(spec: mujoco.MjSpec, index: int, asset: Asset, filters: Sequence[int]) -> None:
    """Exclude contacts between bodies of an actor if their shapes' filters have a bit in common.

    Args:
        spec: Specification of the scene, changed in place.
        index: Index of the actor.
        asset: Robot of the actor.
        filters: Bits of the collision filter of each of its shapes.

    Raises:
        ValueError: If only some shapes of two bodies have a bit in common.
    """
    if not any(filters):
        return
    bits = np.array(filters)
    bodies = np.unique(asset.shape_bodies).tolist()
    for k, first in enumerate(bodies):
        for second in bodies[k + 1 :]:
            own = bits[asset.shape_bodies == first]
            others = bits[asset.shape_bodies == second]
            shared = (own[:, None] & others) != 0
            names = [f"{index}/{asset.body_names[body]}" for body in (first, second)]
            if shared.all():
                spec.add_exclude(bodyname1=names[0], bodyname2=names[1])
            elif shared.any():
                raise ValueError(
                    f"filters of shapes: some shapes of {names[0]!r} and {names[1]!r} have a bit "
                    "in common and others do not: give all shapes of a body the same filter"
                )


def find_parts(model: mujoco.MjModel, assets: Sequence[Asset]) -> list[Part]:
    """Return each actor's parts of the arrays of a model from :func:`compile_scene`.

    Args:
        model: The model.
        assets: Robot of each actor, in the order in which the model was made.
    """
    parts = []
    # Body 0 is the world.
    first_body = 1
    first_dof = 0
    for asset in assets:
        end_body = first_body + len(asset.body_names)
        end_dof = first_dof + len(asset.dof_names)
        body_ids = range(first_body, end_body)
        is_own_geom = np.isin(model.geom_bodyid, body_ids)
        joints = np.flatnonzero(np.isin(model.jnt_bodyid, body_ids))
        mocap = int(model.body_mocapid[first_body])
        is_free = mocap < 0
        qpos = 0
        qvel = 0
        if is_free:
            # The free joint of the base comes first.
            qpos = int(model.jnt_qposadr[joints[0]])
            qvel = int(model.jnt_dofadr[joints[0]])
            joints = joints[1:]
        part = Part(
            bodies=slice(first_body, end_body),
            geoms=np.flatnonzero(is_own_geom & (model.geom_conaffinity > 0)),
            joints=joints,
            dofs=slice(first_dof, end_dof),
            is_free=is_free,
            qpos=qpos,
            qvel=qvel,
            mocap=mocap,
        )
        parts.append(part)
        first_body = end_body
        first_dof = end_dof
    return parts
