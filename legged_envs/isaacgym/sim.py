"""Simulations: what is in them, and each environment's own parameters."""

import copy
import os
from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import torch

from legged_envs.isaacgym.assets import Array, Asset
from legged_envs.isaacgym.gymapi import DOF_MODE_EFFORT, DOF_MODE_POS, SimParams, Transform
from legged_envs.isaacgym.scene import Collisions, Ground, Part, compile_scene, find_parts
from legged_envs.isaacgym.state import State

_CONSTANTS = {"body_mass", "body_inertia", "body_ipos", "dof_armature"}
"""Fields from which the engine derives others."""
Fields = list[tuple[str, tuple[Any, ...], Array]]
"""Names of fields of the model, parts of them, and values."""


class Actor:
    """One robot in one environment, with what may differ from the others of its kind."""

    __slots__ = ("asset", "collision_filter", "com", "dofs", "friction", "group", "mass", "name", "pose")

    def __init__(self, asset: Asset, pose: Transform, name: str, group: int, collision_filter: int):
        self.asset, self.name, self.group, self.collision_filter = asset, name, group, max(collision_filter, 0)
        self.pose = (*pose.p.values, pose.r.x, pose.r.y, pose.r.z, pose.r.w)
        self.friction, self.mass, self.com, self.dofs = asset.friction, asset.mass, asset.com, asset.dof_properties


class Env:
    """What ``create_env`` returns."""

    def __init__(self, sim: "Sim", index: int):
        self.sim, self.index, self.actors = sim, index, list[Actor]()

    def actor(self, handle: int) -> Actor:
        if not 0 <= handle < len(self.actors):
            raise ValueError(f"environment {self.index} has {len(self.actors)} actors, there is none with {handle=}")
        return self.actors[handle]

    def collisions(self) -> Collisions:
        """Actors touch in the same group, or in group −1, unless their filters have a bit in common."""
        rows = [[a.group == b.group or -1 in (a.group, b.group) for b in self.actors] for a in self.actors]
        filters = [actor.collision_filter for actor in self.actors]
        pairs = (zip(filters, row, strict=True) for row in rows)
        return tuple(tuple(met and not a & b for b, met in row) for a, row in zip(filters, pairs, strict=True))


class Sim:
    """What ``create_sim`` returns. Tensors are on ``device``, physics is on the CPU."""

    model: mujoco.MjModel
    parts: list[Part]
    state: State

    def __init__(self, params: SimParams, device: torch.device):
        self.params, self.device = copy.deepcopy(params), device
        self.ground: Ground | None = None
        self.envs = list[Env]()
        self.prepared, self.shown = False, (0.0, 0)

    def need_prepared(self, function: str, prepared: bool = True) -> None:
        if self.prepared is not prepared:
            when = "before prepare_sim: call gym.prepare_sim(sim) first" if prepared else "after prepare_sim"
            raise RuntimeError(f"gym.{function} was called {when}; actors come before prepare_sim, tensors after")

    def prepare(self) -> None:
        """Compile the model, of which every environment must have the same actors, and give each its own parameters:
        what is the same for all goes into the model."""
        self.need_prepared("prepare_sim", False)
        self._check_envs()
        self.model = model = self.compile()
        self.parts, fields = find_parts(model, [actor.asset for actor in self.envs[0].actors]), Fields()
        for k, part in enumerate(self.parts):
            actors = [env.actors[k] for env in self.envs]
            own = {name: np.stack([getattr(actor, name) for actor in actors]) for name in ("friction", "mass", "com")}
            fields += self._shape_fields(part, own["friction"])
            fields += self._body_fields(part, actors[0].asset, own["mass"], own["com"])
            fields += self._dof_fields(part, np.stack([actor.dofs for actor in actors]))
            if part.floats:
                model.qpos0[part.qpos : part.qpos + 7] = np.array(actors[0].pose)[[0, 1, 2, 6, 3, 4, 5]]
        for name, where, values in fields:
            getattr(model, name)[where] = values[0]
        mujoco.mj_setConst(model, mujoco.MjData(model))
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = min(int(self.params.physx.num_threads) or cores, cores)
        batch = mujoco.batch.Batch(model, len(self.envs), threads)
        modes = [np.concatenate([actor.dofs["driveMode"] for actor in env.actors]) for env in self.envs]
        self.state = State(batch, self.parts, self.params.substeps, torch.from_numpy(np.stack(modes)), self.device)
        for name, where, values in fields:
            if (values != values[0]).any():
                batch.expand(name)[(slice(None), *where)] = values
                self.state.constants_changed |= name in _CONSTANTS
        poses = torch.tensor([[actor.pose for actor in env.actors] for env in self.envs], dtype=torch.float64)
        self.state.start(torch.nn.functional.pad(poses, (0, 6)))
        self.prepared = True

    def compile(self, visuals: bool = False) -> mujoco.MjModel:
        first = self.envs[0]
        return compile_scene(
            [actor.asset for actor in first.actors], first.collisions(), self.ground, self.params, visuals
        )

    def _check_envs(self) -> None:
        if not self.envs or not self.envs[0].actors:
            raise RuntimeError("gym.prepare_sim needs actors: call create_env and create_actor first")
        assets, collisions = [actor.asset for actor in self.envs[0].actors], self.envs[0].collisions()
        for env in self.envs:
            if [actor.asset for actor in env.actors] != assets or env.collisions() != collisions:
                what = "other actors, groups or collision filters than environment 0"
                raise ValueError(f"environment {env.index} has {what}: all must have the same assets in the same order")

    def _shape_fields(self, part: Part, friction: Array) -> Fields:
        """Friction is the average of the shape's and the ground's (legged_gym, anymal_c_flat_config)."""
        average = friction if self.ground is None else 0.5 * (friction + self.ground.friction)
        return [("geom_friction", (part.geoms, 0), average)]

    def _body_fields(self, part: Part, asset: Asset, mass: Array, com: Array) -> Fields:
        """The inertia grows with the mass."""
        inertia = asset.inertia * (mass / asset.mass)[..., None]
        values = {"body_mass": mass, "body_inertia": inertia, "body_ipos": com}
        return [(name, (part.bodies,), value) for name, value in values.items()]

    def _dof_fields(self, part: Part, props: Array) -> Fields:
        """The law of each drive, limited by its effort. POS: kp (target − q) − (kd + kp h) v with the physics step h,
        which makes kp implicit as kd is, as in PhysX; EFFORT: what is set, − kd v; NONE: − kd v."""
        mode, kd = props["driveMode"], props["damping"].astype(float)
        kp = np.where(mode == DOF_MODE_POS, props["stiffness"], 0.0)
        effort, dofs = props["effort"].astype(float), self.model.jnt_dofadr[part.joints]
        return [
            ("actuator_gainprm", (part.dofs, 0), np.where(mode == DOF_MODE_EFFORT, 1.0, kp)),
            ("actuator_biasprm", (part.dofs, 1), -kp),
            ("actuator_biasprm", (part.dofs, 2), -kd - kp * self.model.opt.timestep),
            ("actuator_forcerange", (part.dofs,), np.stack((-effort, effort), axis=-1)),
            ("dof_frictionloss", (dofs,), props["friction"].astype(float)),
            ("dof_armature", (dofs,), props["armature"].astype(float)),
            ("jnt_range", (part.joints,), np.stack((props["lower"], props["upper"]), axis=-1).astype(float)),
        ]

    def set_actor(self, env: Env, handle: int, **values: Array) -> None:
        """Set ``friction``, ``mass`` and ``com``, or ``dofs`` of an actor, before or after ``prepare_sim``."""
        actor = env.actor(handle)
        for name, value in values.items():
            setattr(actor, name, value)
        if not self.prepared:
            return
        part = self.parts[handle]
        if "friction" in values:
            fields = self._shape_fields(part, actor.friction)
        elif "mass" in values:
            fields = self._body_fields(part, actor.asset, actor.mass, actor.com)
        else:
            fields = self._dof_fields(part, actor.dofs)
            self.state.modes[env.index, part.dofs] = torch.from_numpy(actor.dofs["driveMode"].copy())
        for name, where, value in fields:
            own = self.state.batch.expand(name)[env.index]
            if (own[where] != value).any():
                own[where] = value
                self.state.constants_changed[env.index] |= name in _CONSTANTS

    def close(self) -> None:
        self.envs.clear()
        self.prepared = False
        del self.state, self.model

    def set_params(self, params: SimParams) -> None:
        if self.prepared:
            if (params.dt, params.substeps) != (self.params.dt, self.params.substeps):
                wrong = (
                    f"set_sim_params: dt and substeps stay {self.params.dt}, {self.params.substeps} after prepare_sim"
                )
                raise ValueError(f"{wrong}, got {params.dt}, {params.substeps}")
            self.state.batch.expand("opt.gravity")[:] = params.gravity.values
        self.params = copy.deepcopy(params)
