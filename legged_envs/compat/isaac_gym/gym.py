"""The object that `gymapi.acquire_gym` returns: Isaac Gym's functions, under their names."""

import copy
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch

from legged_envs.compat.isaac_gym.actor import Actor
from legged_envs.compat.isaac_gym.assets import Asset
from legged_envs.compat.isaac_gym.ground import height_field, plane, triangle_mesh
from legged_envs.compat.isaac_gym.gym_pictures import PictureFunctions
from legged_envs.compat.isaac_gym.gym_tensors import TensorFunctions
from legged_envs.compat.isaac_gym.missing import make_missing_name_error
from legged_envs.compat.isaac_gym.records import (
    DRIVE_MODES,
    SIM_PHYSX,
    AssetOptions,
    HeightFieldParams,
    PlaneParams,
    RigidBodyProperties,
    RigidShapeProperties,
    SimParams,
    Transform,
    TriangleMeshParams,
    Vec3,
)
from legged_envs.compat.isaac_gym.sim import Env, Sim

NOT_NEGATIVE_FIELDS = ("velocity", "stiffness", "damping", "effort", "armature", "friction")
"""Properties of a joint that must be finite and at least 0."""


class Gym(TensorFunctions, PictureFunctions):
    """Functions of Isaac Gym.

    A call out of order raises a RuntimeError, and values that do not fit raise a ValueError.
    """

    def create_sim(
        self,
        compute_device: int = 0,
        graphics_device: int = 0,
        type: int = 0,
        params: SimParams | None = None,
    ) -> Sim:
        """Return a new simulation. Its physics runs on the CPU.

        Args:
            compute_device: GPU of the tensors, if ``params.use_gpu_pipeline`` is set and there is
                a GPU.
            graphics_device: No effect.
            type: SIM_PHYSX. The engine is MuJoCo.
            params: Parameters. None: the defaults.
        """
        if params is None:
            params = SimParams()
        if type != SIM_PHYSX:
            raise ValueError(
                "create_sim: there is MuJoCo in place of PhysX and no FleX, "
                f"use SIM_PHYSX, got {type!r}"
            )
        params.check("create_sim")
        # Codebases ask for the GPU by default. On a machine without one they run on the CPU.
        if not (params.use_gpu_pipeline and torch.cuda.is_available()):
            return Sim(params, torch.device("cpu"))
        num_gpus = torch.cuda.device_count()
        if not 0 <= compute_device < num_gpus:
            raise ValueError(f"create_sim: there are {num_gpus} GPUs, got {compute_device=}")
        return Sim(params, torch.device("cuda", compute_device))

    def prepare_sim(self, sim: Sim) -> bool:
        """End the setup of a simulation, and return True."""
        return sim.prepare()

    def simulate(self, sim: Sim) -> None:
        """Run one step of ``params.dt``."""
        sim.running("simulate").simulate()

    def destroy_sim(self, sim: Sim) -> None:
        """Release a simulation."""
        sim.destroy()

    def get_frame_count(self, sim: Sim) -> int:
        """Return the number of steps so far."""
        return sim.state.frame_count if sim.state else 0

    def get_sim_params(self, sim: Sim) -> SimParams:
        """Return a copy of the parameters of a simulation."""
        return copy.deepcopy(sim.params)

    def set_sim_params(self, sim: Sim, params: SimParams) -> None:
        """Change the parameters of a simulation."""
        sim.set_params(params)

    def add_ground(self, sim: Sim, params: PlaneParams) -> None:
        """Add a plane as ground."""
        _check_new_ground(sim, "plane")
        sim.ground = plane(params)

    def add_heightfield(self, sim: Sim, samples: np.ndarray, params: HeightFieldParams) -> None:
        """Add a height field as ground.

        Args:
            sim: The simulation.
            samples: Heights in units of ``params.vertical_scale``.
            params: Parameters.
        """
        _check_new_ground(sim, "height_field")
        sim.ground = height_field(samples, params)

    def add_triangle_mesh(
        self, sim: Sim, vertices: np.ndarray, triangles: np.ndarray, params: TriangleMeshParams
    ) -> None:
        """Add a triangle mesh as ground.

        Args:
            sim: The simulation.
            vertices: Coordinates of the vertices, m, x, y and z of each.
            triangles: Indices of vertices, three of each triangle.
            params: Parameters.
        """
        _check_new_ground(sim, "triangle_mesh")
        sim.ground = triangle_mesh(vertices, triangles, params)

    def load_asset(
        self, sim: Sim, rootpath: str, filename: str, options: AssetOptions | None = None
    ) -> Asset:
        """Read a URDF or MJCF file."""
        if options is None:
            options = AssetOptions()
        # Scripts change their record of options and load the next asset with it.
        return Asset(Path(rootpath) / filename, copy.deepcopy(options))

    def get_asset_dof_count(self, asset: Asset) -> int:
        """Return the number of joints."""
        return len(asset.dof_names)

    def get_asset_dof_names(self, asset: Asset) -> list[str]:
        """Return the names of the joints."""
        return list(asset.dof_names)

    def get_asset_dof_properties(self, asset: Asset) -> np.ndarray:
        """Return a copy of the properties of the joints, with the fields ``DOF_DTYPE``."""
        return asset.dof_properties.copy()

    def get_asset_rigid_body_count(self, asset: Asset) -> int:
        """Return the number of bodies."""
        return len(asset.body_names)

    def get_asset_rigid_body_names(self, asset: Asset) -> list[str]:
        """Return the names of the bodies."""
        return list(asset.body_names)

    def get_asset_rigid_shape_properties(self, asset: Asset) -> list[RigidShapeProperties]:
        """Return the properties of the shapes."""
        return _make_shape_properties(asset.friction)

    def set_asset_rigid_shape_properties(
        self, asset: Asset, props: Sequence[RigidShapeProperties]
    ) -> None:
        """Set the properties of the shapes of actors that are created from here on."""
        asset.friction = _read_friction(props, len(asset.friction))

    def create_env(self, sim: Sim, lower: Vec3, upper: Vec3, num_per_row: int) -> Env:
        """Return a new environment: a separate world with its own coordinates.

        ``lower``, ``upper`` and ``num_per_row`` have no effect.
        """
        sim.need_setup("create_env")
        env = Env(sim, len(sim.envs))
        sim.envs.append(env)
        return env

    def create_actor(
        self,
        env: Env,
        asset: Asset,
        pose: Transform,
        name: str = "",
        group: int = -1,
        filter: int = -1,
        *segment: int,
    ) -> int:
        """Add a robot to an environment.

        Args:
            env: The environment.
            asset: The robot, from ``load_asset``.
            pose: A ``gymapi.Transform``.
            name: Name of the actor.
            group: Collision group.
            filter: With 0 or −1 the parts of the robot collide, above 0 they do not.
            segment: No effect.

        Returns:
            Index of the actor in its environment.
        """
        env.sim.need_setup("create_actor")
        # Scripts often give the name of a file, or a position alone.
        if not isinstance(asset, Asset) or not isinstance(pose, Transform):
            raise TypeError(
                "create_actor takes what load_asset returns and a gymapi.Transform, "
                f"got {type(asset).__name__} and {type(pose).__name__}"
            )
        index = len(env.actors)
        env.actors.append(Actor(asset, pose, name or f"actor_{index}", group, filter))
        return index

    def get_actor_count(self, env: Env) -> int:
        """Return the number of actors of an environment."""
        return len(env.actors)

    def get_actor_handle(self, env: Env, index: int) -> int:
        """Return the handle of an actor, which is its index."""
        return index if env.actor(index) else -1

    def find_actor_handle(self, env: Env, name: str) -> int:
        """Return the handle of the actor with a name, or −1."""
        # The first of several actors with one name, as in Isaac Gym.
        for handle, actor in enumerate(env.actors):
            if actor.name == name:
                return handle
        return -1

    def find_actor_rigid_body_handle(self, env: Env, handle: int, name: str) -> int:
        """Return the index of a body in its environment, or −1 if there is no such body."""
        names = env.actor(handle).asset.body_names
        if name not in names:
            return -1
        # Bodies of an environment are numbered through, in the order of its actors.
        num_before = 0
        for actor in env.actors[:handle]:
            num_before += len(actor.asset.body_names)
        return num_before + names.index(name)

    def get_actor_name(self, env: Env, handle: int) -> str:
        """Return the name of an actor."""
        return env.actor(handle).name

    def get_actor_rigid_body_count(self, env: Env, handle: int) -> int:
        """Return the number of bodies of an actor."""
        return len(env.actor(handle).mass)

    def get_actor_rigid_shape_count(self, env: Env, handle: int) -> int:
        """Return the number of shapes of an actor."""
        return len(env.actor(handle).friction)

    def get_actor_rigid_shape_properties(self, env: Env, handle: int) -> list[RigidShapeProperties]:
        """Return the properties of the shapes of an actor."""
        return _make_shape_properties(env.actor(handle).friction)

    def get_actor_dof_properties(self, env: Env, handle: int) -> np.ndarray:
        """Return a copy of the properties of the joints of an actor."""
        return env.actor(handle).dofs.copy()

    def enable_actor_dof_force_sensors(self, env: Env, handle: int) -> bool:
        """Return True: the forces of joints are always measured."""
        return bool(env.actor(handle))

    def get_actor_rigid_body_properties(self, env: Env, handle: int) -> list[RigidBodyProperties]:
        """Return the properties of the bodies of an actor."""
        actor = env.actor(handle)
        properties = []
        for mass, com in zip(actor.mass, actor.com, strict=True):
            properties.append(RigidBodyProperties(mass, Vec3(*com)))
        return properties

    def set_actor_dof_properties(self, env: Env, handle: int, props: np.ndarray) -> bool:
        """Set the properties of the joints of an actor."""
        given = np.array(props)
        _check_dof_properties(given, env.actor(handle).dofs)
        return env.sim.set_actor(env, handle, dofs=given)

    def set_actor_rigid_body_properties(
        self,
        env: Env,
        handle: int,
        props: Sequence[RigidBodyProperties],
        recomputeInertia: bool = False,
    ) -> bool:
        """Set masses and centers of mass.

        Inertias grow with the masses, whether ``recomputeInertia`` is set or not.
        """
        mass = np.array([prop.mass for prop in props])
        num_bodies = len(env.actor(handle).mass)
        if len(mass) != num_bodies or not (mass > 0).all():
            raise ValueError(
                f"set_actor_rigid_body_properties: expected {num_bodies} bodies "
                f"with masses above 0, got {mass.tolist()}"
            )
        com = np.array([prop.com.values for prop in props])
        return env.sim.set_actor(env, handle, mass=mass, com=com)

    def set_actor_rigid_shape_properties(
        self, env: Env, handle: int, props: Sequence[RigidShapeProperties]
    ) -> bool:
        """Set the properties of the shapes of an actor."""
        num_shapes = len(env.actor(handle).friction)
        return env.sim.set_actor(env, handle, friction=_read_friction(props, num_shapes))

    def get_actor_tendon_properties(self, *args: object) -> NoReturn:
        """Raise a NotImplementedError."""
        raise NotImplementedError("get_actor_tendon_properties: actors have no tendons")

    def set_actor_tendon_properties(self, *args: object) -> NoReturn:
        """Raise a NotImplementedError."""
        raise NotImplementedError("set_actor_tendon_properties: actors have no tendons")

    def set_actor_scale(self, *args: object) -> NoReturn:
        """Raise a NotImplementedError."""
        raise NotImplementedError(
            "set_actor_scale: actors cannot be scaled, because all environments have one model"
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise make_missing_name_error(f"gym.{name}")


def _check_new_ground(sim: Sim, kind: str) -> None:
    """Raise a RuntimeError if no ground can be added any more."""
    sim.need_setup(f"adding a {kind.replace('_', ' ')}")
    if sim.ground is not None:
        raise RuntimeError(
            f"the simulation has a ground, and there can be one alone: no {kind} is added"
        )


def _check_dof_properties(given: np.ndarray, present: np.ndarray) -> None:
    if given.dtype != present.dtype or given.shape != present.shape:
        raise ValueError(
            f"set_actor_dof_properties: got {given.dtype} of shape {given.shape}, "
            f"expected what get_asset_dof_properties gives, of shape {present.shape}"
        )
    for name in NOT_NEGATIVE_FIELDS:
        # An infinite stiffness or effort would become NaN in the engine.
        values = given[name]
        if not ((values >= 0) & np.isfinite(values)).all():
            raise ValueError(
                f"set_actor_dof_properties: {name} must be finite and not negative, "
                f"got {values.tolist()}"
            )
    # Limits of a joint without limits are not read, so they may be in any order.
    is_unlimited = ~given["hasLimits"]
    if not (is_unlimited | (given["lower"] <= given["upper"])).all():
        raise ValueError(
            "set_actor_dof_properties: lower must not be above upper, "
            f"got {given['lower'].tolist()} and {given['upper'].tolist()}"
        )
    if not np.isin(given["driveMode"], DRIVE_MODES).all():
        raise ValueError(
            "set_actor_dof_properties: driveMode must be DOF_MODE_NONE, _POS or _EFFORT "
            f"{DRIVE_MODES}, got {given['driveMode'].tolist()}"
        )


def _make_shape_properties(friction: np.ndarray) -> list[RigidShapeProperties]:
    return [RigidShapeProperties(value) for value in friction]


def _read_friction(props: Sequence[RigidShapeProperties], num_shapes: int) -> np.ndarray:
    """Return the friction of each shape, and warn if a restitution is asked for."""
    friction = np.array([prop.friction for prop in props])
    if len(friction) != num_shapes or not (friction >= 0).all():
        raise ValueError(
            f"rigid shape properties: expected {num_shapes} shapes with frictions of at least 0, "
            f"got {friction.tolist()}"
        )
    if any(prop.filter for prop in props):
        raise ValueError(
            "rigid shape properties: a filter of one shape cannot be kept, give one to create_actor"
        )
    if any(prop.restitution for prop in props):
        warnings.warn("restitution has no effect in MuJoCo: contacts do not bounce", stacklevel=3)
    return friction
