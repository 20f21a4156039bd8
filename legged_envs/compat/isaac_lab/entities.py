"""Robots and objects of a scene in Isaac Lab's words, over the simulation."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partialmethod
from typing import Any, ClassVar

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.checks import did_you_mean, match_names
from legged_envs.robots import RobotCfg
from legged_envs.sim.cfg import ObjectCfg
from legged_envs.sim.quantities import QUANTITIES, ROBOT_QUANTITIES
from legged_envs.state import Stateful

Ids = Tensor | Sequence[int] | slice | None
ArticulationCfg, RigidObjectCfg = RobotCfg, ObjectCfg
SCENE: ContextVar[Any] = ContextVar("SCENE", default=None)
"""The scene that is being set up: entities are made from their configuration alone."""


def scene_of(entity: Any, scene: Any = None) -> Any:
    """The scene that ``entity`` belongs to: the given one, or else that which is being set up."""
    if (scene := scene or SCENE.get()) is None:
        where = "in _setup_scene, or by a field of the configuration of the scene"
        raise RuntimeError(
            f"{type(entity).__name__}(cfg) finds its scene only where one is set up: make it {where}"
        )
    if isinstance(entity, Stateful):
        scene.entities[f"{type(entity).__name__} {len(scene.entities)}"] = entity
    return scene


def _join(*names: str) -> Callable[[Any], Tensor]:
    return lambda data: torch.cat([getattr(data, name) for name in names], dim=-1)


def _in_base_frame(data: Any, vectors: Tensor) -> Tensor:
    return rotation.rotate_inverse(data.root_quat_w, vectors.unsqueeze(1)).squeeze(1)


class EntityData:
    """What the simulation knows of one robot or object, in every environment, read when it is asked for: also between
    the physics steps of one control step. Units and lags as :class:`~legged_envs.sim.Simulation`, quaternions are
    (w, x, y, z), velocities are those of origins."""

    SAME = QUANTITIES
    DERIVED: ClassVar[dict[str, Callable[[Any], Tensor]]] = {
        "root_ang_vel_w": lambda data: rotation.rotate(data.root_quat_w, data.root_ang_vel_b),
        "root_lin_vel_b": lambda data: _in_base_frame(data, data.root_lin_vel_w),
        "projected_gravity_b": lambda data: _in_base_frame(data, data.GRAVITY_VEC_W),
        "root_pose_w": _join("root_pos_w", "root_quat_w"),
        "root_vel_w": _join("root_lin_vel_w", "root_ang_vel_w"),
        "root_state_w": _join("root_pose_w", "root_vel_w"),
        "heading_w": lambda data: rotation.heading(data.root_quat_w),
        "body_pose_w": _join("body_pos_w", "body_quat_w"),
        "body_vel_w": _join("body_lin_vel_w", "body_ang_vel_w"),
        "body_state_w": _join("body_pose_w", "body_vel_w"),
        "applied_torque": lambda data: data.joint_torque,
        "joint_stiffness": lambda data: data.source.get_parameter("kp").clone(),
        "joint_damping": lambda data: data.source.get_parameter("kd").clone(),
        "joint_armature": lambda data: data.source.get_parameter("armature").clone(),
        "default_mass": lambda data: data.source.default_parameter("body_mass").clone(),
    }

    def __init__(self, source: Any, **per_robot: Any):
        self.source: Any = source
        self.lagging: dict[str, None] = {}
        """What was read and is not read for the robot's own state in each step anyway."""
        num_envs, device = len(source.root_pos_w), source.root_pos_w.device
        for name, value in {
            "GRAVITY_VEC_W": (0.0, 0.0, -1.0),
            "FORWARD_VEC_B": (1.0, 0.0, 0.0),
            **per_robot,
        }.items():
            row = torch.as_tensor(value, dtype=torch.float32, device=device)
            setattr(self, name, row.expand(num_envs, *row.shape).clone())
        self.default_root_state = self.root_state_w
        """Position, quaternion and velocities in the world at the start, zero velocities. Shape: (num_envs, 13)."""

    def __getattr__(self, name: str) -> Any:
        if name in self.SAME:
            self.lagging |= {} if name in ROBOT_QUANTITIES else {name: None}
            return getattr(self.source, name).clone()
        if name in self.DERIVED:
            return self.DERIVED[name](self)
        known = (*self.SAME, *self.DERIVED, *vars(self))
        raise AttributeError(
            f"there is no data {name!r}; {did_you_mean(name, known)}there are: {', '.join(known)}"
        )


class RigidObject(Stateful):
    """An object of the scene, found by its configuration."""

    def __init__(self, cfg: Any, scene: Any = None):
        scene, self.cfg = scene_of(self, scene), cfg
        core, sim, own = scene.core, scene.core.sim, scene.core.cfg.scene
        there = {
            "robot": (core.cfg.robot, sim),
            **{n: (each, sim.objects[n]) for n, each in own.objects.items()},
        }
        there |= {name: (each, sim.robots[name]) for name, each in own.robots.items()}
        taken = [each.name for each in scene.entities.values() if hasattr(each, "name")]
        wanted = getattr(cfg, "robot", cfg)
        names = [
            name
            for name, (each, _) in there.items()
            if wanted in (each, getattr(each, "robot", None))
        ]
        if not names:
            how = "make it a field of the configuration of the environment or of its scene"
            raise ValueError(f"{type(self).__name__}: {cfg!r} is not in the simulation: {how}")
        self.name = next((name for name in names if name not in taken), names[0])
        """Its name in the simulation."""
        self._body, self._ALL_INDICES = there[self.name][1], core.all_ids
        self.data = self._data(core)

    def _data(self, core: Any) -> EntityData:
        return EntityData(self._body)

    def reset(self, env_ids: Ids = None) -> None:
        """Begin episodes."""

    def _write_root(self, part: slice, values: Tensor, env_ids: Ids = None) -> None:
        """Position, quaternion, velocity and angular velocity in the world, (n, 13), the pose alone, (n, 7), or the
        velocities alone, (n, 6); the rest stays as it is."""
        ids = self._ids(env_ids)
        state = self.data.root_state_w[ids]
        state[:, part] = values
        pos, quat, lin_vel, ang_vel = state.split((3, 4, 3, 3), dim=1)
        ang_vel_b = rotation.rotate_inverse(quat, ang_vel.unsqueeze(1)).squeeze(1)
        self._body.write_root_state(ids, pos, quat, lin_vel, ang_vel_b)

    write_root_state_to_sim = partialmethod(_write_root, slice(0, 13))
    write_root_pose_to_sim = partialmethod(_write_root, slice(0, 7))
    write_root_velocity_to_sim = partialmethod(_write_root, slice(7, 13))

    def _ids(self, env_ids: Ids) -> Tensor:
        return self._ALL_INDICES[slice(None) if env_ids is None else env_ids]


class HasBodies(Stateful):
    """What has joints and bodies, which are found by their names or regular expressions: indices and names."""

    def _find(
        self, kind: str, name_keys: Any, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        return match_names(kind, name_keys, getattr(self, f"{kind}_names"), preserve_order)

    find_joints, find_bodies = partialmethod(_find, "joint"), partialmethod(_find, "body")


class Articulation(RigidObject, HasBodies):
    """A robot of the scene, found by its configuration."""

    STATE = ("_targets",)
    is_fixed_base, num_instances = False, property(lambda self: len(self._ALL_INDICES))

    def _data(self, core: Any) -> EntityData:
        robot, state = self._body.robot, core.robots[self.name]
        self.joint_names, self.body_names = list(robot.joint_names), list(self._body.body_names)
        self.num_joints, self.num_bodies, self._kinds = (
            len(self.joint_names),
            len(self.body_names),
            robot.actuators,
        )
        limits = {f"{name}joint_pos_limits": state.joint_pos_limits for name in ("", "soft_")}
        limits |= {
            "joint_vel_limits": state.joint_vel_limits,
            "joint_effort_limits": state.torque_limits,
        }
        pose = state.default_joint_pos
        data = EntityData(
            self._body, default_joint_pos=pose, default_joint_vel=torch.zeros_like(pose), **limits
        )
        servos = torch.tensor([kind == "position" for kind in self._kinds], device=pose.device)
        self._rest = data.default_joint_pos * servos
        self._targets = self._rest.clone()
        return data

    def reset(self, env_ids: Ids = None) -> None:
        """Return to the targets of the default pose."""
        ids = self._ids(env_ids)
        self._targets[ids] = self._rest[ids]

    def _set_targets(
        self, kind: str, target: Tensor, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Shape: (num_envs or len(env_ids), num_joints or len(joint_ids)); a joint takes what its actuator does."""
        columns, ids = slice(None) if joint_ids is None else joint_ids, self._ids(env_ids)
        for i in torch.arange(self.num_joints)[columns].tolist():
            if self._kinds[i] != kind:
                wrong = f"joint {self.joint_names[i]!r} has a {self._kinds[i]} actuator"
                raise ValueError(
                    f"Articulation: {wrong}, which takes no {kind} target: set RobotCfg.actuators"
                )
        rows = self._targets[ids]
        rows[:, columns] = target
        self._targets[ids] = rows
        self._body.set_joint_targets(self._targets)

    set_joint_position_target = partialmethod(_set_targets, "position")
    set_joint_velocity_target = partialmethod(_set_targets, "velocity")
    set_joint_effort_target = partialmethod(_set_targets, "torque")

    def write_joint_state_to_sim(
        self, position: Any, velocity: Any, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """rad and rad/s. Shapes: (n, num_joints or len(joint_ids))."""
        ids, columns = self._ids(env_ids), slice(None) if joint_ids is None else joint_ids
        pos, vel = self.data.joint_pos[ids], self.data.joint_vel[ids]
        pos[:, columns], vel[:, columns] = position, velocity
        self._body.write_joint_state(ids, pos, vel)
