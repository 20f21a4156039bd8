"""The interface of a simulation of many environments. Each file of ``engines`` implements it."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from legged_envs.checks import check_known, whole_number
from legged_envs.robots.robot import ACTUATOR_GAINS, RobotCfg
from legged_envs.sim.cfg import Pose, SimCfg, ViewerCfg
from legged_envs.sim.ground import Ground
from legged_envs.sim.quantities import FreeBody, RobotQuantities
from legged_envs.tables import TableRepr

if TYPE_CHECKING:
    import mujoco

    from legged_envs.sim.render.renderer import Decoration, SceneRenderer

DEFAULT_RESOLUTION = (640, 480)
"""Width and height of pictures, pixels, unless the call or ``ViewerCfg.resolution`` has others."""


class Simulation(RobotQuantities, TableRepr):
    """A simulation of ``num_envs`` environments, which are copies of one scene stepped together.

    An object of this class gives access to one robot of the scene. Further robots of the scene are
    in ``robots``, each with separate quantities, targets and parameters. The methods ``step``,
    ``forward``, ``reset``, ``diverged``, ``get_state`` and ``set_state`` act on the whole scene.

    Quantities, such as ``joint_pos``, are float32 tensors on ``device``. Their first dimension is
    the environment. They are the engine's buffers: clone what must outlive the next call. World z
    is up, quaternions are (w, x, y, z), ``_w`` is the world frame, ``_b`` the base frame. Joints
    are in the order of ``RobotCfg.joint_names``, feet in the order of ``RobotCfg.foot_names``.

    Root and joint positions and velocities are current after every call. Body, foot, contact,
    torque and acceleration quantities lag: after ``step`` they describe the start of the last
    physics step, as after ``mj_step``. After ``forward`` all quantities are current.

    Args:
        robot: Configuration of the robot.
        cfg: Physics settings.
        num_envs: Number of environments.
        device: Device of all tensors.
    """

    body_names: tuple[str, ...]
    """Names of the robot's bodies, the base first. It is the order of ``body_pos_w``, for
    example."""
    joint_pos_limits: Tensor
    """Lower and upper end of each joint's range, rad; ±inf for a joint without limits. Shape:
    (num_joints, 2)."""
    survives_fork: bool = True
    """True if a child process, forked after the simulation was made, can step it."""
    closed: bool = False
    """True after ``close`` was called."""
    ground: Ground | None = None
    """Height field under the robots. None: the ground is the plane z = 0."""
    parameter_names: tuple[str, ...] = ("friction", "body_mass", "com", "kp", "kd", "armature")
    """Names of the model parameters that ``get_parameter`` and ``set_parameter`` accept."""
    _renderer: "SceneRenderer"

    def __init__(self, robot: RobotCfg, cfg: SimCfg, num_envs: int, device: torch.device):
        self.robot = robot
        """Configuration of the robot."""
        self.cfg = cfg
        """Physics settings."""
        self.num_envs = num_envs
        """Number of environments."""
        self.device = device
        """Device of all tensors."""
        self.start = (0.0, 0.0, 0.0)
        """Place of the robot in the world after a reset: x and y, m, and yaw, rad."""
        self.objects: dict[str, FreeBody] = {}
        """Objects of the scene, such as a ball, by name."""
        self._robots: dict[str, Simulation] = {}
        self._parameters: dict[str, Tensor] = {}
        self._default_parameters: dict[str, Tensor] = {}

    def _describe(self) -> str:
        if self.closed:
            return "closed"
        return f"{self.robot.name}, num_envs={self.num_envs}, {self.cfg}"

    @property
    def robots(self) -> "dict[str, Simulation]":
        """All robots of the scene by name. The name of the first one is ``"robot"``."""
        return self._robots or {"robot": self}

    def body_ids(self, names: tuple[str, ...]) -> list[int]:
        """Return the indices of bodies in ``body_names`` by their names.

        Raises:
            ValueError: The robot has no body with one of the names.
        """
        check_known(f"robot {self.robot.name!r} has no body", names, self.body_names, "bodies")
        return [self.body_names.index(name) for name in names]

    def lifted(self, height: float) -> Tensor:
        """Return the changes of the joint angles that lift each foot straight up by ``height``, m.

        Row i lifts foot i from the default pose, rad. Shape: (num_feet, num_joints). See
        :func:`legged_envs.robots.reading.kinematics.leg_lift_angles`.
        """
        from legged_envs.robots.reading.kinematics import leg_lift_angles  # which needs MuJoCo

        return torch.from_numpy(leg_lift_angles(self.robot, height)).float().to(self.device)

    # --- Stepping ---------------------------------------------------------------------------------

    @abstractmethod
    def set_joint_targets(self, targets: Tensor) -> None:
        """Set the targets of the robot's actuators in all environments, until the next call.

        A reset sets the targets to the default pose, 0 rad/s or 0 N m.

        Args:
            targets: Targets in rad, rad/s or N m, depending on ``RobotCfg.actuators``. Shape:
                (num_envs, num_joints).
        """

    @abstractmethod
    def step(self, num_steps: int) -> None:
        """Advance every environment by ``num_steps`` physics steps.

        The torques of the actuators are computed again in each physics step.
        """

    @abstractmethod
    def set_timestep(self, dt: float) -> None:
        """Set the duration of the following physics steps, s.

        The duration is saved by ``get_state``.
        """

    @abstractmethod
    def forward(self, env_ids: Tensor) -> None:
        """Compute all quantities of ``env_ids`` from their present state, without advancing time.

        Call it after ``reset``, ``write_joint_state`` or ``write_root_state``, before quantities
        are read. Shape of ``env_ids``: (n,).
        """

    @abstractmethod
    def reset(self, env_ids: Tensor) -> None:
        """Put all robots and objects of ``env_ids`` at rest at their starts.

        Robots have their default pose. Call ``forward`` before body, foot, contact, torque or
        acceleration quantities are read. Shape of ``env_ids``: (n,).
        """

    @abstractmethod
    def write_joint_state(self, env_ids: Tensor, pos: Tensor, vel: Tensor) -> None:
        """Set the joint positions and velocities of the robot in some environments.

        Args:
            env_ids: Indices of the environments. Shape: (n,).
            pos: Joint positions, rad. Shape: (n, num_joints).
            vel: Joint velocities, rad/s. Shape: (n, num_joints).
        """

    @abstractmethod
    def cast_rays(self, origins_w: Tensor, directions_w: Tensor, farthest: float) -> Tensor:
        """Return the distances along rays to the ground or to an object.

        Rays pass through robots.

        Args:
            origins_w: Starts of the rays in the world, m. Shape: (num_envs, n, 3).
            directions_w: Unit vectors along the rays in the world. Shape: (num_envs, n, 3).
            farthest: Largest distance that is returned, m, also for rays that hit nothing.

        Returns:
            Distances along the directions, m. Shape: (num_envs, n).
        """

    @abstractmethod
    def diverged(self) -> Tensor | None:
        """Return True for environments with a non-finite or huge state since the last call.

        Shape: (num_envs,), bool. None if there is no such environment.
        """

    @abstractmethod
    def get_state(self) -> dict[str, Any]:
        """Return a copy of the complete state: all that the following steps depend on."""

    @abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state of `get_state` exactly: the following steps are the same as then.

        Raises:
            ValueError: The state is of another simulation. Nothing is changed then.
        """

    # --- Parameters of the model ------------------------------------------------------------------

    def get_parameter(self, name: str) -> Tensor:
        """Return a model parameter of every environment.

        - ``"friction"`` (num_envs,): sliding friction of the robot on the ground. Between two
          robots the larger one counts.
        - ``"body_mass"`` (num_envs, num_bodies): masses, kg. A new mass does not scale the inertia
          of the body, which keeps the model's value.
        - ``"com"`` (num_envs, num_bodies, 3): centres of mass in the frames of the bodies, m.
        - ``"kp"``, ``"kd"`` (num_envs, num_joints): gains, N·m/rad and N·m·s/rad; 0 where an
          actuator has no such gain.
        - ``"armature"`` (num_envs, num_joints): reflected rotor inertias, kg·m².
        - ``"joint_damping"``, ``"joint_friction"`` (num_envs, num_joints): damping, N·m·s/rad, and
          dry friction, N·m, of the joints in addition to their motors; only in the engine
          ``"mujoco"``.

        Raises:
            ValueError: There is no parameter of this name.
        """
        self.default_parameter(name)
        return self._parameters[name]

    def default_parameter(self, name: str) -> Tensor:
        """Return a model parameter of every environment as it was before `set_parameter`.

        Names and shapes are the same as in `get_parameter`.

        Raises:
            ValueError: There is no parameter of this name.
        """
        check_known("unknown parameter", (name,), self.parameter_names, "parameters")
        # Read at the first use, because few tasks use all parameters.
        if name not in self._default_parameters:
            # They are written in place later, which inference tensors forbid outside of that mode.
            with torch.inference_mode(False):
                self._default_parameters[name] = self._read_parameter(name, default=True)
                self._parameters[name] = self._read_parameter(name, default=False)
        return self._default_parameters[name]

    def set_parameter(self, name: str, values: Tensor, env_ids: Tensor) -> None:
        """Set a model parameter in some environments, from the next ``forward`` or ``step`` on.

        Args:
            name: Name of the parameter, see `get_parameter`.
            values: New values, one row per environment. Shape: (n, …).
            env_ids: Indices of the environments. Shape: (n,).

        Raises:
            ValueError: The values have a wrong shape, are not finite, or are negative although the
                parameter is not ``"com"``, or are not 0 for a gain that a joint's actuator does not
                have.
        """
        self._check_parameter(name, values, len(env_ids))
        # A copy in float32 is kept, so that get_parameter needs no access to the engine.
        self._parameters[name][env_ids] = values
        self._write_parameter(name, values, env_ids)

    def _check_parameter(self, name: str, values: Tensor, num_rows: int) -> None:
        expected = (num_rows, *self.default_parameter(name).shape[1:])
        given = tuple(values.shape)
        if given != expected:
            raise ValueError(
                f"parameter {name!r} of {num_rows} environments needs shape {expected}, got {given}"
            )
        if not torch.isfinite(values).all():
            raise ValueError(f"parameter {name!r} must be finite, got NaN or infinity")
        if name != "com" and (values < 0.0).any():
            raise ValueError(
                f"parameter {name!r} must not be negative, got {values.min().item():g}"
            )
        if name not in ("kp", "kd"):
            return
        # Otherwise a gain would be written that MuJoCo's law of this actuator does not have.
        has_gain = values.any(0).tolist()
        for i, actuator in enumerate(self.robot.actuators):
            if has_gain[i] and name not in ACTUATOR_GAINS[actuator]:
                joint = self.robot.joint_names[i]
                raise ValueError(
                    f"parameter {name!r} of {joint!r}, a {actuator} actuator, must be 0"
                )

    def _refresh_parameters(self) -> None:
        """Read all parameters again that were read before, in place."""
        for name, values in self._parameters.items():
            values.copy_(self._read_parameter(name, default=False))

    @abstractmethod
    def _read_parameter(self, name: str, default: bool) -> Tensor:
        """Return a copy of a parameter, or of its value before anything was set."""

    @abstractmethod
    def _write_parameter(self, name: str, values: Tensor, env_ids: Tensor) -> None:
        """Set a parameter of ``env_ids``; its values have been checked."""

    # --- Pictures and window ----------------------------------------------------------------------

    @property
    def viewer(self) -> ViewerCfg:
        """Camera settings of pictures and of the window.

        A change of its fields takes effect in the next picture.
        """
        return self._renderer.viewer

    @viewer.setter
    def viewer(self, viewer: ViewerCfg) -> None:
        whole_number("ViewerCfg.env_index", viewer.env_index, 0, self.num_envs - 1)
        check_known(
            "ViewerCfg.asset_name: there is no",
            (viewer.asset_name or "robot",),
            [*self.robots, *self.objects],
            "robots and objects",
        )
        self._renderer.viewer = viewer

    @property
    def decorations(self) -> "list[Decoration]":
        """Functions that add shapes, such as arrows, to every picture and to the window.

        Each is called as ``draw(scene, env_id)`` with the ``mujoco.MjvScene`` to add to. Append a
        function to the list to use it.
        """
        return self._renderer.decorations

    def render(
        self,
        env_id: int | None = None,
        width: int | None = None,
        height: int | None = None,
        ghost: Pose | None = None,
    ) -> np.ndarray:
        """Draw a picture with the camera of ``viewer``.

        Args:
            env_id: Index of the environment that is drawn. None: ``viewer.env_index``.
            width: Width, pixels. None: the width of ``viewer.resolution``, or 640.
            height: Height, pixels. None: the height of ``viewer.resolution``, or 480.
            ghost: Pose of a transparent second robot in the picture. None: there is none.

        Returns:
            Picture. Shape: (height, width, 3), uint8.
        """
        default_width, default_height = self.viewer.resolution or DEFAULT_RESOLUTION
        return self._renderer.render(
            self._shown_env(env_id), width or default_width, height or default_height, ghost
        )

    def view(
        self,
        env_id: int | None = None,
        label: str = "",
        on_key: Callable[[int], None] | None = None,
    ) -> bool:
        """Show one environment in a window, which the first call opens.

        Args:
            env_id: Index of the environment that is shown. None: ``viewer.env_index``.
            label: Text in the window.
            on_key: Function that is called with GLFW's number of each key that is pressed.

        Returns:
            True if the window is open.
        """
        return self._renderer.show(self._shown_env(env_id), label, on_key)

    def drawn(self) -> "tuple[mujoco.MjModel, np.ndarray]":
        """Return the MuJoCo model that pictures show, and the present poses of its bodies.

        A pose is a position, m, and an orientation (w, x, y, z) in the world. Shape of the poses:
        (num_envs, number of bodies, 7).
        """
        return self._renderer.drawn()

    def contact_points(self, env_id: int) -> np.ndarray:
        """Return where shapes touch each other or the ground in an environment, for pictures.

        The points belong to the present poses, in the world frame, m. Shape: (n, 3).
        """
        return self._renderer.contact_points(env_id)

    def _shown_env(self, env_id: int | None) -> int:
        return self.viewer.env_index if env_id is None else env_id

    # --- End --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the window and free all memory. Any later use raises a RuntimeError."""
        if self.closed:
            return
        self._renderer.close()
        # Terms and wrappers can keep references to this object: it must not keep memory alive.
        for robot in self.robots.values():
            vars(robot).clear()
            robot.closed = True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python calls this for attributes that do not exist: after close(), for all of them.
            if self.closed:
                raise RuntimeError(f"{name!r} of a simulation was used after close()")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
