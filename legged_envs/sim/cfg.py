"""Configurations of a simulation: physics, scene and camera, and the pose of one robot."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from legged_envs.checks import check_choice, check_number, whole_number
from legged_envs.configuration import Configuration
from legged_envs.robots.robot import RobotCfg
from legged_envs.terrains import TerrainCfg, check_terrain

SHAPES = {"box": 3, "sphere": 1, "capsule": 2, "cylinder": 2}
"""Shapes of objects in a scene, and the number of sizes that each has (``ObjectCfg.size``)."""
MIN_SIZE = 1e-4
"""Smallest half length or radius of an object in a scene, m."""


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
    """Physics settings of a simulation. docs/physics.md has the measurements behind the defaults.

    ``solref`` and ``solimp`` apply to all contacts.
    """

    dt: float = 0.005
    """Physics time step, s."""
    decimation: int = 4
    """Number of physics steps in one control step."""
    iterations: int = 10
    """Largest number of iterations of the constraint solver in a physics step.

    A standing robot needs one or two.
    """
    ls_iterations: int = 20
    """Largest number of iterations of the line search in an iteration of the constraint solver."""
    num_threads: int = 0
    """Number of threads of the engine ``"mujoco"``. 0 uses all cores of the machine."""
    solref: tuple[float, float] = (0.015, 1.0)
    """Stiffness and damping of contacts, MuJoCo's ``solref``: time constant, s, and damping ratio.

    The time constant must be at least two time steps.
    """
    solimp: tuple[float, float, float, float, float] = (0.95, 0.99, 0.001, 0.5, 2.0)
    """Impedance of contacts, MuJoCo's ``solimp``: smallest and largest impedance, the depth over
    which it grows, m, and the midpoint and power of its growth."""
    nconmax: int = 0
    """Number of contacts per environment for which MuJoCo Warp and Genesis allocate memory.

    0: the engine's default. More contacts than this are an error.
    """
    njmax: int = 0
    """Number of constraints per environment for which MuJoCo Warp allocates memory.

    0: computed from the model. More constraints than this are an error.
    """

    def check(self) -> None:
        """Check that every field is in its range.

        Raises:
            ValueError: A field is out of its range. The message names it.
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
    """A second or further robot of a scene, in ``SceneCfg.robots``, and its place."""

    robot: RobotCfg
    """Configuration of the robot."""
    start: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Place of the robot after a reset: x and y, m, and yaw, rad.

    In the world on a plane, otherwise relative to the start on the environment's tile,
    ``Ground.origins``.
    """


@dataclass
class ObjectCfg(Configuration):
    """A rigid object of a scene, such as a ball, in ``SceneCfg.objects``.

    It moves freely, and collides with the ground, all robots and all objects.
    """

    shape: str = "box"
    """Shape: ``"box"``, ``"sphere"``, ``"capsule"`` or ``"cylinder"``."""
    size: tuple[float, ...] = (0.1, 0.1, 0.1)
    """Sizes of the shape, m.

    ``"box"``: half lengths along x, y and z. ``"sphere"``: radius. ``"capsule"`` and
    ``"cylinder"``: radius and half length along z; the length of a capsule does not include its
    round ends.
    """
    mass: float = 1.0
    """Mass, kg. The density is uniform."""
    friction: float = 0.8
    """Coefficient of sliding friction of the object's contacts.

    The friction of a robot or of the ground has no effect on them. Between two objects the larger
    coefficient counts.
    """
    pos: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Position of the object's centre after a reset, m.

    In the world on a plane, otherwise relative to the start on the environment's tile,
    ``Ground.origins``.
    """
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Orientation of the object in the world after a reset, (w, x, y, z)."""
    rgba: tuple[float, float, float, float] = (0.72, 0.52, 0.32, 1.0)
    """Colour in pictures: red, green, blue and opacity, each from 0 to 1."""

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
    """What every environment contains in addition to its first robot: robots, objects and ground.

    The first robot is ``TaskCfg.robot``. Its name in the scene is ``robot``, and its parts have in
    the MuJoCo model the names of its file. The names of the parts of a further robot ``rear`` start
    with ``rear/``.
    """

    start: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Place of the first robot in the world after a reset: x and y, m, and yaw, rad."""
    robots: dict[str, PlacedRobot] = field(default_factory=dict)
    """Further robots of the scene, by name."""
    objects: dict[str, ObjectCfg] = field(default_factory=dict)
    """Objects of the scene, such as a ball, by name."""
    robots_collide: bool = True
    """True if robots collide with each other. False: they pass through each other.

    Between two robots the larger coefficient of sliding friction counts. Parts of one robot never
    collide with each other.
    """
    terrain: TerrainCfg | None = None
    """Rough ground. None: the ground is the plane z = 0."""

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
    """Camera settings of pictures, videos and the window. Isaac Lab has the same field names."""

    eye: tuple[float, float, float] | None = None
    """Position of the camera in the frame of ``origin_type``, m.

    None: the camera ``cam_prim_path`` of the model is used, and ``lookat`` must be None.
    """
    lookat: tuple[float, float, float] | None = None
    """Point at which the camera looks, in the frame of ``origin_type``, m. None: its origin."""
    cam_prim_path: str = "track"
    """Name of the model's camera that is used if ``eye`` is None.

    ``"track"`` follows the first robot, ``"<name>/track"`` a further robot.
    """
    resolution: tuple[int, int] | None = None
    """Width and height, pixels. None: pictures have 640 × 480, videos are 720 pixels wide."""
    origin_type: str = "world"
    """Frame of ``eye`` and ``lookat``: ``"world"``, ``"env"`` or ``"asset_root"``.

    ``"env"`` equals ``"world"``, because each environment has a separate world. The origin of
    ``"asset_root"`` is the base of ``asset_name``: the camera moves with it.
    """
    env_index: int = 0
    """Index of the environment that is shown, unless a call gives another one."""
    asset_name: str | None = None
    """Name of the robot or object that the camera follows with ``origin_type="asset_root"``.

    None: the first robot.
    """
    appearance: str | None = None
    """Appearance of robots in pictures. Physics do not depend on it.

    None: the shapes of the robot's model. ``"menagerie"``: the meshes of mujoco_menagerie, from
    ``pip install mujoco-menagerie`` or from a checkout at the path in the environment variable
    MENAGERIE_ROOT. Any other value is the path of an MJCF file with bodies of the same names as the
    robot's bodies.
    """

    def check(self) -> None:
        """Check every field that does not depend on the simulation.

        Raises:
            ValueError: A field is wrong; the error names it.
        """
        check_choice("ViewerCfg.origin_type", self.origin_type, ("world", "env", "asset_root"))
        if self.eye is None and self.lookat is not None:
            raise ValueError(
                f"ViewerCfg.lookat={self.lookat} needs an eye: without one, a camera of the "
                "model is used"
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
    """Pose of the base and the joints of one robot, in one environment.

    Joints are in the order of ``RobotCfg.joint_names``.
    """

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
