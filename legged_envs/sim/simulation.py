"""The interface of a batch of simulated robots. One file per engine implements it; ``engines`` finds them."""

import os
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from legged_envs.checks import check_known, check_number, whole_number
from legged_envs.configuration import Configuration
from legged_envs.robots.robot import ACTUATOR_GAINS, RobotCfg
from legged_envs.sim.cfg import ViewerCfg, check_vector
from legged_envs.sim.ground import Ground
from legged_envs.sim.quantities import ROBOT_QUANTITIES, FreeBody, Quantities
from legged_envs.tables import TableRepr

if TYPE_CHECKING:
    from legged_envs.sim.render import SceneRenderer


@dataclass
class SimCfg(Configuration):
    """Physics settings; docs/physics.md has the measurements behind the defaults."""

    dt: float = 0.005
    decimation: int = 4
    """Physics time step, s, and physics steps per control step."""
    iterations: int = 10
    ls_iterations: int = 20
    """Most iterations of the constraint solver (one or two when the robot stands), and of its line search."""
    num_threads: int = 0
    """Threads of the CPU engine; 0 takes every core."""
    solref: tuple[float, float] = (0.015, 1.0)
    solimp: tuple[float, float, float, float, float] = (0.95, 0.99, 0.001, 0.5, 2.0)
    """How stiff contacts are, as MuJoCo's parameters of these names: time constant, s, of at least two time steps, and
    damping ratio; least and most impedance, and over which depth, m, and how it grows from one to the other."""
    nconmax: int = 0
    njmax: int = 0
    """Contacts and constraints of an environment for which MuJoCo Warp has room; 0 fits the robot."""

    def check(self) -> None:
        """Raise a TypeError or ValueError that names the field that is wrong."""
        for name in (
            "decimation",
            "iterations",
            "ls_iterations",
            "num_threads",
            "nconmax",
            "njmax",
        ):
            whole_number(f"SimCfg.{name}", getattr(self, name), 0 if name.startswith("n") else 1)
        check_number("SimCfg.dt", self.dt, above=0.0)
        for name, size in (("solref", 2), ("solimp", 5)):
            check_vector(f"SimCfg.{name}", getattr(self, name), size, 0.0)

    @property
    def step_dt(self) -> float:
        """Control time step, s."""
        return self.dt * self.decimation


@dataclass(frozen=True, eq=False)
class Pose:
    """Where one robot is, and its joints in the order of ``RobotCfg.joint_names``, as float tensors."""

    root_pos_w: Tensor
    root_quat_w: Tensor
    joint_pos: Tensor
    """Base position, m, orientation (w, x, y, z), and joint positions, rad. Shapes: (3,), (4,), (num_joints,)."""

    def check(self, robot: RobotCfg) -> None:
        """Raise ValueError, naming the field, if this is no pose of ``robot``."""
        for name, size in (("root_pos_w", 3), ("root_quat_w", 4), ("joint_pos", robot.num_joints)):
            values, field = getattr(self, name), f"Pose.{name} of robot {robot.name!r}"
            if tuple(values.shape) != (size,):
                raise ValueError(f"{field} must have shape ({size},), got {tuple(values.shape)}")
            if not torch.isfinite(values).all():
                raise ValueError(f"{field} must be finite, got {values.tolist()}")


class Simulation(FreeBody, Quantities, TableRepr):
    """``num_envs`` copies of one scene, stepped together, as one of its robots sees it; ``robots`` has the others, with
    quantities, targets, writes and parameters of their own, while ``step``, ``forward``, ``reset``, ``diverged`` and
    the state are the whole scene's. One file per engine implements it. Quantities
    are float32 tensors on ``device``, their first dimension the environment. They are its own buffers: clone what must
    outlive the next call. Root and joint quantities are current after every call. Body, foot, contact, torque and
    acceleration quantities lag by one physics step after ``step``, as after ``mj_step``, not after ``forward``.
    World z is up, quaternions are (w, x, y, z), ``_w`` is the world frame, ``_b`` the base frame; joints are in the
    order of ``RobotCfg.joint_names``, feet in the order of ``RobotCfg.foot_names``."""

    body_names: tuple[str, ...]
    """Bodies of ``body_pos_w`` and ``contact_force_w``, feet among them."""
    joint_pos_limits: Tensor
    """Joint ranges, rad; ±inf where a joint has no limits. Shape: (num_joints, 2)."""
    survives_fork: bool = True
    """Whether a process that is forked later can step it."""
    closed: bool = False
    ground: Ground | None = None
    """The height field under the robots; None is the plane z = 0."""
    parameter_names: tuple[str, ...] = ("friction", "body_mass", "com", "kp", "kd", "armature")
    _renderer: "SceneRenderer"

    def __init__(self, robot: RobotCfg, cfg: SimCfg, num_envs: int, device: torch.device):
        self.robot, self.cfg, self.num_envs, self.device = robot, cfg, num_envs, device
        self.start = (0.0, 0.0, 0.0)
        """Where the robot stands after a reset: x and y, m, and yaw, rad."""
        self.parameters = SimpleNamespace()
        """The model parameters that were read so far, by name; see ``get_parameter``."""
        self._default_parameters: dict[str, Tensor] = {}
        self._robots: dict[str, Simulation] = {}
        self.objects: dict[str, FreeBody] = {}
        """The objects of the scene by name."""

    def _describe(self) -> str:
        return (
            "closed" if self.closed else f"{self.robot.name}, num_envs={self.num_envs}, {self.cfg}"
        )

    @property
    def robots(self) -> "dict[str, Simulation]":
        """The robots of the scene by name, the first as ``"robot"``."""
        return self._robots or {"robot": self}

    def lifted(self, height: float) -> Tensor:
        """How far the joints turn that lift each foot by ``height``, m: :func:`legged_envs.robots.reading.kinematics.leg_lift_angles`, rad.
        Shape: (num_feet, num_joints)."""
        from legged_envs.robots.reading.kinematics import leg_lift_angles

        return torch.from_numpy(leg_lift_angles(self.robot, height)).float().to(self.device)

    @abstractmethod
    def set_joint_targets(self, targets: Tensor) -> None:
        """Set what the actuators are to reach until it is set again: rad, rad/s or N·m by ``RobotCfg.actuators``.
        A reset sets the default pose, and 0 rad/s and N·m. Shape: (num_envs, num_joints)."""

    @abstractmethod
    def step(self, num_steps: int) -> None:
        """Advance every environment by ``num_steps`` physics steps, with the actuators' control law inside each."""

    @abstractmethod
    def set_timestep(self, dt: float) -> None:
        """Let a physics step take ``dt`` s from now on; a state remembers it."""

    @abstractmethod
    def forward(self, env_ids: Tensor) -> None:
        """Make every quantity of ``env_ids`` current without advancing time, after writes to their state."""

    @abstractmethod
    def reset(self, env_ids: Tensor) -> None:
        """Put all that is in ``env_ids`` to its start, at rest, robots in the default pose; ``forward`` must follow
        before derived quantities are read."""

    @abstractmethod
    def write_joint_state(self, env_ids: Tensor, pos: Tensor, vel: Tensor) -> None:
        """Write the joint state of ``env_ids``. Shapes: (n, num_joints)."""

    def get_parameter(self, name: str) -> Tensor:
        """A model parameter of every environment, by name:
        | friction (num_envs,): sliding friction of the robot on the ground; on another robot the larger of the two
        | body_mass (num_envs, num_bodies): kg
        | com (num_envs, num_bodies, 3): centre of mass in the body's frame, m
        | kp, kd (num_envs, num_joints): gains, N·m/rad and N·m·s/rad; 0 where an actuator has none
        | armature (num_envs, num_joints): reflected rotor inertia, kg·m²"""
        self.default_parameter(name)
        return getattr(self.parameters, name)

    def default_parameter(self, name: str) -> Tensor:
        """What ``get_parameter`` returned before anything was set; ValueError for another name than it has."""
        check_known("unknown parameter", (name,), self.parameter_names, "parameters")
        if name not in self._default_parameters:
            with torch.inference_mode(False):
                self._default_parameters[name] = self._read_parameter(name, default=True)
                setattr(self.parameters, name, self._read_parameter(name, default=False))
        return self._default_parameters[name]

    def set_parameter(self, name: str, values: Tensor, env_ids: Tensor) -> None:
        """Set a model parameter of ``env_ids``, which acts from the next ``forward`` or ``step``; ValueError if the
        values have the wrong shape, are negative where that has no meaning, or are a gain that an actuator has not."""
        expected, given = (
            (len(env_ids), *self.default_parameter(name).shape[1:]),
            tuple(values.shape),
        )
        if given != expected:
            raise ValueError(
                f"parameter {name!r} of {len(env_ids)} environments needs shape {expected}, got {given}"
            )
        if name != "com" and (values < 0.0).any():
            raise ValueError(
                f"parameter {name!r} must not be negative, got {values.min().item():g}"
            )
        if name in ("kp", "kd"):
            for joint, kind, gain in zip(
                self.robot.joint_names, self.robot.actuators, values.unbind(1), strict=True
            ):
                if name not in ACTUATOR_GAINS[kind] and gain.any():
                    raise ValueError(
                        f"parameter {name!r} of {joint!r}, a {kind} actuator, must be 0"
                    )
        getattr(self.parameters, name)[env_ids] = values
        self._write_parameter(name, values, env_ids)

    @abstractmethod
    def _read_parameter(self, name: str, default: bool) -> Tensor:
        """A copy of a parameter as it is, or as it was before anything was set."""

    @abstractmethod
    def _write_parameter(self, name: str, values: Tensor, env_ids: Tensor) -> None:
        """Set a parameter of ``env_ids``, whose values are in order."""

    @abstractmethod
    def cast_rays(self, origins_w: Tensor, directions_w: Tensor, farthest: float) -> Tensor:
        """How far from each origin, along each unit direction, the ground or an object is, at most ``farthest``, m.
        Robots are not seen. Shapes: (num_envs, n, 3) twice → (num_envs, n)."""

    @abstractmethod
    def diverged(self) -> Tensor | None:
        """Which environments met a non-finite or huge state since the last call; None if none did. (num_envs,) bool."""

    @abstractmethod
    def get_state(self) -> dict[str, Any]:
        """Everything that the future depends on, copied."""

    @abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Return exactly to a state from ``get_state``; ValueError, and no change, if it is of another simulation."""

    @property
    def viewer(self) -> ViewerCfg:
        """The camera of pictures and window; what is changed in it counts from the next picture on."""
        return self._renderer.viewer

    @viewer.setter
    def viewer(self, viewer: ViewerCfg) -> None:
        whole_number("ViewerCfg.env_index", viewer.env_index, 0, self.num_envs - 1)
        known = [*self.robots, *self.objects]
        check_known(
            "ViewerCfg.asset_name: there is no",
            (viewer.asset_name or "robot",),
            known,
            "robots and objects",
        )
        self._renderer.viewer = viewer

    @property
    def decorations(self) -> list[Callable[[Any, int], None]]:
        """Functions ``draw(scene, env_id)`` that add shapes to the ``mujoco.MjvScene`` of each picture and window."""
        return self._renderer.decorations

    def render(
        self,
        env_id: int | None = None,
        width: int | None = None,
        height: int | None = None,
        ghost: Pose | None = None,
    ) -> np.ndarray:
        """A picture by the camera of ``viewer``, (height, width, 3) uint8, with a transparent robot in the pose
        ``ghost``. By default of its environment and resolution, without one of 640 × 480 pixels."""
        size = self.viewer.resolution or (640, 480)
        return self._renderer.render(
            self._shown(env_id), width or size[0], height or size[1], ghost
        )

    def view(
        self,
        env_id: int | None = None,
        label: str = "",
        on_key: Callable[[int], None] | None = None,
    ) -> bool:
        """Show one environment and a ``label`` in a window, which the first call opens: it calls ``on_key`` with GLFW's
        number of each key that is pressed. Returns whether it is open."""
        return self._renderer.show(self._shown(env_id), label, on_key)

    def drawn(self) -> tuple[Any, np.ndarray]:
        """The MuJoCo model that pictures show, and where its bodies are in every environment: position, m, and
        orientation (w, x, y, z) in the world. Shape: (num_envs, bodies, 7)."""
        return self._renderer.drawn()

    def _shown(self, env_id: int | None) -> int:
        return self.viewer.env_index if env_id is None else env_id

    def close(self) -> None:
        """Close the window and free all memory. Whatever is asked of the simulation afterwards raises RuntimeError."""
        if not self.closed:
            self._renderer.close()
            for robot in self.robots.values():
                vars(robot).clear()
                robot.closed = True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if self.closed:
                raise RuntimeError(f"{name!r} of a simulation was used after close()")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def body_ids(self, names: tuple[str, ...]) -> list[int]:
        """Indices of bodies in ``body_names``; ValueError if the robot has no body of one of the names."""
        check_known(f"robot {self.robot.name!r} has no body", names, self.body_names, "bodies")
        return [self.body_names.index(name) for name in names]


for _name in (*ROBOT_QUANTITIES, *Quantities.__annotations__):
    setattr(
        Simulation, _name, property(methodcaller("_read_quantity", _name))
    )  # read when it is asked for


def rendering_error(what: str, error: Exception) -> RuntimeError:
    """What to do about an ``error`` of the library that draws pictures, which MUJOCO_GL chooses."""
    wrong = f"{what} with MUJOCO_GL={os.environ.get('MUJOCO_GL', '')!r}: {error}"
    how = "egl needs no display (Debian: apt-get install libegl1 libgl1-mesa-dri libopengl0), glfw needs one"
    return RuntimeError(f"{wrong}. Set it before mujoco is first imported: {how}")
