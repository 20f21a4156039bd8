"""The scene as tasks written for Isaac Lab see it, under its names, over the simulation."""

import copy
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, field
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.checks import check_choice, check_known, did_you_mean, whole_number
from legged_envs.configuration import Configuration
from legged_envs.robots import RobotCfg
from legged_envs.sim import SimCfg
from legged_envs.sim.simulation import Quantities, RobotQuantities
from legged_envs.state import Stateful

Ids = Tensor | Sequence[int] | slice | None
ArticulationCfg = RobotCfg
_SCENE: ContextVar["InteractiveScene | None"] = ContextVar("_SCENE", default=None)
"""The scene that is being set up: entities are made from their configuration alone."""


def configclass(cls: Any) -> Any:
    """Make ``cls`` a configuration: what it assigns is a field, annotated or not, mutable defaults are copied, unknown
    fields are refused. Functions, properties and nested classes are no fields. It has ``replace`` and ``copy``."""
    annotations = dict(inspect.get_annotations(cls))
    for name, value in dict(vars(cls)).items():
        is_field = not (name.startswith("__") or isinstance(value, (type, property, classmethod, staticmethod)))
        if is_field and name not in annotations and not inspect.isfunction(value):
            annotations[name] = type(value)
    for name in annotations:
        value = vars(cls).get(name, getattr(cls, name, MISSING))
        if value is MISSING:
            setattr(cls, name, field(default_factory=lambda: MISSING))
        elif type(value).__hash__ is None:
            setattr(cls, name, field(default_factory=partial(copy.deepcopy, value)))
    cls.__annotations__ = annotations
    cls = dataclasses.dataclass(repr=False)(cls)
    if issubclass(cls, Copied):
        return cls
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls.__name__, (cls, Copied), names)


class Copied(Configuration):
    """What :func:`configclass` adds to a class."""

    def replace(self, **changes: Any) -> Any:
        """A copy with other values of some fields."""
        return dataclasses.replace(self.copy(), **changes)

    def copy(self) -> Any:
        return copy.deepcopy(self)


@configclass
class RigidBodyMaterialCfg(Copied):
    """The ground's material; the robot's own friction acts on it, so that there is none but the default one, and one
    of friction 1. ``restitution`` must be 0."""

    static_friction: float = 0.5
    dynamic_friction: float = 0.5
    restitution: float = 0.0
    friction_combine_mode: str = "average"
    restitution_combine_mode: str = "average"

    def check(self, name: str) -> None:
        friction = self.static_friction, self.dynamic_friction
        if friction not in ((0.5, 0.5), (1.0, 1.0)) or self.restitution != 0.0:
            how = "randomise the robot's friction by an event instead: the ground takes it as it is"
            raise ValueError(f"{name} must be of friction 0.5 or 1 and restitution 0, got {self!r}: {how}")


@configclass
class SimulationCfg(Copied):
    """Physics settings, those of :class:`~legged_envs.sim.SimCfg` beside Isaac Lab's."""

    dt: float = 1.0 / 60.0
    """Physics time step, s."""
    render_interval: int = 1
    """Is accepted: pictures are drawn when they are asked for."""
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    device: str = "cpu"
    physics_material: RigidBodyMaterialCfg = RigidBodyMaterialCfg()
    iterations: int = 10
    ls_iterations: int = 20
    num_threads: int = 0

    def physics(self, decimation: int) -> SimCfg:
        if tuple(self.gravity) != (0.0, 0.0, -9.81):
            raise ValueError(f"SimulationCfg.gravity must be (0, 0, -9.81), got {self.gravity!r}")
        self.physics_material.check("SimulationCfg.physics_material")
        return SimCfg(self.dt, decimation, self.iterations, self.ls_iterations, self.num_threads)


@configclass
class TerrainImporterCfg(Copied):
    """The ground, a plane at z = 0; ``class_type(cfg)`` has its ``env_origins``."""

    prim_path: str = "/World/ground"
    terrain_type: str = "plane"
    collision_group: int = -1
    physics_material: RigidBodyMaterialCfg = RigidBodyMaterialCfg()
    num_envs: int = 1
    env_spacing: float = 0.0
    debug_vis: bool = False

    @property
    def class_type(self) -> "type[TerrainImporter]":
        return TerrainImporter


class TerrainImporter:
    def __init__(self, cfg: TerrainImporterCfg):
        check_choice("TerrainImporterCfg.terrain_type", cfg.terrain_type, ("plane",))
        cfg.physics_material.check("TerrainImporterCfg.physics_material")
        self.cfg, self.env_origins = cfg, _scene_of(self).env_origins


@configclass
class ContactSensorCfg(Copied):
    prim_path: str = ".*"
    """What stands after the last ``/`` is a regular expression for the bodies; before it may stand the robot."""
    update_period: float = 0.0
    """Least time between two readings, s; 0 reads after each physics step, or after each control step."""
    history_length: int = 0
    track_air_time: bool = False
    force_threshold: float = 1.0
    """N, above which a body is in contact."""
    debug_vis: bool = False


@configclass
class InteractiveSceneCfg(Copied):
    """What is in an environment. Subclasses add robots, objects, contact sensors and the terrain as fields."""

    num_envs: int = 1
    env_spacing: float = 2.5
    replicate_physics: bool = True
    """Are accepted: environments do not share a world."""

    def entities(self) -> dict[str, Any]:
        """The fields that a subclass added, by name."""
        known = {each.name for each in dataclasses.fields(InteractiveSceneCfg)}  # type: ignore[arg-type]
        own = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in own.items() if name not in known and value is not None}


def world(cfg: Any) -> dict[str, Any]:
    """Fields of a ``TaskCfg`` from a configuration of an environment: robots, those of ``cfg.scene`` and of ``cfg``
    itself, physics, time limit. ValueError if there is no robot."""
    own = {name: value for name, value in vars(cfg).items() if isinstance(value, RobotCfg)}
    robots = {**own, **{name: value for name, value in cfg.scene.entities().items() if isinstance(value, RobotCfg)}}
    if not robots:
        how = "assign one, such as robot = GO2, in it or in its scene"
        raise ValueError(f"{type(cfg).__name__} has no robot: {how}")
    robot = robots.pop("robot" if "robot" in robots else next(iter(robots)))
    names = {"episode_length_s": cfg.episode_length_s, "is_finite_horizon": cfg.is_finite_horizon}
    return {"robot": robot, "sim": cfg.sim.physics(cfg.decimation), **names}


def match_names(
    kind: str, patterns: str | Sequence[str], names: Sequence[str], preserve_order: bool = False
) -> tuple[list[int], list[str]]:
    """Indices, and names, of those of ``names`` that fit one of the regular expressions, in their own order or in that
    of the expressions. ValueError if one fits none, or two fit the same name."""
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    found = [[i for i, name in enumerate(names) if re.fullmatch(pattern, name)] for pattern in patterns]
    check_known(
        f"no {kind} matches", (p for p, ids in zip(patterns, found, strict=True) if not ids), names, "there are"
    )
    ids = [i for each in found for i in each]
    if twice := {names[i] for i in ids if ids.count(i) > 1}:
        raise ValueError(f"{kind} {min(twice)!r} matches more than one of {patterns}")
    ids = ids if preserve_order else sorted(ids)
    return ids, [names[i] for i in ids]


@configclass
class SceneEntityCfg(Copied):
    """A part of the scene that a term reads: an entity, and which of its joints and bodies, by names or regular
    expressions, of which :meth:`resolve` makes indices."""

    name: str
    joint_names: Any = None
    joint_ids: Any = slice(None)
    body_names: Any = None
    body_ids: Any = slice(None)
    preserve_order: bool = False

    def resolve(self, scene: "InteractiveScene") -> None:
        """ValueError or KeyError, which lists what there is, for a name that there is not."""
        for part in ("joint", "body"):
            if (patterns := getattr(self, f"{part}_names")) is not None:
                find = getattr(scene[self.name], f"find_{'joints' if part == 'joint' else 'bodies'}")
                ids, names = find(patterns, preserve_order=self.preserve_order)
                setattr(self, f"{part}_names", names)
                setattr(self, f"{part}_ids", ids)


class InteractiveScene(Stateful):
    """The entities of every environment by name; ``core`` has the simulation."""

    STATE = ("entities",)

    def __init__(self, cfg: InteractiveSceneCfg, core: Any):
        self.cfg, self.core, self.num_envs, self.device = cfg, core, core.num_envs, core.device
        self.articulations: dict[str, Articulation] = {}
        self.sensors: dict[str, ContactSensor] = {}
        self.terrain: TerrainImporter | None = None
        self.env_origins = torch.zeros(self.num_envs, 3, device=self.device)
        """0: every environment is a world of its own. Shape: (num_envs, 3)."""
        self.entities: dict[str, Any] = {}
        """All robots and sensors that were made, in or without a place in the dicts above."""
        with self.set_up():
            for name, entity in cfg.entities().items():
                if isinstance(entity, RobotCfg):
                    self.articulations[name] = Articulation(entity)
                elif isinstance(entity, ContactSensorCfg):
                    self.sensors[name] = ContactSensor(entity)
                elif isinstance(entity, TerrainImporterCfg):
                    self.terrain = TerrainImporter(entity)
                else:
                    expected = "a RobotCfg, a ContactSensorCfg or a TerrainImporterCfg"
                    raise ValueError(f"{type(cfg).__name__}.{name} must be {expected}, got {entity!r}")

    @contextmanager
    def set_up(self) -> Iterator[None]:
        """Entities made inside belong to this scene."""
        token = _SCENE.set(self)
        try:
            yield
        finally:
            _SCENE.reset(token)

    def __getitem__(self, name: str) -> Any:
        entities = {**self.articulations, **self.sensors, "terrain": self.terrain}
        if name not in entities:
            raise KeyError(f"the scene has no {name!r}; {did_you_mean(name, entities)}it has: {', '.join(entities)}")
        return entities[name]

    def clone_environments(self, copy_from_source: bool = False) -> None:
        """Nothing: all environments exist."""

    def filter_collisions(self, global_prim_paths: Sequence[str] = ()) -> None:
        """Nothing: environments cannot touch each other."""

    def reset(self, env_ids: Ids = None) -> None:
        for entity in self.entities.values():
            entity.reset(env_ids)

    def update(self, dt: float) -> None:
        """Read the sensors, ``dt`` s of physics after the last time."""
        for sensor in self.entities.values():
            sensor.update(dt)


def _scene_of(entity: Any) -> InteractiveScene:
    if (scene := _SCENE.get()) is None:
        where = "in _setup_scene, or by a field of the configuration of the scene"
        raise RuntimeError(f"{type(entity).__name__}(cfg) finds its scene only where one is set up: make it {where}")
    if isinstance(entity, (Articulation, ContactSensor)):
        scene.entities[f"{type(entity).__name__} {len(scene.entities)}"] = entity
    return scene


def _join(*names: str) -> "Callable[[ArticulationData], Tensor]":
    return lambda data: torch.cat([getattr(data, name) for name in names], dim=-1)


def _in_base_frame(data: "ArticulationData", vectors: Tensor) -> Tensor:
    return rotation.rotate_inverse(data.root_quat_w, vectors.unsqueeze(1)).squeeze(1)


class ArticulationData:
    """What the simulation knows of one robot, in every environment, read when it is asked for: also between the physics
    steps of one control step. Units and lags as :class:`~legged_envs.sim.Simulation`; quaternions are (w, x, y, z)."""

    SAME = (*RobotQuantities.__annotations__, *Quantities.__annotations__)
    DERIVED: ClassVar[dict[str, Callable[["ArticulationData"], Tensor]]] = {
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
        "joint_stiffness": lambda data: data.sim.get_parameter("kp").clone(),
        "joint_damping": lambda data: data.sim.get_parameter("kd").clone(),
        "joint_armature": lambda data: data.sim.get_parameter("armature").clone(),
        "default_mass": lambda data: data.sim.default_parameter("body_mass").clone(),
    }

    GRAVITY_VEC_W: Tensor

    def __init__(self, robot: Any):
        self.sim: Any = robot.sim
        sim = self.sim
        self.joint_names, self.body_names = list(sim.robot.joint_names), list(sim.body_names)

        def rows(values: Any) -> Tensor:
            values = torch.as_tensor(values, dtype=torch.float32, device=sim.device)
            return values.expand(sim.num_envs, *values.shape).clone()

        self.GRAVITY_VEC_W, self.FORWARD_VEC_B = rows((0.0, 0.0, -1.0)), rows((1.0, 0.0, 0.0))
        self.default_joint_pos, self.default_joint_vel = (
            rows(robot.default_joint_pos),
            rows([0.0] * sim.robot.num_joints),
        )
        self.default_root_state = rows((0.0, 0.0, sim.robot.base_height, 1.0, *(0.0,) * 9))
        self.joint_pos_limits, self.soft_joint_pos_limits = rows(robot.joint_pos_limits), rows(robot.joint_pos_limits)
        self.joint_vel_limits, self.joint_effort_limits = rows(robot.joint_vel_limits), rows(robot.torque_limits)
        """Shapes: (num_envs, 3), (num_envs, num_joints), (num_envs, 13), (num_envs, num_joints, 2)."""

    def __getattr__(self, name: str) -> Tensor:
        if name in self.SAME and name != "sim":
            return getattr(self.sim, name).clone()
        if name in self.DERIVED:
            return self.DERIVED[name](self)
        known = (*self.SAME, *self.DERIVED, *vars(self))
        raise AttributeError(f"data of a robot has no {name!r}; {did_you_mean(name, known)}it has: {', '.join(known)}")


class Articulation(Stateful):
    """A robot of the scene, found by its configuration."""

    STATE = ("_targets",)

    def __init__(self, cfg: RobotCfg):
        core = _scene_of(self).core
        robots = getattr(core, "robots", {"robot": core.robot})
        taken = [entity._robot for entity in _scene_of(None).entities.values() if hasattr(entity, "_robot")]
        fitting = [robot for robot in robots.values() if robot.sim.robot == cfg]
        fitting = [robot for robot in fitting if not any(robot is each for each in taken)] or fitting
        if not fitting:
            how = "make it a field of the configuration of the environment or of its scene"
            raise ValueError(f"Articulation: there is no robot {cfg!r} in the simulation: {how}")
        self.cfg, self._robot, self.data = cfg, fitting[0], ArticulationData(fitting[0])
        self._sim, self._ALL_INDICES = self._robot.sim, core._all_ids
        self.joint_names, self.body_names = self.data.joint_names, self.data.body_names
        self.num_joints, self.num_bodies = len(self.joint_names), len(self.body_names)
        held = torch.tensor([kind == "position" for kind in cfg.actuators], device=core.device)
        self._rest = self.data.default_joint_pos * held
        self._targets = self._rest.clone()

    def find_joints(self, name_keys: Any, preserve_order: bool = False) -> tuple[list[int], list[str]]:
        return match_names("joint", name_keys, self.joint_names, preserve_order)

    def find_bodies(self, name_keys: Any, preserve_order: bool = False) -> tuple[list[int], list[str]]:
        return match_names("body", name_keys, self.body_names, preserve_order)

    def reset(self, env_ids: Ids = None) -> None:
        """Return to the targets of the default pose."""
        ids = self._ids(env_ids)
        self._targets[ids] = self._rest[ids]

    def update(self, dt: float) -> None:
        """Nothing: ``data`` is read when it is asked for."""

    def set_joint_position_target(self, target: Tensor, joint_ids: Ids = None, env_ids: Ids = None) -> None:
        self._set_targets("position", target, joint_ids, env_ids)

    def set_joint_velocity_target(self, target: Tensor, joint_ids: Ids = None, env_ids: Ids = None) -> None:
        self._set_targets("velocity", target, joint_ids, env_ids)

    def set_joint_effort_target(self, target: Tensor, joint_ids: Ids = None, env_ids: Ids = None) -> None:
        self._set_targets("torque", target, joint_ids, env_ids)

    def _set_targets(self, kind: str, target: Tensor, joint_ids: Ids, env_ids: Ids) -> None:
        columns = slice(None) if joint_ids is None else joint_ids
        for i in torch.arange(self.num_joints)[columns].tolist():
            if self.cfg.actuators[i] != kind:
                wrong = f"joint {self.joint_names[i]!r} has a {self.cfg.actuators[i]} actuator"
                raise ValueError(f"Articulation: {wrong}, which takes no {kind} target: set RobotCfg.actuators")
        if env_ids is None:
            self._targets[:, columns] = target
        else:
            rows = self._targets[ids := self._ids(env_ids)]
            rows[:, columns] = target
            self._targets[ids] = rows
        self._sim.set_joint_targets(self._targets)

    def write_root_state_to_sim(self, root_state: Tensor, env_ids: Ids = None) -> None:
        """Position, quaternion, velocity and angular velocity in the world. Shape: (n, 13)."""
        pos, quat, lin_vel, ang_vel = root_state.split((3, 4, 3, 3), dim=1)
        ang_vel_b = rotation.rotate_inverse(quat, ang_vel.unsqueeze(1)).squeeze(1)
        self._sim.write_root_state(self._ids(env_ids), pos, quat, lin_vel, ang_vel_b)

    def write_root_pose_to_sim(self, root_pose: Tensor, env_ids: Ids = None) -> None:
        """The velocities stay as they are. Shape: (n, 7)."""
        vel = self.data.root_vel_w[self._ids(env_ids)]
        self.write_root_state_to_sim(torch.cat((root_pose, vel), dim=1), env_ids)

    def write_root_velocity_to_sim(self, root_velocity: Tensor, env_ids: Ids = None) -> None:
        """The pose stays as it is. Shape: (n, 6)."""
        pose = self.data.root_pose_w[self._ids(env_ids)]
        self.write_root_state_to_sim(torch.cat((pose, root_velocity), dim=1), env_ids)

    def write_joint_state_to_sim(
        self, position: Tensor, velocity: Tensor, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """rad and rad/s. Shapes: (n, num_joints or len(joint_ids))."""
        ids, columns = self._ids(env_ids), slice(None) if joint_ids is None else joint_ids
        pos, vel = self.data.joint_pos[ids], self.data.joint_vel[ids]
        pos[:, columns], vel[:, columns] = position, velocity
        self._sim.write_joint_state(ids, pos, vel)

    def _ids(self, env_ids: Ids) -> Tensor:
        return self._ALL_INDICES[slice(None) if env_ids is None else env_ids]


class ContactSensorData(Stateful):
    TIMES = ("last_air_time", "current_air_time", "last_contact_time", "current_contact_time")
    STATE = ("net_forces_w_history", *TIMES)
    last_air_time: Tensor
    current_air_time: Tensor
    last_contact_time: Tensor
    current_contact_time: Tensor
    """Duration of the last and of the present swing and stance, s; 0 where there is none. (num_envs, num_bodies)."""

    def __init__(self, force: Tensor, history: int):
        self.net_forces_w_history = torch.zeros_like(force).unsqueeze(1).repeat(1, max(1, history), 1, 1)
        """Contact forces, N, the newest first. Shape: (num_envs, history, num_bodies, 3)."""
        for name in self.TIMES:
            setattr(self, name, torch.zeros_like(force[..., 0]))

    @property
    def net_forces_w(self) -> Tensor:
        return self.net_forces_w_history[:, 0]


class ContactSensor(Stateful):
    """Contact forces of some bodies of a robot, and for how long they touch and swing; 0 after a reset."""

    STATE = ("data", "_elapsed")

    def __init__(self, cfg: ContactSensorCfg):
        core = _scene_of(self).core
        robots = getattr(core, "robots", {"robot": core.robot})
        *path, bodies = cfg.prim_path.split("/")
        named = [robot for name, robot in robots.items() if name in map(str.lower, path)]
        self.cfg, self._sim, self._elapsed = cfg, (named or [core.robot])[0].sim, 0.0
        whole_number("ContactSensorCfg.history_length", cfg.history_length, 0)
        self._ids, self.body_names = match_names("body", bodies, self._sim.body_names)
        self.num_bodies = len(self.body_names)
        self.data = ContactSensorData(self._sim.contact_force_w[:, self._ids], cfg.history_length)

    def find_bodies(self, name_keys: Any, preserve_order: bool = False) -> tuple[list[int], list[str]]:
        return match_names("body", name_keys, self.body_names, preserve_order)

    def reset(self, env_ids: Ids = None) -> None:
        for name in self.data.STATE:
            getattr(self.data, name)[slice(None) if env_ids is None else env_ids] = 0.0

    def update(self, dt: float) -> None:
        self._elapsed += dt
        if self._elapsed < self.cfg.update_period - 1e-6:
            return
        data, dt, self._elapsed = self.data, self._elapsed, 0.0
        force = self._sim.contact_force_w[:, self._ids]
        data.net_forces_w_history = torch.cat((force.unsqueeze(1), data.net_forces_w_history[:, :-1]), dim=1)
        touching = torch.linalg.vector_norm(force, dim=-1) > self.cfg.force_threshold
        air, contact = data.current_air_time + dt, data.current_contact_time + dt
        data.last_air_time = torch.where(touching & (data.current_air_time > 0.0), air, data.last_air_time)
        data.last_contact_time = torch.where(
            ~touching & (data.current_contact_time > 0.0), contact, data.last_contact_time
        )
        data.current_air_time, data.current_contact_time = air * ~touching, contact * touching

    def compute_first_contact(self, dt: float, abs_tol: float = 1e-8) -> Tensor:
        """Which bodies touched down within the last ``dt`` s. Shape: (num_envs, num_bodies), bool."""
        return (self.data.current_contact_time > 0.0) & (self.data.current_contact_time < dt + abs_tol)

    def compute_first_air(self, dt: float, abs_tol: float = 1e-8) -> Tensor:
        """Which bodies lifted off within the last ``dt`` s. Shape: (num_envs, num_bodies), bool."""
        return (self.data.current_air_time > 0.0) & (self.data.current_air_time < dt + abs_tol)
