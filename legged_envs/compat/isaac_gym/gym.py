"""The object that `gymapi.acquire_gym` returns: Isaac Gym's functions, under their names."""

import copy
import time
from typing import NoReturn

import numpy as np
import torch

from legged_envs.compat.isaac_gym.actor import Actor
from legged_envs.compat.isaac_gym.assets import Asset
from legged_envs.compat.isaac_gym.enums import SimType
from legged_envs.compat.isaac_gym.ground import height_field, plane, read_mesh, triangle_mesh
from legged_envs.compat.isaac_gym.gym_actuators import ActuatorFunctions
from legged_envs.compat.isaac_gym.gym_assets import AssetFunctions
from legged_envs.compat.isaac_gym.gym_dofs import DofFunctions
from legged_envs.compat.isaac_gym.gym_dynamics import DynamicsFunctions
from legged_envs.compat.isaac_gym.gym_names import NameFunctions
from legged_envs.compat.isaac_gym.gym_pictures import PictureFunctions
from legged_envs.compat.isaac_gym.gym_properties import PropertyFunctions
from legged_envs.compat.isaac_gym.gym_states import StateFunctions
from legged_envs.compat.isaac_gym.gym_tensors import TensorFunctions
from legged_envs.compat.isaac_gym.missing import make_missing_name_error
from legged_envs.compat.isaac_gym.records import (
    HeightFieldParams,
    PlaneParams,
    SimParams,
    TriangleMeshParams,
    Version,
)
from legged_envs.compat.isaac_gym.sim import Env, Sim
from legged_envs.compat.isaac_gym.vectors import Transform, Vec3


class Gym(
    AssetFunctions,
    ActuatorFunctions,
    NameFunctions,
    PropertyFunctions,
    StateFunctions,
    DofFunctions,
    TensorFunctions,
    DynamicsFunctions,
    PictureFunctions,
):
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
        if type != SimType.SIM_PHYSX:
            raise ValueError(
                "create_sim: type must be SIM_PHYSX, which MuJoCo replaces, because there is no "
                f"FleX, got {type!r}"
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

    def get_version(self) -> Version:
        """Return the version of Isaac Gym that has these functions: Preview 4 calls itself 1.0."""
        return Version()

    def get_frame_count(self, sim: Sim) -> int:
        """Return the number of steps so far."""
        return sim.state.frame_count if sim.state else 0

    def get_sim_time(self, sim: Sim) -> float:
        """Return the simulated time so far, s."""
        return self.get_frame_count(sim) * float(sim.params.dt)

    def get_elapsed_time(self, sim: Sim) -> float:
        """Return the time of the clock since the simulation was made, s."""
        return time.monotonic() - sim.created_at

    def get_sim_params(self, sim: Sim) -> SimParams:
        """Return a copy of the parameters of a simulation."""
        return copy.deepcopy(sim.params)

    def set_sim_params(self, sim: Sim, params: SimParams) -> None:
        """Change the parameters of a simulation."""
        sim.set_params(params)

    def add_ground(self, sim: Sim, params: PlaneParams) -> None:
        """Add a plane as ground."""
        sim.need_setup("add_ground")
        if sim.meshes and sim.plane is None:
            sim.plane = plane(params)
            return
        _check_new_ground(sim, "plane")
        sim.ground = plane(params)
        sim.plane = sim.ground

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
        """Add a triangle mesh as ground. There may be several, and a plane.

        Args:
            sim: The simulation.
            vertices: Coordinates of the vertices, m, x, y and z of each.
            triangles: Indices of vertices, three of each triangle.
            params: Parameters.
        """
        sim.need_setup("add_triangle_mesh")
        is_first = not sim.meshes
        if is_first and sim.plane is None:
            _check_new_ground(sim, "triangle_mesh")
        mesh = read_mesh(vertices, triangles, params)
        if is_first:
            sim.ground = triangle_mesh(vertices, triangles, params)
        sim.meshes.append(mesh)

    def create_env(self, sim: Sim, lower: Vec3, upper: Vec3, num_per_row: int) -> Env:
        """Return a new environment: a separate world with its own coordinates.

        ``lower``, ``upper`` and ``num_per_row`` have no effect.
        """
        sim.need_setup("create_env")
        env = Env(sim, len(sim.envs))
        sim.envs.append(env)
        return env

    def begin_aggregate(self, *args: object) -> bool:
        """Do nothing: the engine groups the shapes of a robot by itself."""
        return True

    def end_aggregate(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def create_actor(
        self,
        env: Env,
        asset: Asset,
        pose: Transform,
        name: str = "",
        group: int = -1,
        filter: int = -1,
        segmentationId: int = 0,
    ) -> int:
        """Add a robot to an environment.

        Args:
            env: The environment.
            asset: The robot, from ``load_asset``.
            pose: A ``gymapi.Transform``.
            name: Name of the actor.
            group: Collision group.
            filter: With 0 or −1 the parts of the robot collide, above 0 they do not.
            segmentationId: Number of its bodies in pictures of segmentation.

        Returns:
            Index of the actor in its environment.
        """
        env.sim.need_setup("create_actor")
        # Scripts often give the name of a file, or only a position.
        if not isinstance(asset, Asset) or not isinstance(pose, Transform):
            raise TypeError(
                "create_actor takes what load_asset returns and a gymapi.Transform, "
                f"got {type(asset).__name__} and {type(pose).__name__}"
            )
        index = len(env.actors)
        actor = Actor(asset, pose, name or f"actor_{index}", group, filter, int(segmentationId))
        env.actors.append(actor)
        return index

    def __getattr__(self, name: str) -> NoReturn:
        raise make_missing_name_error(f"gym.{name}")


def _check_new_ground(sim: Sim, kind: str) -> None:
    """Raise a RuntimeError if no ground can be added any more."""
    sim.need_setup(f"adding a {kind.replace('_', ' ')}")
    if sim.ground is not None:
        raise RuntimeError(
            f"the simulation has a ground, and there can be only one: the {kind} is not added"
        )
