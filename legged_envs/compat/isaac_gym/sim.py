"""Simulations: what is in them, and each environment's own parameters."""

import copy
import os
from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import torch

from legged_envs.compat.isaac_gym.assets import Array, Asset
from legged_envs.compat.isaac_gym.records import (
    DOF_MODE_EFFORT,
    DOF_MODE_POS,
    LARGEST,
    SimParams,
    Transform,
)
from legged_envs.compat.isaac_gym.scene import Collisions, Ground, Part, compile_scene, find_parts
from legged_envs.compat.isaac_gym.state import State

_CONSTANTS = {"body_mass", "body_inertia", "body_ipos", "dof_armature"}
"""Fields from which the engine derives others."""
Fields = list[tuple[str, tuple[Any, ...], Array]]
"""Names of fields of the model, parts of them, and values."""


class Actor:
    """One robot in one environment, with what may differ from the others of its kind."""

    __slots__ = (
        "asset",
        "collision_filter",
        "com",
        "dofs",
        "friction",
        "group",
        "mass",
        "name",
        "pose",
    )

    def __init__(self, asset: Asset, pose: Transform, name: str, group: int, collision_filter: int):
        self.asset, self.name, self.group, self.collision_filter = (
            asset,
            name,
            group,
            max(collision_filter, 0),
        )
        self.pose = (*pose.p.values, pose.r.x, pose.r.y, pose.r.z, pose.r.w)
        self.friction, self.mass, self.com, self.dofs = (
            asset.friction,
            asset.mass,
            asset.com,
            asset.dof_properties,
        )

    def touches(self, other: "Actor") -> bool:
        """In the same group, or in group −1, unless their filters have a bit in common."""
        met = self.group == other.group or -1 in (self.group, other.group)
        return met and not self.collision_filter & other.collision_filter


class Env:
    """What ``create_env`` returns."""

    def __init__(self, sim: "Sim", index: int):
        self.sim, self.index, self.actors = sim, index, list[Actor]()

    def actor(self, handle: int) -> Actor:
        if not 0 <= handle < len(self.actors):
            raise ValueError(
                f"environment {self.index} has {len(self.actors)} actors, there is none with {handle=}"
            )
        return self.actors[handle]

    def collisions(self) -> Collisions:
        return tuple(tuple(a.touches(b) for b in self.actors) for a in self.actors)


class Sim:
    """What ``create_sim`` returns. Tensors are on ``device``, physics is on the CPU."""

    def __init__(self, params: SimParams, device: torch.device):
        self.params, self.device = copy.deepcopy(params), device
        self.ground: Ground | None = None
        self.state: State | None = None
        self.envs, self.shown, self.destroyed = list[Env](), (0.0, 0), False

    def need_setup(self, function: str) -> None:
        """Raise a RuntimeError after ``prepare_sim``."""
        self._need_existence(function)
        if self.state is not None:
            raise RuntimeError(
                f"gym.{function} was called after prepare_sim: all actors come before it"
            )

    def running(self, function: str) -> State:
        """What runs after ``prepare_sim``, a RuntimeError before it."""
        self._need_existence(function)
        if self.state is None:
            raise RuntimeError(
                f"gym.{function} was called before prepare_sim: call gym.prepare_sim(sim) first"
            )
        return self.state

    def destroy(self) -> None:
        self.state, self.envs, self.destroyed = None, [], True

    def _need_existence(self, function: str) -> None:
        if self.destroyed:
            raise RuntimeError(
                f"gym.{function} was called after destroy_sim: call gym.create_sim for another"
            )

    @torch.inference_mode(False)
    def prepare(self) -> bool:
        """Compile the model, of which every environment must have the same actors, and give each its own parameters:
        what is the same for all goes into the model."""
        self.need_setup("prepare_sim")
        self._check_envs()
        model, fields = self.compile(), Fields()
        parts = find_parts(model, [actor.asset for actor in self.envs[0].actors])
        for k, part in enumerate(parts):
            actors = [env.actors[k] for env in self.envs]
            own = (
                np.stack([getattr(actor, name) for actor in actors])
                for name in ("friction", "mass", "com", "dofs")
            )
            fields += self._fields(model, part, actors[0].asset, *own)
            if part.floats:
                model.qpos0[part.qpos : part.qpos + 7] = np.array(actors[0].pose)[
                    [0, 1, 2, 6, 3, 4, 5]
                ]
        for name, where, values in fields:
            getattr(model, name)[where] = values[0]
        mujoco.mj_setConst(model, mujoco.MjData(model))
        cores = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
        threads = min(int(self.params.physx.num_threads) or cores, cores)
        batch = mujoco.batch.Batch(model, len(self.envs), threads)
        dofs = np.stack([np.concatenate([actor.dofs for actor in env.actors]) for env in self.envs])
        state = State(batch, parts, self.params.substeps, dofs, self.device)
        for name, where, values in fields:
            if (values != values[0]).any():
                batch.expand(name)[(slice(None), *where)] = values
                state.constants_changed |= name in _CONSTANTS
        poses = torch.tensor(
            [[actor.pose for actor in env.actors] for env in self.envs], dtype=torch.float64
        )
        state.update_constants()
        state.write("actor_root_state", torch.nn.functional.pad(poses, (0, 6)))
        self.state = state
        return True

    def compile(self, visuals: bool = False) -> mujoco.MjModel:
        assets, collisions = (
            [actor.asset for actor in self.envs[0].actors],
            self.envs[0].collisions(),
        )
        return compile_scene(assets, collisions, self.ground, self.params, visuals)

    def _check_envs(self) -> None:
        if not self.envs or not self.envs[0].actors:
            raise RuntimeError(
                "gym.prepare_sim needs actors: call create_env and create_actor first"
            )
        assets, collisions = (
            [actor.asset for actor in self.envs[0].actors],
            self.envs[0].collisions(),
        )
        for env in self.envs:
            if [actor.asset for actor in env.actors] != assets or env.collisions() != collisions:
                what = "other actors, groups or collision filters than environment 0"
                raise ValueError(
                    f"environment {env.index} has {what}: all must have the same assets in the same order"
                )

    def _fields(
        self,
        model: mujoco.MjModel,
        part: Part,
        asset: Asset,
        friction: Array,
        mass: Array,
        com: Array,
        dofs: Array,
    ) -> Fields:
        """Friction is the average of the shape's and the ground's (legged_gym, anymal_c_flat_config); inertias grow
        with masses. The law of each drive, limited by its effort, is in mode POS kp (target − q) − (kd + kp h) v with
        the physics step h, which makes kp implicit as kd is, as in PhysX; EFFORT: what is set, − kd v; NONE: − kd v."""
        average = friction if self.ground is None else 0.5 * (friction + self.ground.friction)
        mode, kd, effort = (
            dofs["driveMode"],
            dofs["damping"].astype(float),
            dofs["effort"].astype(float),
        )
        kp, columns = (
            np.where(mode == DOF_MODE_POS, dofs["stiffness"], 0.0),
            model.jnt_dofadr[part.joints],
        )
        limits = np.stack((dofs["lower"], dofs["upper"]), axis=-1).astype(float)
        limits = np.where(dofs["hasLimits"][..., None], limits, (-LARGEST, LARGEST))
        return [
            ("geom_friction", (part.geoms, 0), average),
            ("body_mass", (part.bodies,), mass),
            ("body_inertia", (part.bodies,), asset.inertia * (mass / asset.mass)[..., None]),
            ("body_ipos", (part.bodies,), com),
            ("actuator_gainprm", (part.dofs, 0), np.where(mode == DOF_MODE_EFFORT, 1.0, kp)),
            ("actuator_biasprm", (part.dofs, 1), -kp),
            ("actuator_biasprm", (part.dofs, 2), -kd - kp * model.opt.timestep),
            ("actuator_forcerange", (part.dofs,), np.stack((-effort, effort), axis=-1)),
            ("dof_frictionloss", (columns,), dofs["friction"].astype(float)),
            ("dof_armature", (columns,), dofs["armature"].astype(float)),
            ("jnt_range", (part.joints,), limits),
        ]

    def set_actor(self, env: Env, handle: int, **values: Array) -> bool:
        """Set ``friction``, ``mass`` and ``com``, or ``dofs`` of an actor, before or after ``prepare_sim``."""
        actor = env.actor(handle)
        for name, value in values.items():
            setattr(actor, name, value)
        if (state := self.state) is None:
            return True
        part, own = state.parts[handle], (actor.friction, actor.mass, actor.com, actor.dofs)
        for name, rows in (("driveMode", state.modes), ("velocity", state.max_speeds)):
            rows[env.index, part.dofs] = torch.from_numpy(actor.dofs[name].copy())
        for name, where, value in self._fields(state.model, part, actor.asset, *own):
            held = state.batch.expanded(name)
            if (
                (getattr(state.model, name) if held is None else held[env.index])[where] != value
            ).any():
                state.batch.expand(name)[env.index][where] = value
                state.constants_changed[env.index] |= name in _CONSTANTS
        return True

    def set_params(self, params: SimParams) -> None:
        """Gravity at any time, the rest before ``prepare_sim``."""
        params.check("set_sim_params")
        if self.state is not None:
            given, own = ((each.dt, each.substeps) for each in (params, self.params))
            if given != own:
                raise ValueError(
                    f"set_sim_params: dt and substeps stay {own} after prepare_sim, got {given}"
                )
            self.state.batch.expand("opt.gravity")[:] = params.gravity.values
        self.params = copy.deepcopy(params)
