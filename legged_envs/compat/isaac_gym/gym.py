"""The object that ``gymapi.acquire_gym`` returns: Isaac Gym's functions, in its words."""

import copy
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from legged_envs.compat.isaac_gym import gymapi, refuse
from legged_envs.compat.isaac_gym.assets import Array, Asset
from legged_envs.compat.isaac_gym.gymapi import SimParams, Transform, Vec3
from legged_envs.compat.isaac_gym.gymtorch import Descriptor
from legged_envs.compat.isaac_gym.scene import Ground, height_field, plane, triangle_mesh
from legged_envs.compat.isaac_gym.sim import Actor, Env, Sim
from legged_envs.compat.isaac_gym.state import TENSORS
from legged_envs.compat.isaac_gym.viewer import Camera, Viewer

WITHOUT_EFFECT = {"clear_lines", "fetch_results", "poll_viewer_events", "render_all_camera_sensors"}
WITHOUT_EFFECT |= {"set_rigid_body_color", "step_graphics", "subscribe_viewer_keyboard_event"}
"""Functions that have nothing to do: a step has ended when it returns, pictures are drawn when they are asked for."""
TENSOR_FUNCTIONS = {
    f"{verb}_{name}_tensor": (verb, name) for verb in ("acquire", "refresh") for name in TENSORS
}
for _name in ("actor_root_state", "dof_state"):
    TENSOR_FUNCTIONS |= {
        f"set_{_name}_tensor{ending}": ("set", _name) for ending in ("", "_indexed")
    }
Shapes = Sequence[gymapi.RigidShapeProperties]


class Gym:
    """Functions of Isaac Gym. RuntimeError for calls out of order, ValueError for what does not fit."""

    # --- Simulations --------------------------------------------------------------------------------------------------

    def create_sim(
        self,
        compute_device: int = 0,
        graphics_device: int = 0,
        type: int = 0,
        params: SimParams | None = None,
    ) -> Sim:
        """Tensors are on GPU ``compute_device`` with ``use_gpu_pipeline`` if there is one; physics is on the CPU."""
        params = params or SimParams()
        if type != gymapi.SIM_PHYSX:
            raise ValueError(
                f"create_sim: there is MuJoCo in place of PhysX and no FleX, use SIM_PHYSX, got {type!r}"
            )
        params.check("create_sim")
        on_gpu = params.use_gpu_pipeline and torch.cuda.is_available()
        if on_gpu and not 0 <= compute_device < torch.cuda.device_count():
            raise ValueError(
                f"create_sim: there are {torch.cuda.device_count()} GPUs, got {compute_device=}"
            )
        return Sim(params, torch.device("cuda", compute_device) if on_gpu else torch.device("cpu"))

    prepare_sim = staticmethod(lambda sim: sim.prepare())
    simulate = staticmethod(lambda sim: sim.running("simulate").simulate())
    destroy_sim = staticmethod(lambda sim: sim.destroy())
    get_frame_count = staticmethod(lambda sim: sim.state.frame_count if sim.state else 0)
    get_sim_params = staticmethod(lambda sim: copy.deepcopy(sim.params))
    set_sim_params = staticmethod(lambda sim, params: sim.set_params(params))

    def _lay(self, make: Callable[..., Ground], sim: Sim, *given: Any) -> None:
        sim.need_setup(f"adding a {make.__name__.replace('_', ' ')}")
        if sim.ground is not None:
            raise RuntimeError(
                f"the simulation has a ground, and there can be one alone: no {make.__name__} is added"
            )
        sim.ground = make(*given)

    add_ground, add_heightfield = partialmethod(_lay, plane), partialmethod(_lay, height_field)
    add_triangle_mesh = partialmethod(_lay, triangle_mesh)

    # --- Assets -------------------------------------------------------------------------------------------------------

    def load_asset(
        self, sim: Sim, rootpath: str, filename: str, options: gymapi.AssetOptions | None = None
    ) -> Asset:
        return Asset(Path(rootpath) / filename, copy.deepcopy(options or gymapi.AssetOptions()))

    get_asset_dof_count = staticmethod(lambda asset: len(asset.dof_names))
    get_asset_dof_names = staticmethod(lambda asset: list(asset.dof_names))
    get_asset_dof_properties = staticmethod(lambda asset: asset.dof_properties.copy())
    get_asset_rigid_body_count = staticmethod(lambda asset: len(asset.body_names))
    get_asset_rigid_body_names = staticmethod(lambda asset: list(asset.body_names))
    get_asset_rigid_shape_properties = staticmethod(lambda asset: _shapes(asset.friction))

    def set_asset_rigid_shape_properties(self, asset: Asset, props: Shapes) -> None:
        """Those of the actors that are created from here on."""
        asset.friction = _friction(props, len(asset.friction))

    # --- Environments and actors --------------------------------------------------------------------------------------

    def create_env(self, sim: Sim, lower: Vec3, upper: Vec3, num_per_row: int) -> Env:
        """A world of its own: coordinates are its own too, ``lower`` and ``upper`` have no effect."""
        sim.need_setup("create_env")
        sim.envs.append(Env(sim, len(sim.envs)))
        return sim.envs[-1]

    def create_actor(
        self,
        env: Env,
        asset: Any,
        pose: Any,
        name: str = "",
        group: int = -1,
        filter: int = -1,
        *segment: int,
    ) -> int:
        """Filter 0 lets the parts of the robot touch each other, above 0 they do not; −1 is 0."""
        env.sim.need_setup("create_actor")
        if not isinstance(asset, Asset) or not isinstance(pose, Transform):
            got = f"{type(asset).__name__} and {type(pose).__name__}"
            raise TypeError(
                f"create_actor takes what load_asset returns and a gymapi.Transform, got {got}"
            )
        env.actors.append(Actor(asset, pose, name or f"actor_{len(env.actors)}", group, filter))
        return len(env.actors) - 1

    def find_actor_rigid_body_handle(self, env: Env, handle: int, name: str) -> int:
        """Number of a body in its environment, −1 if there is none."""
        names = env.actor(handle).asset.body_names
        before = sum(len(actor.asset.body_names) for actor in env.actors[:handle])
        return before + names.index(name) if name in names else -1

    get_actor_count = staticmethod(lambda env: len(env.actors))
    get_actor_handle = staticmethod(lambda env, index: index if env.actor(index) else -1)
    find_actor_handle = staticmethod(
        lambda env, name: next((i for i, a in enumerate(env.actors) if a.name == name), -1)
    )
    get_actor_name = staticmethod(lambda env, handle: env.actor(handle).name)
    get_actor_rigid_body_count = staticmethod(lambda env, handle: len(env.actor(handle).mass))
    get_actor_rigid_shape_count = staticmethod(lambda env, handle: len(env.actor(handle).friction))
    get_actor_rigid_shape_properties = staticmethod(
        lambda env, handle: _shapes(env.actor(handle).friction)
    )
    get_actor_dof_properties = staticmethod(lambda env, handle: env.actor(handle).dofs.copy())
    enable_actor_dof_force_sensors = staticmethod(lambda env, handle: bool(env.actor(handle)))

    def get_actor_rigid_body_properties(
        self, env: Env, handle: int
    ) -> list[gymapi.RigidBodyProperties]:
        bodies = zip(env.actor(handle).mass, env.actor(handle).com, strict=True)
        return [gymapi.RigidBodyProperties(mass, Vec3(*com)) for mass, com in bodies]

    def set_actor_dof_properties(self, env: Env, handle: int, props: Array) -> bool:
        own, given = env.actor(handle).dofs, np.array(props)
        if given.dtype != own.dtype or given.shape != own.shape:
            wrong = f"set_actor_dof_properties: got {given.dtype} of shape {given.shape}"
            raise ValueError(
                f"{wrong}, expected what get_asset_dof_properties gives, of shape {own.shape}"
            )
        for name in ("velocity", "stiffness", "damping", "effort", "armature", "friction"):
            if not ((given[name] >= 0) & np.isfinite(given[name])).all():
                wrong = f"{name} must be finite and not negative, got {given[name].tolist()}"
                raise ValueError(f"set_actor_dof_properties: {wrong}")
        if not (~given["hasLimits"] | (given["lower"] <= given["upper"])).all():
            wrong = f"lower must not be above upper, got {given['lower'].tolist()} and {given['upper'].tolist()}"
            raise ValueError(f"set_actor_dof_properties: {wrong}")
        if not np.isin(given["driveMode"], gymapi.DRIVE_MODES).all():
            modes = f"DOF_MODE_NONE, _POS or _EFFORT {gymapi.DRIVE_MODES}"
            wrong = f"driveMode must be {modes}, got {given['driveMode'].tolist()}"
            raise ValueError(f"set_actor_dof_properties: {wrong}")
        return env.sim.set_actor(env, handle, dofs=given)

    def set_actor_rigid_body_properties(
        self,
        env: Env,
        handle: int,
        props: Sequence[gymapi.RigidBodyProperties],
        recomputeInertia: bool = False,
    ) -> bool:
        """Masses and centres of mass; inertias grow with the masses, whether ``recomputeInertia`` or not."""
        mass, bodies = np.array([prop.mass for prop in props]), len(env.actor(handle).mass)
        if len(mass) != bodies or not (mass > 0).all():
            wrong = f"expected {bodies} bodies with masses above 0, got {mass.tolist()}"
            raise ValueError(f"set_actor_rigid_body_properties: {wrong}")
        return env.sim.set_actor(
            env, handle, mass=mass, com=np.array([prop.com.values for prop in props])
        )

    def set_actor_rigid_shape_properties(self, env: Env, handle: int, props: Shapes) -> bool:
        return env.sim.set_actor(
            env, handle, friction=_friction(props, len(env.actor(handle).friction))
        )

    def _refuse(self, *args: Any) -> None:
        raise NotImplementedError(
            "actors have no tendons and cannot be scaled: all environments have one model"
        )

    get_actor_tendon_properties = set_actor_tendon_properties = set_actor_scale = _refuse

    # --- Forces -------------------------------------------------------------------------------------------------------

    def _drive(self, function: str, mode: int, sim: Sim, values: Descriptor) -> bool:
        """Forces for the next ``simulate``, on DOFs in mode EFFORT; targets until the next, on those in mode POS."""
        state = sim.running(function)
        state.drive(state.checked(function, values, "dofs", 1), mode)
        return True

    set_dof_actuation_force_tensor = partialmethod(
        _drive, "set_dof_actuation_force_tensor", gymapi.DOF_MODE_EFFORT
    )
    set_dof_position_target_tensor = partialmethod(
        _drive, "set_dof_position_target_tensor", gymapi.DOF_MODE_POS
    )

    def apply_rigid_body_force_tensors(
        self, sim: Sim, forceTensor: Any = None, torqueTensor: Any = None, space: int = 0
    ) -> bool:
        """At the centres of mass, for the next ``simulate``."""
        sim.running("apply_rigid_body_force_tensors").apply_body_forces(
            forceTensor, torqueTensor, space
        )
        return True

    # --- Pictures -----------------------------------------------------------------------------------------------------

    create_camera_sensor = staticmethod(
        lambda env, properties: Camera(env.sim, properties, env.index)
    )
    set_camera_location = staticmethod(
        lambda camera, env, position, target: camera.look_at(position, target)
    )

    def get_camera_image(self, sim: Sim, env: Env, camera: Camera, type: int) -> Array:
        """IMAGE_COLOR: red, green, blue and 255 of each pixel. Shape: (height, 4 · width), uint8."""
        if type != gymapi.IMAGE_COLOR:
            raise NotImplementedError(f"get_camera_image draws IMAGE_COLOR alone, got {type!r}")
        picture = camera.picture()
        return np.dstack((picture, np.full_like(picture[..., :1], 255))).reshape(len(picture), -1)

    create_viewer = Viewer
    draw_viewer = staticmethod(lambda viewer, sim, render_collision=False: viewer.draw())
    destroy_viewer = staticmethod(lambda viewer: viewer.close())
    query_viewer_has_closed = staticmethod(lambda viewer: not viewer.open)
    query_viewer_action_events = staticmethod(
        lambda viewer: list[Any]()
    )  # the window keeps its keys
    write_viewer_image_to_file = staticmethod(lambda viewer, filename: viewer.write(filename))

    viewer_camera_look_at = staticmethod(
        lambda viewer, env, position, target: viewer.look_at(position, target)
    )

    def sync_frame_time(self, sim: Sim) -> None:
        """Wait until as much time has passed as was simulated since the last call."""
        (then, frame), count = sim.shown, self.get_frame_count(sim)
        time.sleep(min(max(then + (count - frame) * sim.params.dt - time.monotonic(), 0.0), 1.0))
        sim.shown = time.monotonic(), count

    def __getattr__(self, name: str) -> Any:
        if name in WITHOUT_EFFECT:
            return lambda *args: True
        if name in TENSOR_FUNCTIONS:
            return partial(_tensor_function, name, *TENSOR_FUNCTIONS[name])
        return refuse("gym")(name)


def _tensor_function(
    function: str,
    verb: str,
    name: str,
    sim: Sim,
    values: Any = None,
    actors: Any = None,
    count: int = 0,
) -> Descriptor | bool:
    """``acquire_…_tensor``, ``refresh_…_tensor``, ``set_…_tensor`` and ``set_…_tensor_indexed``."""
    state = sim.running(function)
    if verb == "acquire":
        return state.acquire(name)
    if verb == "refresh":
        state.refresh(name)
        return True
    kind = "actors" if name == "actor_root_state" else "dofs"
    rows = state.checked_actors(function, actors, count) if function.endswith("_indexed") else None
    state.write(name, state.checked(function, values, kind, TENSORS[name]), rows)
    return True


def _shapes(friction: Array) -> list[gymapi.RigidShapeProperties]:
    return [gymapi.RigidShapeProperties(value) for value in friction]


def _friction(props: Shapes, shapes: int) -> Array:
    """Friction of each shape; a warning where a restitution is asked for."""
    friction = np.array([prop.friction for prop in props])
    if len(friction) != shapes or not (friction >= 0).all():
        wrong = f"expected {shapes} shapes with frictions of at least 0, got {friction.tolist()}"
        raise ValueError(f"rigid shape properties: {wrong}")
    if any(prop.filter for prop in props):
        raise ValueError(
            "rigid shape properties: a filter of one shape cannot be kept, give one to create_actor"
        )
    if any(prop.restitution for prop in props):
        warnings.warn("restitution has no effect in MuJoCo: contacts do not bounce", stacklevel=3)
    return friction
