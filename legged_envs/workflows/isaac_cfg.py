"""Configurations of worlds in Isaac Lab's words, and what they say in ours."""

import copy
import dataclasses
import difflib
import inspect
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, dataclass_transform

from legged_envs.checks import check_choice, check_known
from legged_envs.configuration import Configuration
from legged_envs.robots import RobotCfg
from legged_envs.sim import ObjectCfg, PlacedRobot, SceneCfg, SimCfg

_NO_FIELDS = (type, property, classmethod, staticmethod, type(lambda: 0))


@dataclass_transform()
def configclass(cls: Any) -> Any:
    """Make ``cls`` a configuration: what it assigns is a field, annotated or not, mutable defaults are copied, unknown
    fields are refused. Functions, properties and nested classes are no fields. It has ``replace`` and ``copy``."""
    annotations = dict(inspect.get_annotations(cls))
    assigned = {n: value for n, value in vars(cls).items() if not (n.startswith("__") or isinstance(value, _NO_FIELDS))}
    for name in (annotations := annotations | {n: type(v) for n, v in assigned.items() if n not in annotations}):
        value = getattr(cls, name, dataclasses.MISSING)
        if value is dataclasses.MISSING:
            setattr(cls, name, dataclasses.field(default_factory=lambda: dataclasses.MISSING))
        elif type(value).__hash__ is None or (hasattr(value, "__dict__") and not callable(value)):
            setattr(cls, name, dataclasses.field(default_factory=partial(copy.deepcopy, value)))
    cls.__annotations__ = annotations
    cls = dataclasses.dataclass(repr=False)(cls)
    names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    return cls if issubclass(cls, Copied) else type(cls.__name__, (cls, Copied), names)


class Copied(Configuration):
    """What :func:`configclass` adds to a class. A subclass that assigns, without annotation, what is nearly the name of
    a field of ours is an AttributeError."""

    def __init_subclass__(cls, **arguments: Any):
        super().__init_subclass__(**arguments)
        parents = {base: inspect.get_annotations(base) for base in cls.__mro__[1:]}
        ours = [name for base, names in parents.items() if base.__module__.startswith("legged_envs.") for name in names]
        own = {name for name, value in vars(cls).items() if not isinstance(value, _NO_FIELDS)}
        for name in own.difference(inspect.get_annotations(cls), *parents.values(), *map(vars, parents)):
            if close := difflib.get_close_matches(name, ours, 1, 0.85):
                wrong = f"{cls.__name__}.{name} is no field of its bases; did you mean {close[0]!r}?"
                raise AttributeError(f"{wrong} If it is meant as a new field, annotate it")

    def replace(self, **changes: Any) -> Any:
        """A copy with other values of some fields."""
        return dataclasses.replace(self.copy(), **changes)

    def copy(self) -> Any:
        return copy.deepcopy(self)


@configclass
class RigidBodyMaterialCfg(Copied):
    """The material of the ground, on which a robot's own friction acts."""

    static_friction: float = 0.5
    dynamic_friction: float = 0.5
    restitution: float = 0.0
    friction_combine_mode = restitution_combine_mode = "average"

    def check(self, name: str) -> None:
        """Raise ValueError unless it is the default one, or of friction 1, without restitution."""
        given = self.static_friction, self.dynamic_friction, self.restitution
        if given not in ((0.5, 0.5, 0.0), (1.0, 1.0, 0.0)):
            how = "randomise the robot's friction by an event: the ground takes it as it is"
            raise ValueError(f"{name} must be of friction 0.5 or 1 and restitution 0, got {given}: {how}")


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
        check_choice("SimulationCfg.gravity", tuple(self.gravity), ((0.0, 0.0, -9.81),))
        self.physics_material.check("SimulationCfg.physics_material")
        return SimCfg(self.dt, decimation, self.iterations, self.ls_iterations, self.num_threads)


@configclass
class InteractiveSceneCfg(Copied):
    """What is in an environment. Subclasses add robots, objects, contact sensors and the terrain as fields."""

    num_envs: int = 1
    env_spacing, replicate_physics = 2.5, True
    """Are accepted: environments do not share a world."""

    def entities(self) -> dict[str, Any]:
        """The fields that a subclass added, by name."""
        known = {each.name for each in dataclasses.fields(InteractiveSceneCfg)}
        return {name: value for name, value in vars(self).items() if name not in known and value is not None}


def world(cfg: Any) -> dict[str, Any]:
    """Fields of a ``TaskCfg`` from the configuration of an environment: robots and objects, those of ``cfg.scene`` and
    of ``cfg`` itself, the first robot the one named ``robot``, physics and time limit. ValueError without a robot."""
    fields = {**vars(cfg), **cfg.scene.entities()}
    robots = {name: value for name, value in fields.items() if isinstance(value, (RobotCfg, PlacedRobot))}
    if not robots:
        raise ValueError(f"{type(cfg).__name__} has no robot: assign one, such as robot = GO2, in it or in its scene")
    placed = {name: each if isinstance(each, PlacedRobot) else PlacedRobot(each) for name, each in robots.items()}
    first = placed.pop("robot" if "robot" in placed else next(iter(placed)))
    objects = {name: value for name, value in fields.items() if isinstance(value, ObjectCfg)}
    own = {name: getattr(cfg, name) for name in ("episode_length_s", "is_finite_horizon", "viewer")}
    scene = SceneCfg(first.start, placed, objects)
    return {"robot": first.robot, "sim": cfg.sim.physics(cfg.decimation), "scene": scene, **own}


def match_names(
    kind: str, patterns: str | Sequence[str], names: Sequence[str], preserve_order: bool = False
) -> tuple[list[int], list[str]]:
    """Indices, and names, of those of ``names`` that fit one of the regular expressions, in their own order or in that
    of the expressions. ValueError if one fits none, or two fit the same name."""
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    found = {pattern: [i for i, name in enumerate(names) if re.fullmatch(pattern, name)] for pattern in patterns}
    check_known(f"no {kind} matches", (pattern for pattern, ids in found.items() if not ids), names, "there are")
    ids = [i for each in found.values() for i in each]
    if len({*ids}) < len(ids):
        raise ValueError(f"{kind} {names[max(ids, key=ids.count)]!r} matches more than one of {patterns}")
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

    def resolve(self, scene: Any) -> None:
        """ValueError or KeyError, which lists what there is, for a name that there is not."""
        for part, method in (("joint", "find_joints"), ("body", "find_bodies")):
            if (patterns := getattr(self, f"{part}_names")) is not None:
                ids, names = getattr(scene[self.name], method)(patterns, preserve_order=self.preserve_order)
                setattr(self, f"{part}_names", names)
                setattr(self, f"{part}_ids", ids)


def resolved(params: dict[str, Any], scene: Any) -> dict[str, Any]:
    """``params`` of a term, each :class:`SceneEntityCfg` among which is resolved."""
    for entity in [each for each in params.values() if isinstance(each, SceneEntityCfg)]:
        entity.resolve(scene)
    return params
