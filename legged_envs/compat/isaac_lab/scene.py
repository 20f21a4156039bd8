"""The scene, its robots, objects and sensors as tasks written for Isaac Lab see them, over the simulation."""

from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from legged_envs.checks import check_choice, did_you_mean
from legged_envs.compat.isaac_lab.cfg import InteractiveSceneCfg, RigidBodyMaterialCfg
from legged_envs.compat.isaac_lab.contact_sensor import ContactSensor, ContactSensorCfg
from legged_envs.compat.isaac_lab.entities import SCENE, Articulation, Ids, RigidObject, scene_of
from legged_envs.compat.isaac_lab.terrain import RayCaster, RayCasterCfg, TerrainGeneratorCfg
from legged_envs.compat.origins import TerrainOrigins
from legged_envs.configuration import configclass
from legged_envs.robots import RobotCfg
from legged_envs.sim import ObjectCfg, PlacedRobot
from legged_envs.state import Stateful


class TerrainImporter(TerrainOrigins):
    """The ground: a plane at z = 0, or tiles; robots begin on their middles.

    Each environment draws the row and column of its tile when it is seeded.

    Args:
        cfg: A ``TerrainImporterCfg``.

    Raises:
        ValueError: If the scene has another kind of ground.
    """

    def __init__(self, cfg: Any):
        self.cfg = cfg
        """Configuration of the ground."""
        self.env = scene_of(self).core
        kind = "generator" if self.env.ground else "plane"
        check_choice("TerrainImporter.terrain_type", cfg.terrain_type, (kind,))


@configclass
class TerrainImporterCfg:
    class_type: Any = TerrainImporter
    terrain_type: str = "plane"
    """Or ``"generator"``."""
    terrain_generator, visual_material = TerrainGeneratorCfg(), None
    max_init_terrain_level: int | None = None
    """Robots begin at levels up to this, None: at any."""
    physics_material: RigidBodyMaterialCfg = RigidBodyMaterialCfg()
    prim_path, collision_group, num_envs, env_spacing, debug_vis = (
        "/World/ground",
        -1,
        1,
        0.0,
        False,
    )
    """Are accepted."""

    def terrain(self) -> Any:
        """None for a plane; ValueError, which names the field, if it cannot be."""
        check_choice("TerrainImporterCfg.terrain_type", self.terrain_type, ("plane", "generator"))
        self.physics_material.check("TerrainImporterCfg.physics_material")
        return (
            None
            if self.terrain_type == "plane"
            else self.terrain_generator.terrain(self.max_init_terrain_level)
        )


KINDS: dict[type, tuple[Any, str]] = {
    RobotCfg: (Articulation, "articulations"),
    RayCasterCfg: (RayCaster, "sensors"),
}
KINDS |= {PlacedRobot: KINDS[RobotCfg], ObjectCfg: (RigidObject, "rigid_objects")}
KINDS |= {
    ContactSensorCfg: (ContactSensor, "sensors"),
    TerrainImporterCfg: (TerrainImporter, "terrains"),
}
"""What may be a field of the configuration of a scene → what is made of it, and the attribute of the scene for it."""


class InteractiveScene(Stateful):
    """The entities of every environment by name; ``core`` has the simulation."""

    STATE = ("entities",)

    def __init__(self, cfg: InteractiveSceneCfg, core: Any):
        self.cfg, self.core, self.num_envs, self.device = cfg, core, core.num_envs, core.device
        self.kinds: list[dict[str, Any]] = [{} for _ in range(4)]
        self.articulations, self.rigid_objects, self.sensors, self.terrains = self.kinds
        self.entities: dict[str, Any] = {}
        """All robots, objects and sensors that were made, whether they have a name or not."""
        self.set_up(self._make_entities)

    def _make_entities(self) -> None:
        for name, entity in self.cfg.entities().items():
            if type(entity) not in KINDS:
                expected = ", ".join(kind.__name__ for kind in KINDS)
                raise ValueError(
                    f"{type(self.cfg).__name__}.{name} must be one of {expected}, got {entity!r}"
                )
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
            raise KeyError(
                f"the scene has no {name!r}; {did_you_mean(name, entities)}it has: {', '.join(entities)}"
            )
        return entities[name]

    def clone_environments(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: all environments exist, and cannot touch each other."""

    @property
    def env_origins(self) -> Any:
        """Middle of each environment's tile, m; 0 on a plane. Shape: (num_envs, 3)."""
        return self.core.task.env_origins

    filter_collisions = write_data_to_sim = clone_environments
    terrain = property(lambda self: next(iter(self.terrains.values()), None))

    def reset(self, env_ids: Ids = None) -> None:
        for entity in self.entities.values():
            entity.reset(env_ids)

    def update(self, dt: float) -> None:
        """Read the sensors, ``dt`` s of physics after the last time."""
        for sensor in [each for each in self.entities.values() if hasattr(each, "update")]:
            sensor.update(dt)
