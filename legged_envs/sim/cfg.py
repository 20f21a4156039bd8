"""What stands in a scene beside its first robot, and from where it is looked at."""

from dataclasses import dataclass, field

from legged_envs.checks import check_choice, check_number, whole_number
from legged_envs.configuration import Configuration
from legged_envs.robots.robot import RobotCfg
from legged_envs.terrains import TerrainCfg, check_terrain

SHAPES = {"box": 3, "sphere": 1, "capsule": 2, "cylinder": 2}
"""Shapes of objects, and how many sizes each has."""


def check_vector(name: str, value: object, size: int, least: float = float("-inf")) -> None:
    """Raise a ``ValueError`` unless ``value`` is a sequence of ``size`` finite numbers of at least ``least``."""
    if not isinstance(value, (tuple, list)) or len(value) != size:
        raise ValueError(f"{name} must be {size} numbers, got {value!r}")
    for number in value:
        check_number(f"each number of {name}", number, least)


@dataclass
class PlacedRobot(Configuration):
    """One more robot of a scene."""

    robot: RobotCfg
    start: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Where it stands after a reset: x and y, m, and yaw, rad."""


@dataclass
class ObjectCfg(Configuration):
    """A rigid body that moves freely and touches the ground, every robot and every other object."""

    shape: str = "box"
    size: tuple[float, ...] = (0.1, 0.1, 0.1)
    """Half lengths along x, y and z of a ``"box"``, radius of a ``"sphere"``, radius and half length along z of a
    ``"capsule"`` (without its ends) or ``"cylinder"``, m."""
    mass: float = 1.0
    """kg, of even density."""
    friction: float = 0.8
    """Sliding friction with whatever it touches, of two objects the larger; what a robot has does not count here."""
    pos: tuple[float, float, float] = (0.0, 0.0, 1.0)
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Where its centre is after a reset, m, and its orientation (w, x, y, z)."""
    rgba: tuple[float, float, float, float] = (0.72, 0.52, 0.32, 1.0)
    """Colour and opacity, from 0 to 1."""

    def check(self, name: str) -> None:
        """Raise a ValueError that names the field of the object ``name`` that is wrong."""
        check_choice(f"{name}.shape", self.shape, tuple(SHAPES))
        check_vector(f"{name}.size of a {self.shape}", self.size, SHAPES[self.shape], 1e-4)
        check_number(f"{name}.mass", self.mass, above=0.0)
        check_number(f"{name}.friction", self.friction, 0.0)
        for field_name, size in (("pos", 3), ("quat", 4), ("rgba", 4)):
            check_vector(f"{name}.{field_name}", getattr(self, field_name), size)


@dataclass
class SceneCfg(Configuration):
    """What is in every environment beside the ground and ``TaskCfg.robot``, by name: in a MuJoCo model the parts of
    the robot ``rear`` are named ``rear/…``, those of the first robot, which is called ``robot``, as in its file."""

    start: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Where the first robot stands after a reset: x and y, m, and yaw, rad."""
    robots: dict[str, PlacedRobot] = field(default_factory=dict)
    objects: dict[str, ObjectCfg] = field(default_factory=dict)
    robots_collide: bool = True
    """Whether robots touch each other; the larger of their sliding frictions counts. None touches itself."""
    terrain: TerrainCfg | None = None
    """The ground; None is the plane z = 0."""

    def check(self) -> None:
        """Raise a ValueError that names the field or the robot or object that is wrong."""
        if self.terrain is not None:
            check_terrain(self.terrain)
        for name in (*self.robots, *self.objects):
            if (
                not name.isidentifier()
                or name == "robot"
                or (name in self.robots and name in self.objects)
            ):
                how = "give each robot and object an identifier of its own, not 'robot', which is the first robot"
                raise ValueError(f"SceneCfg cannot have a part named {name!r}: {how}")
        for name, start in {
            "SceneCfg": self.start,
            **{name: each.start for name, each in self.robots.items()},
        }.items():
            check_vector(f"{name}.start", start, 3)
        for name, cfg in self.objects.items():
            cfg.check(name)


@dataclass
class ViewerCfg(Configuration):
    """The camera of every picture and film, and of the window (Isaac Lab's names)."""

    eye: tuple[float, float, float] | None = None
    lookat: tuple[float, float, float] | None = None
    """Where the camera is and what it looks at, m, from ``origin_type``; without ``eye`` the camera of the model films,
    without ``lookat`` it looks at the origin."""
    cam_prim_path: str = "track"
    """The camera of the model that films without ``eye``; that of another robot is ``"<robot>/track"``."""
    resolution: tuple[int, int] | None = None
    """Width and height, pixels; None leaves them to who draws: 640 × 480 pictures, films as wide as 720 pixels."""
    origin_type: str = "world"
    """What ``eye`` and ``lookat`` are relative to: ``"world"``, ``"env"``, the origin of the environment, here the same
    because each has a world of its own, or ``"asset_root"``, the root of ``asset_name``: the camera moves with it."""
    env_index: int = 0
    """The environment that is shown unless another is asked for."""
    asset_name: str | None = None
    """Robot or object of ``"asset_root"``; None is the first robot."""
    appearance: str | None = None
    """What robots look like in place of their own shapes, in physics the same: ``"menagerie"``, the meshes of
    mujoco_menagerie (pip install mujoco-menagerie, or a checkout that the environment variable MENAGERIE_ROOT names),
    or an MJCF file whose bodies have the names of the robot's."""

    def check(self) -> None:
        """Raise a ValueError that names the field that is wrong."""
        check_choice("ViewerCfg.origin_type", self.origin_type, ("world", "env", "asset_root"))
        if self.eye is None and self.lookat is not None:
            raise ValueError(
                f"ViewerCfg.lookat={self.lookat} needs an eye: without one a camera of the model films"
            )
        for name, size in (("eye", 3), ("lookat", 3), ("resolution", 2)):
            check_vector(
                f"ViewerCfg.{name}",
                (1,) * size if getattr(self, name) is None else getattr(self, name),
                size,
            )
        if self.eye is not None and tuple(self.eye) == tuple(self.lookat or (0.0, 0.0, 0.0)):
            raise ValueError(
                f"ViewerCfg.eye and lookat must be two places, got {self.eye} for both"
            )
        for pixels in self.resolution or ():
            whole_number("each number of ViewerCfg.resolution", pixels)
