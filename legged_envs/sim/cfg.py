"""Configurations of a simulation: physics, scene and camera; and the pose of one robot."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from legged_envs.checks import check_choice, check_number, whole_number
from legged_envs.configuration import Configuration
from legged_envs.robots.robot import RobotCfg
from legged_envs.terrains import TerrainCfg, check_terrain

SHAPES = {"box": 3, "sphere": 1, "capsule": 2, "cylinder": 2}
"""Shapes of objects, and the number of sizes that each needs."""
MIN_SIZE = 1e-4
"""Smallest size of an object, m."""


def check_vector(name: str, value: object, size: int, least: float = float("-inf")) -> None:
    """Raise an error unless a value is a sequence of finite numbers.

    Args:
        name: Name of the value, for the error.
        value: Value that is checked, a tuple or list.
        size: Expected number of elements.
        least: Smallest number that is allowed.

    Raises:
        ValueError: The value has another length, or one of its numbers is wrong.
    """
    if not isinstance(value, (tuple, list)) or len(value) != size:
        raise ValueError(f"{name} must be {size} numbers, got {value!r}")
    for number in value:
        check_number(f"each number of {name}", number, least)


@dataclass
class SimCfg(Configuration):
    """Physics settings; docs/physics.md has the measurements behind the defaults."""

    dt: float = 0.005
    """Physics time step, s."""
    decimation: int = 4
    """Physics steps per control step."""
    iterations: int = 10
    """Largest number of iterations of the constraint solver; a standing robot needs one or two."""
    ls_iterations: int = 20
    """Largest number of iterations of the solver's line search."""
    num_threads: int = 0
    """Threads of the CPU engine; 0 uses every core."""
    solref: tuple[float, float] = (0.015, 1.0)
    """Stiffness of contacts, as MuJoCo's ``solref``: time constant, s, and damping ratio. The time
    constant must be at least two time steps."""
    solimp: tuple[float, float, float, float, float] = (0.95, 0.99, 0.001, 0.5, 2.0)
    """Impedance of contacts, as MuJoCo's ``solimp``: least and most impedance, the depth, m, over
    which it grows, and the midpoint and power of its growth."""
    nconmax: int = 0
    """Contacts per environment that MuJoCo Warp and Genesis have room for; 0 is their default."""
    njmax: int = 0
    """Constraints per environment that MuJoCo Warp has room for; 0 fits the robot."""

    def check(self) -> None:
        """Check every field.

        Raises:
            ValueError: A field is wrong; the error names it.
        """
        whole_number("SimCfg.decimation", self.decimation)
        whole_number("SimCfg.iterations", self.iterations)
        whole_number("SimCfg.ls_iterations", self.ls_iterations)
        whole_number("SimCfg.num_threads", self.num_threads, least=0)
        whole_number("SimCfg.nconmax", self.nconmax, least=0)
        whole_number("SimCfg.njmax", self.njmax, least=0)
        check_number("SimCfg.dt", self.dt, above=0.0)
        check_vector("SimCfg.solref", self.solref, 2, least=0.0)
        check_vector("SimCfg.solimp", self.solimp, 5, least=0.0)

    @property
    def step_dt(self) -> float:
        """Duration of one control step, s."""
        return self.dt * self.decimation


@dataclass
class PlacedRobot(Configuration):
    """A further robot of a scene."""

    robot: RobotCfg
    """Description of the robot."""
    start: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Place after a reset: x and y, m, and yaw, rad."""


@dataclass
class ObjectCfg(Configuration):
    """A rigid body that moves freely and touches the ground, every robot and every object."""

    shape: str = "box"
    """Shape, a key of `SHAPES`: ``"box"``, ``"sphere"``, ``"capsule"`` or ``"cylinder"``."""
    size: tuple[float, ...] = (0.1, 0.1, 0.1)
    """Sizes, m. Of a ``"box"`` the half lengths along x, y and z. Of a ``"sphere"`` the radius. Of
    a ``"capsule"`` or ``"cylinder"`` the radius and the half length along z; the ends of a capsule
    are not counted."""
    mass: float = 1.0
    """Mass, evenly distributed, kg."""
    friction: float = 0.8
    """Sliding friction with everything that it touches. Between two objects the larger friction
    counts; that of a robot does not."""
    pos: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Position of the centre after a reset, m."""
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Orientation after a reset, (w, x, y, z)."""
    rgba: tuple[float, float, float, float] = (0.72, 0.52, 0.32, 1.0)
    """Colour and opacity, each from 0 to 1."""

    def check(self, name: str) -> None:
        """Check every field.

        Args:
            name: Name of the object, for the error.

        Raises:
            ValueError: A field is wrong; the error names it.
        """
        check_choice(f"{name}.shape", self.shape, tuple(SHAPES))
        check_vector(f"{name}.size of a {self.shape}", self.size, SHAPES[self.shape], MIN_SIZE)
        check_number(f"{name}.mass", self.mass, above=0.0)
        check_number(f"{name}.friction", self.friction, 0.0)
        check_vector(f"{name}.pos", self.pos, 3)
        check_vector(f"{name}.quat", self.quat, 4)
        check_vector(f"{name}.rgba", self.rgba, 4)


@dataclass
class SceneCfg(Configuration):
    """Robots, objects and ground of every environment, in addition to ``TaskCfg.robot``.

    In a MuJoCo model the parts of a robot named ``rear`` are called ``rear/…``. The parts of the
    first robot, ``TaskCfg.robot``, keep the names of its file. That robot is called ``robot``.
    """

    start: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Place of the first robot after a reset: x and y, m, and yaw, rad."""
    robots: dict[str, PlacedRobot] = field(default_factory=dict)
    """Further robots by name."""
    objects: dict[str, ObjectCfg] = field(default_factory=dict)
    """Objects by name."""
    robots_collide: bool = True
    """True if robots touch each other; then the larger of their sliding frictions counts. A robot
    never touches itself."""
    terrain: TerrainCfg | None = None
    """The ground; None is the plane z = 0."""

    def check(self) -> None:
        """Check every field, robot and object.

        Raises:
            ValueError: A field, a name, a robot or an object is wrong; the error names it.
        """
        if self.terrain is not None:
            check_terrain(self.terrain)
        # Names become prefixes in the model, and keys next to "robot".
        for name in (*self.robots, *self.objects):
            is_used_twice = name in self.robots and name in self.objects
            if not name.isidentifier() or name == "robot" or is_used_twice:
                raise ValueError(
                    f"SceneCfg cannot have a part named {name!r}: give each robot and object a "
                    "different identifier, not 'robot', which is the name of the first robot"
                )
        check_vector("SceneCfg.start", self.start, 3)
        for name, placed in self.robots.items():
            check_vector(f"{name}.start", placed.start, 3)
        for name, cfg in self.objects.items():
            cfg.check(name)


@dataclass
class ViewerCfg(Configuration):
    """Camera of pictures, films and the window; field names are those of Isaac Lab."""

    eye: tuple[float, float, float] | None = None
    """Position of the camera relative to ``origin_type``, m. None: the model's camera films."""
    lookat: tuple[float, float, float] | None = None
    """Point that the camera looks at, relative to ``origin_type``, m. None: the origin."""
    cam_prim_path: str = "track"
    """Camera of the model that films without ``eye``. That of a further robot is
    ``"<robot>/track"``."""
    resolution: tuple[int, int] | None = None
    """Width and height, pixels. None: pictures have 640 × 480, films are 720 pixels wide."""
    origin_type: str = "world"
    """Frame of ``eye`` and ``lookat``: ``"world"``, ``"env"`` or ``"asset_root"``. ``"env"`` is the
    origin of the environment, here the world's, because each environment has a separate world.
    ``"asset_root"`` is the root of ``asset_name``: the camera moves with it."""
    env_index: int = 0
    """Environment that is shown unless a call names another one."""
    asset_name: str | None = None
    """Robot or object of ``"asset_root"``; None is the first robot."""
    appearance: str | None = None
    """Appearance of robots in pictures; physics do not depend on it. None: the shapes of the model.
    ``"menagerie"``: the meshes of mujoco_menagerie, from ``pip install mujoco-menagerie`` or a
    checkout that the environment variable MENAGERIE_ROOT names. Otherwise the path of an MJCF file
    with bodies of the same names as the robot's."""

    def check(self) -> None:
        """Check every field that does not depend on the simulation.

        Raises:
            ValueError: A field is wrong; the error names it.
        """
        check_choice("ViewerCfg.origin_type", self.origin_type, ("world", "env", "asset_root"))
        if self.eye is None and self.lookat is not None:
            raise ValueError(
                f"ViewerCfg.lookat={self.lookat} needs an eye: without one a camera of the model "
                "films"
            )
        if self.eye is not None:
            check_vector("ViewerCfg.eye", self.eye, 3)
        if self.lookat is not None:
            check_vector("ViewerCfg.lookat", self.lookat, 3)
        if self.resolution is not None:
            check_vector("ViewerCfg.resolution", self.resolution, 2)
        # From there a camera would look nowhere.
        lookat = self.lookat or (0.0, 0.0, 0.0)
        if self.eye is not None and tuple(self.eye) == tuple(lookat):
            raise ValueError(
                f"ViewerCfg.eye and lookat must be two places, got {self.eye} for both"
            )
        for pixels in self.resolution or ():
            whole_number("each number of ViewerCfg.resolution", pixels)


@dataclass(frozen=True, eq=False)
class Pose:
    """Pose of one robot as float tensors, joints in the order of ``RobotCfg.joint_names``."""

    root_pos_w: Tensor
    """Position of the base in the world, m. Shape: (3,)."""
    root_quat_w: Tensor
    """Orientation of the base in the world, (w, x, y, z). Shape: (4,)."""
    joint_pos: Tensor
    """Joint positions, rad. Shape: (num_joints,)."""

    def check(self, robot: RobotCfg) -> None:
        """Check that this is a pose of a robot.

        Raises:
            ValueError: A field has a wrong shape or is not finite; the error names it.
        """
        _check_field(self.root_pos_w, f"Pose.root_pos_w of robot {robot.name!r}", 3)
        _check_field(self.root_quat_w, f"Pose.root_quat_w of robot {robot.name!r}", 4)
        _check_field(self.joint_pos, f"Pose.joint_pos of robot {robot.name!r}", robot.num_joints)


def _check_field(values: Tensor, name: str, size: int) -> None:
    if tuple(values.shape) != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {tuple(values.shape)}")
    if not torch.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got {values.tolist()}")
