"""What a simulation says of every environment: float32 tensors, in the frames and orders of ``Simulation``."""

from abc import ABC, abstractmethod
from operator import methodcaller

from torch import Tensor


class RootQuantities:
    """What a simulation says of whatever moves freely: a robot by its base, or an object."""

    root_pos_w: Tensor
    root_quat_w: Tensor
    root_lin_vel_w: Tensor
    root_ang_vel_b: Tensor
    """Origin of a robot's base or centre of an object, m, orientation, velocity, m/s, and angular velocity in the frame
    of the base or object, rad/s. Shape: (num_envs, 3 or 4)."""
    contact_force_w: Tensor
    """Net contact force on each body of a robot, (num_envs, num_bodies, 3), or on an object, (num_envs, 3), N."""


class RobotQuantities(RootQuantities):
    """What a simulation says of a robot in every control step, and terms read of ``env.robot``."""

    joint_pos: Tensor
    joint_vel: Tensor
    joint_torque: Tensor
    """Joint positions, rad, velocities, rad/s, and the torques that the actuators applied, within limits, N·m. Shape:
    (num_envs, num_joints)."""
    foot_pos_w: Tensor
    foot_lin_vel_w: Tensor
    """Foot origins, m, and velocities, m/s. Shape: (num_envs, num_feet, 3)."""


class Quantities(RobotQuantities):
    """All that a simulation says of a robot; what :class:`RobotQuantities` lacks is read from ``env.sim``."""

    joint_acc: Tensor
    """Joint accelerations, rad/s². Shape: (num_envs, num_joints)."""
    body_pos_w: Tensor
    body_quat_w: Tensor
    body_lin_vel_w: Tensor
    body_ang_vel_w: Tensor
    """Body origins, m, orientations, velocities, m/s, and angular velocities, rad/s. (num_envs, num_bodies, 3 or 4)."""


ROOT_QUANTITIES = tuple(RootQuantities.__annotations__)
ROBOT_QUANTITIES = (*ROOT_QUANTITIES, *RobotQuantities.__annotations__)


class FreeBody(RootQuantities, ABC):
    """What moves freely in every environment: an object, or a robot by its base."""

    @abstractmethod
    def _read_quantity(self, name: str) -> Tensor:
        """The quantity ``name``, up to date."""

    @abstractmethod
    def write_root_state(
        self, env_ids: Tensor, pos_w: Tensor, quat_w: Tensor, lin_vel_w: Tensor, ang_vel_b: Tensor
    ) -> None:
        """Write the state of the base or object in ``env_ids``. Shapes: (n, 3), (n, 4), (n, 3), (n, 3)."""

    @abstractmethod
    def push(self, env_ids: Tensor, lin_vel_w: Tensor) -> None:
        """Add to the velocity of the base or object in ``env_ids``, m/s. Shape: (n, 3)."""


for _name in ROOT_QUANTITIES:
    setattr(
        FreeBody, _name, property(methodcaller("_read_quantity", _name))
    )  # read when it is asked for
