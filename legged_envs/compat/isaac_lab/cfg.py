"""Configurations of physics and scene in Isaac Lab's words, and their translation."""

import dataclasses
from typing import Any

from legged_envs.checks import check_choice
from legged_envs.configuration import ConfigClass, configclass
from legged_envs.robots import RobotCfg
from legged_envs.sim import ObjectCfg, PlacedRobot, SceneCfg, SimCfg

ACCEPTED_MATERIALS = ((0.5, 0.5, 0.0), (1.0, 1.0, 0.0))
"""Static friction, dynamic friction and restitution of materials that the ground may have.

They are Isaac Lab's default, and the material under which the robot's own friction acts.
"""


@configclass
class RigidBodyMaterialCfg(ConfigClass):
    """The material of the ground. The robot's own friction acts on it."""

    static_friction: float = 0.5
    """Coefficient of static friction."""
    dynamic_friction: float = 0.5
    """Coefficient of dynamic friction."""
    restitution: float = 0.0
    """Coefficient of restitution."""
    friction_combine_mode: str = "average"
    """Isaac Lab's rule for the friction of two materials.

    This setting has no effect: the robot's friction acts."""
    restitution_combine_mode: str = "average"
    """Isaac Lab's rule for the restitution of two materials.

    This setting has no effect: the restitution is 0."""

    def check(self, name: str) -> None:
        """Raise an error if the ground cannot have the material.

        Args:
            name: Name of the field, for the error.

        Raises:
            ValueError: If a friction is neither 0.5 nor 1, or the restitution is not 0.
        """
        given = (self.static_friction, self.dynamic_friction, self.restitution)
        if given not in ACCEPTED_MATERIALS:
            raise ValueError(
                f"{name} must be of friction 0.5 or 1 and restitution 0, got {given}: "
                "randomize the robot's friction by an event, because the ground has none"
            )


@configclass
class SimulationCfg(ConfigClass):
    """Physics settings: Isaac Lab's fields that have a meaning here, and the fields of
    ``SimCfg``."""

    dt: float = 1.0 / 60.0
    """Physics time step, s."""
    render_interval: int = 1
    """This setting has no effect: pictures are drawn when they are asked for."""
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    """Gravity, m/s². No other value is accepted."""
    device: str = "cpu"
    """Device of all tensors."""
    physics_material: RigidBodyMaterialCfg = RigidBodyMaterialCfg()
    """Material of the ground."""
    iterations: int = 10
    """Largest number of iterations of the constraint solver (:class:`~legged_envs.sim.SimCfg`)."""
    ls_iterations: int = 20
    """Largest number of iterations of the solver's line search."""
    num_threads: int = 0
    """Threads of the CPU engine; 0 uses every core."""

    def physics(self, decimation: int) -> SimCfg:
        """Return these settings in the words of this package.

        Args:
            decimation: Physics steps per control step.

        Raises:
            ValueError: If gravity or the material of the ground is another one.
        """
        check_choice("SimulationCfg.gravity", tuple(self.gravity), ((0.0, 0.0, -9.81),))
        self.physics_material.check("SimulationCfg.physics_material")
        return SimCfg(
            dt=self.dt,
            decimation=decimation,
            iterations=self.iterations,
            ls_iterations=self.ls_iterations,
            num_threads=self.num_threads,
        )


@configclass
class InteractiveSceneCfg(ConfigClass):
    """The scene of an environment.

    Subclasses have robots, objects, sensors and the terrain as fields.
    """

    num_envs: int = 1
    """Number of environments."""
    env_spacing: float = 2.5
    """This setting has no effect, m: every environment is a separate world."""
    replicate_physics: bool = True
    """This setting has no effect."""

    def entities(self) -> dict[str, Any]:
        """Return the fields of a subclass that are not None, by name."""
        base_fields = [field.name for field in dataclasses.fields(InteractiveSceneCfg)]
        entities = {}
        for name, value in vars(self).items():
            if name not in base_fields and value is not None:
                entities[name] = value
        return entities


def world(cfg: Any) -> dict[str, Any]:
    """Translate robots, scene, physics and time limit of an environment's configuration.

    Entities may be fields of ``cfg`` or of ``cfg.scene``. The robot named ``robot`` is the first
    one; without it, the first field with a robot.

    Args:
        cfg: The configuration, with ``scene``, ``sim``, ``decimation``, ``episode_length_s``,
            ``is_finite_horizon`` and ``viewer``.

    Returns:
        Fields of a ``TaskCfg`` by name.

    Raises:
        ValueError: If there is no robot, or a field has a value that this package cannot simulate.
    """
    robots: dict[str, PlacedRobot] = {}
    objects: dict[str, ObjectCfg] = {}
    grounds = []
    fields = {**vars(cfg), **cfg.scene.entities()}
    for name, value in fields.items():
        if isinstance(value, PlacedRobot):
            robots[name] = value
        elif isinstance(value, RobotCfg):
            robots[name] = PlacedRobot(value)
        elif isinstance(value, ObjectCfg):
            objects[name] = value
        elif hasattr(value, "terrain_type"):
            grounds.append(value.terrain())
    if not robots:
        raise ValueError(
            f"{type(cfg).__name__} has no robot: "
            "assign one, such as robot = GO2, in it or in its scene"
        )
    first_name = "robot" if "robot" in robots else next(iter(robots))
    first = robots.pop(first_name)
    scene = SceneCfg(
        start=first.start,
        robots=robots,
        objects=objects,
        terrain=grounds[0] if grounds else None,
    )
    return {
        "robot": first.robot,
        "sim": cfg.sim.physics(cfg.decimation),
        "scene": scene,
        "episode_length_s": cfg.episode_length_s,
        "is_finite_horizon": cfg.is_finite_horizon,
        "viewer": cfg.viewer,
    }
