"""The quantities of a simulation, such as joint positions: float32 tensors of every environment.

World z is up. Quaternions are (w, x, y, z). ``_w`` is the world frame, ``_b`` the base frame. The
tensors are the engine's memory: clone what must outlive the next call of the simulation.
"""

from abc import ABC, abstractmethod

from torch import Tensor

ROOT_QUANTITIES = (
    "root_pos_w",
    "root_quat_w",
    "root_lin_vel_w",
    "root_ang_vel_b",
    "contact_force_w",
)
"""Names of the quantities that a robot's base and an object of the scene have."""
ROBOT_QUANTITIES = (
    *ROOT_QUANTITIES,
    "joint_pos",
    "joint_vel",
    "joint_torque",
    "foot_pos_w",
    "foot_lin_vel_w",
)
"""Names of the quantities that `RobotState` reads in every control step."""
QUANTITIES = (
    *ROBOT_QUANTITIES,
    "joint_acc",
    "body_pos_w",
    "body_quat_w",
    "body_lin_vel_w",
    "body_ang_vel_w",
)
"""Names of all quantities of a robot. Each is a property of :class:`RobotQuantities`."""


class FreeBody(ABC):
    """A body that moves freely in every environment: an object of the scene, or a robot's base.

    "Never lags" means that the quantity is current after every call of the simulation.
    """

    @abstractmethod
    def _read_quantity(self, name: str) -> Tensor:
        """Return a quantity, up to date. Every property below reads through this method."""

    @property
    def root_pos_w(self) -> Tensor:
        """Position in the world of the base's origin, or of the object's centre, m.

        Shape: (num_envs, 3). Never lags.
        """
        return self._read_quantity("root_pos_w")

    @property
    def root_quat_w(self) -> Tensor:
        """Orientation in the world of the base or object, (w, x, y, z).

        Shape: (num_envs, 4). Never lags.
        """
        return self._read_quantity("root_quat_w")

    @property
    def root_lin_vel_w(self) -> Tensor:
        """Velocity in the world of the base's origin, or of the object's centre, m/s.

        Shape: (num_envs, 3). Never lags.
        """
        return self._read_quantity("root_lin_vel_w")

    @property
    def root_ang_vel_b(self) -> Tensor:
        """Angular velocity of the base or object in its body frame, rad/s.

        Shape: (num_envs, 3). Never lags.
        """
        return self._read_quantity("root_ang_vel_b")

    @property
    def contact_force_w(self) -> Tensor:
        """Net contact force on each body of a robot, or on an object, in the world frame, N.

        Shape: (num_envs, num_bodies, 3) for a robot, (num_envs, 3) for an object. Lags by one
        physics step after ``step``.
        """
        return self._read_quantity("contact_force_w")

    @abstractmethod
    def write_root_state(
        self, env_ids: Tensor, pos_w: Tensor, quat_w: Tensor, lin_vel_w: Tensor, ang_vel_b: Tensor
    ) -> None:
        """Set the pose and the velocity of the base or object in some environments.

        Args:
            env_ids: Indices of the environments. Shape: (n,).
            pos_w: Positions, m. Shape: (n, 3).
            quat_w: Orientations (w, x, y, z). Shape: (n, 4).
            lin_vel_w: Velocities in the world, m/s. Shape: (n, 3).
            ang_vel_b: Angular velocities in the frame of the base or object, rad/s. Shape: (n, 3).
        """

    @abstractmethod
    def push(self, env_ids: Tensor, lin_vel_w: Tensor) -> None:
        """Add a velocity to the base or object in some environments.

        Args:
            env_ids: Indices of the environments. Shape: (n,).
            lin_vel_w: Added velocities in the world frame, m/s. Shape: (n, 3).
        """


class RobotQuantities(FreeBody):
    """The quantities of a robot in every environment, as float32 tensors.

    Joints are in the order of ``RobotCfg.joint_names``, feet in the order of
    ``RobotCfg.foot_names``, bodies in the order of ``Simulation.body_names``.

    "Never lags" means that a quantity is current after every call of the simulation. "Lags by one
    physics step after ``step``" means that it then describes the start of the last physics step.
    After ``forward`` all quantities are current.
    """

    @property
    def joint_pos(self) -> Tensor:
        """Joint positions, rad. Shape: (num_envs, num_joints). Never lags."""
        return self._read_quantity("joint_pos")

    @property
    def joint_vel(self) -> Tensor:
        """Joint velocities, rad/s. Shape: (num_envs, num_joints). Never lags."""
        return self._read_quantity("joint_vel")

    @property
    def joint_torque(self) -> Tensor:
        """Torque that each joint's actuator applied, after clipping to its limit, N m.

        Shape: (num_envs, num_joints). Lags by one physics step after ``step``.
        """
        return self._read_quantity("joint_torque")

    @property
    def joint_acc(self) -> Tensor:
        """Joint accelerations, rad/s².

        Shape: (num_envs, num_joints). Lags by one physics step after ``step``.
        """
        return self._read_quantity("joint_acc")

    @property
    def foot_pos_w(self) -> Tensor:
        """Positions of the feet's origins in the world frame, m.

        Shape: (num_envs, num_feet, 3). Lags by one physics step after ``step``.
        """
        return self._read_quantity("foot_pos_w")

    @property
    def foot_lin_vel_w(self) -> Tensor:
        """Velocities of the feet's origins in the world frame, m/s.

        Shape: (num_envs, num_feet, 3). Lags by one physics step after ``step``.
        """
        return self._read_quantity("foot_lin_vel_w")

    @property
    def body_pos_w(self) -> Tensor:
        """Positions of the bodies' origins in the world frame, m.

        Shape: (num_envs, num_bodies, 3). Lags by one physics step after ``step``.
        """
        return self._read_quantity("body_pos_w")

    @property
    def body_quat_w(self) -> Tensor:
        """Orientations of the bodies in the world frame, (w, x, y, z).

        Shape: (num_envs, num_bodies, 4). Lags by one physics step after ``step``.
        """
        return self._read_quantity("body_quat_w")

    @property
    def body_lin_vel_w(self) -> Tensor:
        """Velocities of the bodies' origins in the world frame, m/s.

        Shape: (num_envs, num_bodies, 3). Lags by one physics step after ``step``.
        """
        return self._read_quantity("body_lin_vel_w")

    @property
    def body_ang_vel_w(self) -> Tensor:
        """Angular velocities of the bodies in the world frame, rad/s.

        Shape: (num_envs, num_bodies, 3). Lags by one physics step after ``step``.
        """
        return self._read_quantity("body_ang_vel_w")
