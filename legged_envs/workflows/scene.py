"""The scene as tasks written for Isaac Lab see it, under its names, over the simulation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from legged_envs.checks import did_you_mean
from legged_envs.robots import RobotCfg
from legged_envs.sim import ObjectCfg, PlacedRobot
from legged_envs.state import Stateful
from legged_envs.workflows.configclass import (
    InteractiveSceneCfg,
)
from legged_envs.workflows.entities import (
    SCENE,
    Articulation,
    ContactSensor,
    ContactSensorCfg,
    Ids,
    RigidObject,
    TerrainImporter,
    TerrainImporterCfg,
)


class InteractiveScene(Stateful):
    """The entities of every environment by name; ``core`` has the simulation."""

    STATE = ("entities",)

    def __init__(self, cfg: InteractiveSceneCfg, core: Any):
        self.cfg, self.core, self.num_envs, self.device = cfg, core, core.num_envs, core.device
        self.env_origins = torch.zeros(self.num_envs, 3, device=self.device)
        """0: every environment is a world of its own. Shape: (num_envs, 3)."""
        self.articulations: dict[str, Articulation] = {}
        self.rigid_objects: dict[str, RigidObject] = {}
        self.sensors: dict[str, ContactSensor] = {}
        self.terrains: dict[str, TerrainImporter] = {}
        self.entities: dict[str, Any] = {}
        """All robots, objects and sensors that were made, whether they have a name or not."""
        kinds: dict[type, tuple[Any, dict[str, Any]]] = {RobotCfg: (Articulation, self.articulations)}
        kinds |= {PlacedRobot: kinds[RobotCfg], ObjectCfg: (RigidObject, self.rigid_objects)}
        kinds |= {ContactSensorCfg: (ContactSensor, self.sensors), TerrainImporterCfg: (TerrainImporter, self.terrains)}
        with self.set_up():
            for name, entity in cfg.entities().items():
                if type(entity) not in kinds:
                    expected = ", ".join(kind.__name__ for kind in kinds)
                    raise ValueError(f"{type(cfg).__name__}.{name} must be one of {expected}, got {entity!r}")
                make, place = kinds[type(entity)]
                place[name] = make(entity)

    @contextmanager
    def set_up(self) -> Iterator[None]:
        """Entities made inside belong to this scene."""
        token = SCENE.set(self)
        try:
            yield
        finally:
            SCENE.reset(token)

    def __getitem__(self, name: str) -> Any:
        entities: dict[str, Any] = {**self.articulations, **self.rigid_objects, **self.sensors, **self.terrains}
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
        for entity in self.entities.values():
            if isinstance(entity, ContactSensor):
                entity.update(dt)

    def refresh(self) -> None:
        """Bring what recordings read up to date, as far as the robots' own states do not."""
        for entity in self.entities.values():
            for name in getattr(entity.data, "lagging", ()):
                getattr(entity.data.source, name)
