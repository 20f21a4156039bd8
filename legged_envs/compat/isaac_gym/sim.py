"""Simulations: their environments, and each environment's parameters of the engine."""

import copy
import os
import time
from typing import TYPE_CHECKING

import mujoco
import mujoco.batch
import numpy as np
import torch

from legged_envs.compat.isaac_gym.actor import (
    CONSTANT_INPUTS,
    Actor,
    FieldValues,
    make_field_values,
    mix_friction,
    stack_properties,
)
from legged_envs.compat.isaac_gym.assets import Asset, ForceSensor
from legged_envs.compat.isaac_gym.force_sensors import ForceSensors
from legged_envs.compat.isaac_gym.ground import Ground, MeshInput, join_meshes
from legged_envs.compat.isaac_gym.records import SimParams
from legged_envs.compat.isaac_gym.scene import (
    Collisions,
    Part,
    compile_scene,
    exclude_contacts,
    find_parts,
    make_scene,
)
from legged_envs.compat.isaac_gym.state import State

if TYPE_CHECKING:
    from legged_envs.compat.isaac_gym.dynamics import Dynamics
    from legged_envs.compat.isaac_gym.pictures import PictureMaker
    from legged_envs.compat.isaac_gym.viewer import Camera

POSE_TO_ENGINE = [0, 1, 2, 6, 3, 4, 5]
"""Order that makes a pose with (w, x, y, z) of a pose with (x, y, z, w)."""

NUM_VELOCITIES = 6
"""Number of linear and angular velocities in a root state."""


class Env:
    """An environment, which ``create_env`` returns.

    Args:
        sim: Simulation to which it belongs.
        index: Index of the environment.
    """

    def __init__(self, sim: "Sim", index: int):
        self.sim = sim
        """Simulation to which it belongs."""
        self.index = index
        """Index of the environment."""
        self.actors: list[Actor] = []
        """Robots in it."""

    def actor(self, handle: int) -> Actor:
        """Return the actor with a handle.

        Raises:
            ValueError: If there is no such actor.
        """
        if not 0 <= handle < len(self.actors):
            raise ValueError(
                f"environment {self.index} has {len(self.actors)} actors, "
                f"there is none with {handle=}"
            )
        return self.actors[handle]

    def shape_filters(self) -> list[tuple[int, ...]]:
        """Return the collision filters of the shapes of each actor."""
        return [actor.shape_filters for actor in self.actors]

    def count_bodies(self) -> int:
        """Return the number of bodies of all actors."""
        return sum(len(actor.asset.body_names) for actor in self.actors)

    def count_dofs(self) -> int:
        """Return the number of joints of all actors that move."""
        return sum(len(actor.asset.dof_names) for actor in self.actors)

    def count_force_sensors(self) -> int:
        """Return the number of force sensors of all actors."""
        return sum(len(actor.asset.force_sensors) for actor in self.actors)

    def locate_bodies(self, handle: int) -> range:
        """Return the indices of an actor's bodies in the environment."""
        own = len(self.actor(handle).asset.body_names)
        start = sum(len(actor.asset.body_names) for actor in self.actors[:handle])
        return range(start, start + own)

    def locate_dofs(self, handle: int) -> range:
        """Return the indices of an actor's joints in the environment."""
        own = len(self.actor(handle).asset.dof_names)
        start = sum(len(actor.asset.dof_names) for actor in self.actors[:handle])
        return range(start, start + own)

    def collisions(self) -> Collisions:
        """Return True for each two actors that collide."""
        rows = []
        for actor in self.actors:
            rows.append(tuple(actor.collides_with(other) for other in self.actors))
        return tuple(rows)

    def assets(self) -> list[Asset]:
        """Return the robot of each actor."""
        return [actor.asset for actor in self.actors]


class Sim:
    """A simulation, which ``create_sim`` returns. Its physics runs on the CPU.

    Args:
        params: Parameters. They are copied.
        device: Device of the tensors.
    """

    def __init__(self, params: SimParams, device: torch.device):
        # Scripts change and reuse their record for the next simulation.
        self.params = copy.deepcopy(params)
        """Parameters."""
        self.device = device
        """Device of the tensors."""
        self.ground: Ground | None = None
        """The ground. None: there is no ground."""
        self.plane: Ground | None = None
        """The plane that was added. None: there is no plane."""
        self.meshes: list[MeshInput] = []
        """The triangle meshes that were added."""
        self.state: State | None = None
        """The running simulation. None before ``prepare_sim``."""
        self.envs: list[Env] = []
        """Environments."""
        self.shown = (0.0, 0)
        """Time, s, and frame of the last call of ``sync_frame_time``."""
        self.cameras: list[Camera] = []
        """Cameras."""
        self.picture_maker: PictureMaker | None = None
        """What draws the pictures of all cameras. None before the first picture."""
        self.dynamics: dict[str, Dynamics] = {}
        """Jacobians and mass matrices that were asked for, by the name of their actors."""
        self.created_at = time.monotonic()
        """Time at which it was made, s."""
        self.destroyed = False
        """True after ``destroy_sim``."""

    def need_setup(self, function: str) -> None:
        """Check that a call comes before ``prepare_sim``.

        Args:
            function: Name of the function that was called, for the error.

        Raises:
            RuntimeError: If the simulation is running or destroyed.
        """
        self._need_existence(function)
        if self.state is not None:
            raise RuntimeError(
                f"gym.{function} was called after prepare_sim: all actors come before it"
            )

    def running(self, function: str) -> State:
        """Return the running simulation.

        Args:
            function: Name of the function that was called, for the error.

        Raises:
            RuntimeError: Before ``prepare_sim`` and after ``destroy_sim``.
        """
        self._need_existence(function)
        if self.state is None:
            raise RuntimeError(
                f"gym.{function} was called before prepare_sim: call gym.prepare_sim(sim) first"
            )
        return self.state

    def destroy(self) -> None:
        """Release the memory of the engine."""
        if self.picture_maker is not None:
            self.picture_maker.close()
        self.picture_maker = None
        self.cameras = []
        self.dynamics = {}
        self.state = None
        self.envs = []
        self.destroyed = True

    def _need_existence(self, function: str) -> None:
        if self.destroyed:
            raise RuntimeError(
                f"gym.{function} was called after destroy_sim: call gym.create_sim for another"
            )

    # A script may prepare in inference mode and step outside of it, where tensors of inference mode
    # cannot be written.
    @torch.inference_mode(False)
    def prepare(self) -> bool:
        """End the setup: compile the model and start the engine.

        Raises:
            RuntimeError: If there are no actors.
            ValueError: If environments have different actors.
        """
        self.need_setup("prepare_sim")
        self._check_envs()
        self._join_grounds()
        model = self.compile()
        parts = find_parts(model, self.envs[0].assets())
        fields = self._gather_fields(model, parts)
        # Values of environment 0 go into the model itself. So the engine keeps a field once if it
        # is the same in all environments.
        for field in fields:
            getattr(model, field.name)[field.place] = field.values[0]
        mujoco.mj_setConst(model, mujoco.MjData(model))
        batch = mujoco.batch.Batch(model, len(self.envs), self._count_threads())
        dofs = []
        for env in self.envs:
            dofs.append(np.concatenate([actor.dofs for actor in env.actors]))
        sensors = ForceSensors(batch, self._place_force_sensors(parts))
        state = State(batch, parts, self.params.substeps, np.stack(dofs), sensors, self.device)
        for field in fields:
            if (field.values != field.values[0]).any():
                batch.expand(field.name)[(slice(None), *field.place)] = field.values
                if field.name in CONSTANT_INPUTS:
                    state.constants_changed[:] = True
        # Root states depend on centers of mass, so they come after these.
        state.update_constants()
        state.write_roots(self._make_root_states())
        # Set at last: a simulation that failed to start can be changed and prepared again.
        self.state = state
        return True

    def _join_grounds(self) -> None:
        """Make one ground of several meshes and a plane."""
        if len(self.meshes) > 1:
            self.ground = join_meshes(self.meshes)
        if self.meshes and self.plane is not None and self.ground is not None:
            self.ground.has_plane_too = True
            self.ground.normal = self.plane.normal
            self.ground.distance = self.plane.distance

    def _gather_fields(self, model: mujoco.MjModel, parts: list[Part]) -> list[FieldValues]:
        """Return the fields of all actors, with a value for each environment."""
        fields = []
        for k, part in enumerate(parts):
            actors = [env.actors[k] for env in self.envs]
            own = stack_properties(actors)
            fields += make_field_values(model, part, self.ground, own)
            if part.is_free:
                # The engine puts a robot with numbers that are not finite back to qpos0.
                pose = np.array(actors[0].pose)[POSE_TO_ENGINE]
                model.qpos0[part.qpos : part.qpos + 7] = pose
        return fields

    def _place_force_sensors(self, parts: list[Part]) -> list[tuple[int, ForceSensor]]:
        """Return each force sensor of an environment, with its body in the model."""
        placed = []
        for part, asset in zip(parts, self.envs[0].assets(), strict=True):
            for sensor in asset.force_sensors:
                placed.append((part.bodies.start + sensor.body, sensor))
        return placed

    def _count_threads(self) -> int:
        """Return the number of threads of the engine: at most one per core."""
        if hasattr(os, "sched_getaffinity"):
            # In a container these can be fewer than the cores of the machine.
            num_cores = len(os.sched_getaffinity(0))
        else:
            num_cores = os.cpu_count() or 1
        wanted = int(self.params.physx.num_threads) or num_cores
        return min(wanted, num_cores)

    def _make_root_states(self) -> torch.Tensor:
        """Return the root states at the start. Shape: (num_envs, num_actors, 13), float64."""
        poses = []
        for env in self.envs:
            poses.append([actor.pose for actor in env.actors])
        # Robots start at rest.
        return torch.nn.functional.pad(
            torch.tensor(poses, dtype=torch.float64), (0, NUM_VELOCITIES)
        )

    def make_spec(self, visuals: bool = False) -> mujoco.MjSpec:
        """Return the specification of environment 0 with the values of its robots' files.

        Args:
            visuals: Add the shapes that are only seen.
        """
        first = self.envs[0]
        spec = make_scene(first.assets(), first.collisions(), self.ground, self.params, visuals)
        for i, actor in enumerate(first.actors):
            exclude_contacts(spec, i, actor.asset, actor.shape_filters)
        return spec

    def compile(self, visuals: bool = False) -> mujoco.MjModel:
        """Return a model of environment 0 with the values of its robots' files.

        Args:
            visuals: Add the shapes that are only seen.
        """
        return compile_scene(self.make_spec(visuals))

    def _check_envs(self) -> None:
        if not self.envs or not self.envs[0].actors:
            raise RuntimeError(
                "gym.prepare_sim needs actors: call create_env and create_actor first"
            )
        # All environments are copies of one model.
        assets = self.envs[0].assets()
        collisions = self.envs[0].collisions()
        filters = self.envs[0].shape_filters()
        for env in self.envs:
            if env.shape_filters() != filters:
                raise ValueError(
                    f"environment {env.index} has other filters of shapes than environment 0: "
                    "set the same ones in all"
                )
            if env.assets() != assets or env.collisions() != collisions:
                raise ValueError(
                    f"environment {env.index} has other actors, groups or collision filters "
                    "than environment 0: all must have the same assets in the same order"
                )

    def set_actor(
        self,
        env: Env,
        handle: int,
        *,
        friction: np.ndarray | None = None,
        mass: np.ndarray | None = None,
        com: np.ndarray | None = None,
        inertia: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        dofs: np.ndarray | None = None,
    ) -> bool:
        """Set properties of an actor, before or after ``prepare_sim``.

        Args:
            env: Environment of the actor.
            handle: Handle of the actor.
            friction: Coefficient of friction of each shape that collides.
            mass: Mass of each body, kg.
            com: Center of mass of each body in the body's frame, m.
            inertia: Bodies that get another inertia as a mask, and the principal moments and axes
                of all bodies.
            dofs: Properties of each DOF, with the fields ``DOF_DTYPE``.

        Returns:
            True.
        """
        actor = env.actor(handle)
        if friction is not None:
            if self.state is not None:
                # A friction that is refused changes nothing. Before, the ground may be missing yet.
                mix_friction(friction, self.ground)
            actor.friction = friction
        if mass is not None:
            actor.mass = mass
        if com is not None:
            actor.com = com
        if inertia is not None:
            actor.set_inertia(*inertia)
        if dofs is not None:
            actor.dofs = dofs
        if self.state is not None:
            self._update_actor(self.state, env.index, handle, actor)
        return True

    def _update_actor(self, state: State, env_id: int, handle: int, actor: Actor) -> None:
        """Write the properties of an actor into the engine."""
        part = state.parts[handle]
        state.modes[env_id, part.dofs] = torch.from_numpy(actor.dofs["driveMode"].copy())
        max_speeds = torch.from_numpy(actor.dofs["velocity"].copy())
        state.speed_limits.max_speeds[env_id, part.dofs] = max_speeds.double()
        own = actor.get_properties()
        for field in make_field_values(state.model, part, self.ground, own):
            expanded = state.batch.expanded(field.name)
            present = getattr(state.model, field.name) if expanded is None else expanded[env_id]
            # Unchanged fields are not changed: an expanded field takes memory in all environments,
            # and deriving constants takes time.
            if (present[field.place] != field.values).any():
                state.batch.expand(field.name)[env_id][field.place] = field.values
                if field.name in CONSTANT_INPUTS:
                    state.constants_changed[env_id] = True
                    # Centers of mass, and velocities at them, are others now.
                    state.mark_moved()

    def set_params(self, params: SimParams) -> None:
        """Set the parameters.

        After ``prepare_sim`` only gravity has an effect.

        Raises:
            ValueError: If a parameter does not fit, or the time step changes after
                ``prepare_sim``.
        """
        params.check("set_sim_params")
        if self.state is not None:
            given = (params.dt, params.substeps)
            present = (self.params.dt, self.params.substeps)
            if given != present:
                raise ValueError(
                    f"set_sim_params: dt and substeps stay {present} after prepare_sim, got {given}"
                )
            self.state.batch.expand("opt.gravity")[:] = params.gravity.values
        self.params = copy.deepcopy(params)
