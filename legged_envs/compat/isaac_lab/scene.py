"""The scene in Isaac Lab's words: robots, objects, sensors and the ground."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor

from legged_envs.checks import check_choice, did_you_mean
from legged_envs.compat.isaac_lab.cfg import InteractiveSceneCfg, RigidBodyMaterialCfg
from legged_envs.compat.isaac_lab.contact_sensor import ContactSensor, ContactSensorCfg
from legged_envs.compat.isaac_lab.entities import Articulation, Ids, RigidObject
from legged_envs.compat.isaac_lab.scene_setup import scene_of, setting_up
from legged_envs.compat.isaac_lab.terrain import RayCaster, RayCasterCfg, TerrainGeneratorCfg
from legged_envs.compat.origins import TerrainOrigins
from legged_envs.configuration import configclass
from legged_envs.envs import CoreVectorEnv
from legged_envs.robots import RobotCfg
from legged_envs.sim import ObjectCfg, PlacedRobot
from legged_envs.state import Stateful
from legged_envs.terrains import TerrainCfg

if TYPE_CHECKING:
    from legged_envs.compat.adapter import AdapterTask


class TerrainImporter(TerrainOrigins):
    """The ground: a plane at z = 0, or tiles; robots start on their middles.

    Each environment draws the row and column of its tile when it is seeded.

    Args:
        cfg: A ``TerrainImporterCfg``.

    Raises:
        ValueError: If the scene has another kind of ground.
    """

    def __init__(self, cfg: "TerrainImporterCfg"):
        self.cfg = cfg
        """Configuration of the ground."""
        self.env = scene_of(self).core
        kind = "generator" if self.env.ground else "plane"
        check_choice("TerrainImporter.terrain_type", cfg.terrain_type, (kind,))


@configclass
class TerrainImporterCfg:
    """Configuration of the ground."""

    class_type: Any = TerrainImporter
    """Class of the ground."""
    terrain_type: str = "plane"
    """``"plane"`` or ``"generator"``."""
    max_init_terrain_level: int | None = None
    """Last level at which robots start. None: they start at any level."""
    physics_material: RigidBodyMaterialCfg = RigidBodyMaterialCfg()
    """Material of the ground."""
    terrain_generator: TerrainGeneratorCfg = TerrainGeneratorCfg()
    """Tiles of a ground of type ``"generator"``."""
    visual_material: Any = None
    """This setting has no effect."""
    prim_path: str = "/World/ground"
    """This setting has no effect."""
    collision_group: int = -1
    """This setting has no effect."""
    num_envs: int = 1
    """This setting has no effect."""
    env_spacing: float = 0.0
    """This setting has no effect, m."""
    debug_vis: bool = False
    """This setting has no effect."""

    def terrain(self) -> TerrainCfg | None:
        """Return the terrain, None for a plane.

        Raises:
            ValueError: If a field is not valid; the error names it.
        """
        check_choice("TerrainImporterCfg.terrain_type", self.terrain_type, ("plane", "generator"))
        self.physics_material.check("TerrainImporterCfg.physics_material")
        if self.terrain_type == "plane":
            return None
        return self.terrain_generator.terrain(self.max_init_terrain_level)


class InteractiveScene(Stateful):
    """The entities of every environment by name.

    Args:
        cfg: The scene, with its entities as fields.
        core: The vector environment, which has the simulation.

    Raises:
        ValueError: If a field of ``cfg`` cannot be an entity.
    """

    STATE = ("entities",)

    def __init__(self, cfg: InteractiveSceneCfg, core: CoreVectorEnv):
        self.cfg = cfg
        """Configuration of the scene."""
        self.core = core
        """The vector environment."""
        self.num_envs = core.num_envs
        """Number of environments."""
        self.device = core.device
        """Device of all tensors."""
        self.articulations: dict[str, Articulation] = {}
        """Robots by name."""
        self.rigid_objects: dict[str, RigidObject] = {}
        """Objects by name."""
        self.sensors: dict[str, Any] = {}
        """Sensors by name."""
        self.terrains: dict[str, TerrainImporter] = {}
        """The ground by its name."""
        self.entities: dict[str, Any] = {}
        """All entities with a state, also entities that a task made without a name."""
        self.set_up(self._make_entities)

    def _make_entities(self) -> None:
        for name, cfg in self.cfg.entities().items():
            self._make_entity(name, cfg)

    def _make_entity(self, name: str, cfg: Any) -> None:
        kind = type(cfg)
        if kind in (RobotCfg, PlacedRobot):
            self.articulations[name] = Articulation(cfg)
        elif kind is ObjectCfg:
            self.rigid_objects[name] = RigidObject(cfg)
        elif kind is ContactSensorCfg:
            self.sensors[name] = ContactSensor(cfg)
        elif kind is RayCasterCfg:
            self.sensors[name] = RayCaster(cfg)
        elif kind is TerrainImporterCfg:
            self.terrains[name] = TerrainImporter(cfg)
        else:
            raise ValueError(
                f"{type(self.cfg).__name__}.{name} must be one of RobotCfg, PlacedRobot, "
                "ObjectCfg, ContactSensorCfg, RayCasterCfg, TerrainImporterCfg, "
                f"got {cfg!r}"
            )

    def set_up(self, make: Callable[[], None]) -> None:
        """Call ``make``; the entities that it makes belong to this scene."""
        with setting_up(self):
            make()

    def __getitem__(self, name: str) -> Any:
        """Return an entity.

        Raises:
            KeyError: If there is no entity with that name.
        """
        entities = {
            **self.articulations,
            **self.rigid_objects,
            **self.sensors,
            **self.terrains,
        }
        if name not in entities:
            raise KeyError(
                f"the scene has no {name!r}; {did_you_mean(name, entities)}"
                f"it has: {', '.join(entities)}"
            )
        return entities[name]

    @property
    def env_origins(self) -> Tensor:
        """Middle of each environment's tile, m; 0 on a plane. Shape: (num_envs, 3)."""
        return cast("AdapterTask", self.core.task).env_origins

    @property
    def terrain(self) -> TerrainImporter | None:
        """The ground. None: the configuration has no field for it."""
        for terrain in self.terrains.values():
            return terrain
        return None

    def clone_environments(self, *args: object, **kwargs: object) -> None:
        """Do nothing: all environments exist."""

    def filter_collisions(self, *args: object, **kwargs: object) -> None:
        """Do nothing: environments do not touch each other."""

    def write_data_to_sim(self, *args: object, **kwargs: object) -> None:
        """Do nothing: targets act at once."""

    def reset(self, env_ids: Ids = None) -> None:
        """Begin the episodes of ``env_ids``, shape (n,); None for all."""
        for entity in self.entities.values():
            entity.reset(env_ids)

    def update(self, dt: float) -> None:
        """Read the sensors, ``dt`` seconds of physics after the last call."""
        for entity in self.entities.values():
            if isinstance(entity, ContactSensor):
                entity.update(dt)
