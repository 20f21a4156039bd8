"""The scene, its robots, objects and sensors as tasks written for Isaac Lab see them, over the simulation."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from functools import partialmethod
from typing import Any, ClassVar

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.checks import check_choice, did_you_mean, whole_number
from legged_envs.robots import RobotCfg
from legged_envs.sim import ObjectCfg, PlacedRobot
from legged_envs.sim.quantities import ROBOT_QUANTITIES, Quantities
from legged_envs.state import Stateful
from legged_envs.workflows.isaac_cfg import InteractiveSceneCfg, RigidBodyMaterialCfg, configclass, match_names

Ids = Tensor | Sequence[int] | slice | None
ArticulationCfg, RigidObjectCfg = RobotCfg, ObjectCfg
SCENE: ContextVar[Any] = ContextVar("SCENE", default=None)
"""The scene that is being set up: entities are made from their configuration alone."""


def scene_of(entity: Any) -> Any:
    if (scene := SCENE.get()) is None:
        where = "in _setup_scene, or by a field of the configuration of the scene"
        raise RuntimeError(f"{type(entity).__name__}(cfg) finds its scene only where one is set up: make it {where}")
    if isinstance(entity, Stateful):
        scene.entities[f"{type(entity).__name__} {len(scene.entities)}"] = entity
    return scene


class TerrainImporter:
    """The ground: a plane at z = 0."""

    def __init__(self, cfg: Any):
        check_choice("TerrainImporterCfg.terrain_type", cfg.terrain_type, ("plane",))
        cfg.physics_material.check("TerrainImporterCfg.physics_material")
        self.cfg, self.env_origins = cfg, scene_of(self).env_origins


@configclass
class TerrainImporterCfg:
    class_type: Any = TerrainImporter
    terrain_type: str = "plane"
    physics_material: RigidBodyMaterialCfg = RigidBodyMaterialCfg()
    prim_path, collision_group, num_envs, env_spacing, debug_vis = "/World/ground", -1, 1, 0.0, False
    """Are accepted."""


def _join(*names: str) -> Callable[[Any], Tensor]:
    return lambda data: torch.cat([getattr(data, name) for name in names], dim=-1)


def _in_base_frame(data: Any, vectors: Tensor) -> Tensor:
    return rotation.rotate_inverse(data.root_quat_w, vectors.unsqueeze(1)).squeeze(1)


class EntityData:
    """What the simulation knows of one robot or object, in every environment, read when it is asked for: also between
    the physics steps of one control step. Units and lags as :class:`~legged_envs.sim.Simulation`, quaternions are
    (w, x, y, z), velocities are those of origins."""

    SAME = (*ROBOT_QUANTITIES, *Quantities.__annotations__)
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
        for name, value in {"GRAVITY_VEC_W": (0.0, 0.0, -1.0), "FORWARD_VEC_B": (1.0, 0.0, 0.0), **per_robot}.items():
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
        raise AttributeError(f"there is no data {name!r}; {did_you_mean(name, known)}there are: {', '.join(known)}")


class RigidObject(Stateful):
    """An object of the scene, found by its configuration."""

    def __init__(self, cfg: Any):
        scene, self.cfg = scene_of(self), cfg
        core, sim, own = scene.core, scene.core.sim, scene.core.cfg.scene
        there = {"robot": (core.cfg.robot, sim), **{n: (each, sim.objects[n]) for n, each in own.objects.items()}}
        there |= {name: (each, sim.robots[name]) for name, each in own.robots.items()}
        taken = [each.name for each in scene.entities.values() if hasattr(each, "name")]
        wanted = getattr(cfg, "robot", cfg)
        names = [name for name, (each, _) in there.items() if wanted in (each, getattr(each, "robot", None))]
        if not names:
            how = "make it a field of the configuration of the environment or of its scene"
            raise ValueError(f"{type(self).__name__}: {cfg!r} is not in the simulation: {how}")
        self.name = next((name for name in names if name not in taken), names[0])
        """Its name in the simulation."""
        self._body, self._ALL_INDICES = there[self.name][1], core._all_ids
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

    def _find(self, kind: str, name_keys: Any, preserve_order: bool = False) -> tuple[list[int], list[str]]:
        return match_names(kind, name_keys, getattr(self, f"{kind}_names"), preserve_order)

    find_joints, find_bodies = partialmethod(_find, "joint"), partialmethod(_find, "body")


class Articulation(RigidObject, HasBodies):
    """A robot of the scene, found by its configuration."""

    STATE = ("_targets",)
    is_fixed_base, num_instances = False, property(lambda self: len(self._ALL_INDICES))

    def _data(self, core: Any) -> EntityData:
        robot, state = self._body.robot, core.robots[self.name]
        self.joint_names, self.body_names = list(robot.joint_names), list(self._body.body_names)
        self.num_joints, self.num_bodies, self._kinds = len(self.joint_names), len(self.body_names), robot.actuators
        limits = {f"{name}joint_pos_limits": state.joint_pos_limits for name in ("", "soft_")}
        limits |= {"joint_vel_limits": state.joint_vel_limits, "joint_effort_limits": state.torque_limits}
        pose = state.default_joint_pos
        data = EntityData(self._body, default_joint_pos=pose, default_joint_vel=torch.zeros_like(pose), **limits)
        self._rest = data.default_joint_pos * torch.tensor([kind == "position" for kind in self._kinds])
        self._targets = self._rest.clone()
        return data

    def reset(self, env_ids: Ids = None) -> None:
        """Return to the targets of the default pose."""
        ids = self._ids(env_ids)
        self._targets[ids] = self._rest[ids]

    def _set_targets(self, kind: str, target: Tensor, joint_ids: Ids = None, env_ids: Ids = None) -> None:
        """Shape: (num_envs or len(env_ids), num_joints or len(joint_ids)); a joint takes what its actuator does."""
        columns, ids = slice(None) if joint_ids is None else joint_ids, self._ids(env_ids)
        for i in torch.arange(self.num_joints)[columns].tolist():
            if self._kinds[i] != kind:
                wrong = f"joint {self.joint_names[i]!r} has a {self._kinds[i]} actuator"
                raise ValueError(f"Articulation: {wrong}, which takes no {kind} target: set RobotCfg.actuators")
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


@configclass
class ContactSensorCfg:
    prim_path: str = ".*"
    """What stands after the last ``/`` is a regular expression for the bodies; before it may stand the robot."""
    update_period: float = 0.0
    """Least time between two readings, s; 0 reads after each physics step, or after each control step."""
    history_length: int = 0
    force_threshold: float = 1.0
    """N, above which a body is in contact."""
    track_air_time = debug_vis = False
    """Are accepted: the times are always there."""


class ContactSensor(HasBodies):
    """Contact forces of some bodies of a robot, ``net_forces_w_history``, N, the newest first, (num_envs, history,
    num_bodies, 3); and ``last_air_time``, ``current_air_time``, ``last_contact_time``, ``current_contact_time``, the
    duration of the last and of the present swing and stance, s, 0 where there is none, (num_envs, num_bodies). All are
    0 after a reset."""

    TIMES = ("last_air_time", "current_air_time", "last_contact_time", "current_contact_time")
    STATE = ("net_forces_w_history", *TIMES, "_elapsed")
    data = property(lambda self: self)
    net_forces_w = property(lambda self: self.net_forces_w_history[:, 0])

    def __init__(self, cfg: ContactSensorCfg):
        robots = scene_of(self).core.sim.robots
        whole_number("ContactSensorCfg.history_length", cfg.history_length, 0)
        *path, bodies = cfg.prim_path.split("/")
        name = next((part.lower() for part in path if part.lower() in robots), "robot")
        self.cfg, self._body, self._elapsed = cfg, robots[name], 0.0
        self._ids, self.body_names = match_names("body", bodies, self._body.body_names)
        self.num_bodies, force = len(self.body_names), self._body.contact_force_w[:, self._ids]
        self.net_forces_w_history = torch.zeros_like(force).unsqueeze(1).repeat(1, max(1, cfg.history_length), 1, 1)
        vars(self).update({name: torch.zeros_like(force[..., 0]) for name in self.TIMES})

    def reset(self, env_ids: Ids = None) -> None:
        for name in ("net_forces_w_history", *self.TIMES):
            getattr(self, name)[slice(None) if env_ids is None else env_ids] = 0.0

    def update(self, dt: float) -> None:
        self._elapsed += dt
        if self._elapsed < self.cfg.update_period - 1e-6:
            return
        dt, self._elapsed = self._elapsed, 0.0
        force = self._body.contact_force_w[:, self._ids]
        self.net_forces_w_history = torch.cat((force.unsqueeze(1), self.net_forces_w_history[:, :-1]), dim=1)
        touching = torch.linalg.vector_norm(force, dim=-1) > self.cfg.force_threshold
        for kind, is_so in (("air", ~touching), ("contact", touching)):
            current, last = getattr(self, f"current_{kind}_time"), getattr(self, f"last_{kind}_time")
            setattr(self, f"last_{kind}_time", torch.where(~is_so & (current > 0.0), current + dt, last))
            setattr(self, f"current_{kind}_time", (current + dt) * is_so)

    def _first(self, kind: str, dt: float, abs_tol: float = 1e-8) -> Tensor:
        """Which bodies touched down, or lifted off, within the last ``dt`` s. Shape: (num_envs, num_bodies), bool."""
        time = getattr(self, f"current_{kind}_time")
        return (time > 0.0) & (time < dt + abs_tol)

    compute_first_contact, compute_first_air = partialmethod(_first, "contact"), partialmethod(_first, "air")


KINDS: dict[type, tuple[Any, str]] = {RobotCfg: (Articulation, "articulations")}
KINDS |= {PlacedRobot: KINDS[RobotCfg], ObjectCfg: (RigidObject, "rigid_objects")}
KINDS |= {ContactSensorCfg: (ContactSensor, "sensors"), TerrainImporterCfg: (TerrainImporter, "terrains")}
"""What may be a field of the configuration of a scene → what is made of it, and the attribute of the scene for it."""


class InteractiveScene(Stateful):
    """The entities of every environment by name; ``core`` has the simulation."""

    STATE = ("entities",)

    def __init__(self, cfg: InteractiveSceneCfg, core: Any):
        self.cfg, self.core, self.num_envs, self.device = cfg, core, core.num_envs, core.device
        self.env_origins = torch.zeros(self.num_envs, 3, device=self.device)
        """0: every environment is a world of its own. Shape: (num_envs, 3)."""
        self.kinds: list[dict[str, Any]] = [{} for _ in range(4)]
        self.articulations, self.rigid_objects, self.sensors, self.terrains = self.kinds
        self.entities: dict[str, Any] = {}
        """All robots, objects and sensors that were made, whether they have a name or not."""
        self.set_up(self._make_entities)

    def _make_entities(self) -> None:
        for name, entity in self.cfg.entities().items():
            if type(entity) not in KINDS:
                expected = ", ".join(kind.__name__ for kind in KINDS)
                raise ValueError(f"{type(self.cfg).__name__}.{name} must be one of {expected}, got {entity!r}")
            make, kind = KINDS[type(entity)]
            getattr(self, kind)[name] = make(entity)

    def set_up(self, make: Callable[[], None]) -> None:
        """Call ``make``: entities made in it belong to this scene."""
        context = copy_context()
        context.run(SCENE.set, self)
        context.run(make)

    def __getitem__(self, name: str) -> Any:
        entities = {name: entity for kind in self.kinds for name, entity in kind.items()}
        if name not in entities:
            raise KeyError(f"the scene has no {name!r}; {did_you_mean(name, entities)}it has: {', '.join(entities)}")
        return entities[name]

    def clone_environments(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: all environments exist, and cannot touch each other."""

    filter_collisions = write_data_to_sim = clone_environments
    terrain = property(lambda self: next(iter(self.terrains.values()), None))

    def reset(self, env_ids: Ids = None) -> None:
        for entity in self.entities.values():
            entity.reset(env_ids)

    def update(self, dt: float) -> None:
        """Read the sensors, ``dt`` s of physics after the last time."""
        for sensor in [each for each in self.entities.values() if hasattr(each, "update")]:
            sensor.update(dt)

    def refresh(self) -> None:
        """Bring what recordings read up to date, as far as the robots' own states do not."""
        for entity in self.entities.values():
            for name in getattr(entity.data, "lagging", ()):
                getattr(entity.data.source, name)
