"""Configurations of worlds in Isaac Lab's words, and what they say in ours."""

import dataclasses
from typing import Any

from legged_envs.checks import check_choice
from legged_envs.configuration import ConfigClass, configclass
from legged_envs.robots import RobotCfg
from legged_envs.sim import ObjectCfg, PlacedRobot, SceneCfg, SimCfg


@configclass
class RigidBodyMaterialCfg(ConfigClass):
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
            raise ValueError(
                f"{name} must be of friction 0.5 or 1 and restitution 0, got {given}: {how}"
            )


@configclass
class SimulationCfg(ConfigClass):
    """Physics settings, those of :class:`~legged_envs.sim.SimCfg` beside Isaac Lab's."""

    dt: float = 1.0 / 60.0
    """Physics time step, s."""
    render_interval: int = 1
    """Is accepted: pictures are drawn when they are asked for."""
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    """m/s²; no other is accepted."""
    device: str = "cpu"
    physics_material: RigidBodyMaterialCfg = RigidBodyMaterialCfg()
    iterations: int = 10
    ls_iterations: int = 20
    num_threads: int = 0

    def physics(self, decimation: int) -> SimCfg:
        """These settings as a :class:`~legged_envs.sim.SimCfg`; ValueError for another gravity or ground than there
        is."""
        check_choice("SimulationCfg.gravity", tuple(self.gravity), ((0.0, 0.0, -9.81),))
        self.physics_material.check("SimulationCfg.physics_material")
        return SimCfg(self.dt, decimation, self.iterations, self.ls_iterations, self.num_threads)


@configclass
class InteractiveSceneCfg(ConfigClass):
    """What is in an environment. Subclasses add robots, objects, sensors and the terrain as fields."""

    num_envs: int = 1
    env_spacing, replicate_physics = 2.5, True
    """Are accepted: environments do not share a world."""

    def entities(self) -> dict[str, Any]:
        """The fields that a subclass added, by name."""
        known = {each.name for each in dataclasses.fields(InteractiveSceneCfg)}
        return {
            name: value
            for name, value in vars(self).items()
            if name not in known and value is not None
        }


def world(cfg: Any) -> dict[str, Any]:
    """Fields of a ``TaskCfg`` from the configuration of an environment: robots, objects and ground, those of
    ``cfg.scene`` and of ``cfg`` itself, the first robot the one named ``robot``, physics and time limit. ValueError
    without a robot."""
    fields = {**vars(cfg), **cfg.scene.entities()}
    robots = {
        name: value for name, value in fields.items() if isinstance(value, (RobotCfg, PlacedRobot))
    }
    if not robots:
        raise ValueError(
            f"{type(cfg).__name__} has no robot: assign one, such as robot = GO2, in it or in its scene"
        )
    placed = {
        name: each if isinstance(each, PlacedRobot) else PlacedRobot(each)
        for name, each in robots.items()
    }
    first = placed.pop("robot" if "robot" in placed else next(iter(placed)))
    objects = {name: value for name, value in fields.items() if isinstance(value, ObjectCfg)}
    own = {name: getattr(cfg, name) for name in ("episode_length_s", "is_finite_horizon", "viewer")}
    grounds = [value.terrain() for value in fields.values() if hasattr(value, "terrain_type")]
    scene = SceneCfg(first.start, placed, objects, terrain=next(iter(grounds), None))
    return {"robot": first.robot, "sim": cfg.sim.physics(cfg.decimation), "scene": scene, **own}
