"""Quantities of the robots and objects of a scene in Isaac Lab's words."""

from collections.abc import Sequence
from typing import NoReturn

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.checks import did_you_mean
from legged_envs.sim import RobotState, Simulation
from legged_envs.sim.quantities import FreeBody


class EntityData:
    """Quantities of an object, or of the base of a robot, in every environment.

    Each is a copy of what the simulation has when it is read, also between the physics steps of a
    control step; :class:`~legged_envs.sim.Simulation` documents which quantities lag. Quaternions
    are (w, x, y, z), velocities are measured at origins.

    Args:
        source: The object, or the simulation of the robot.
    """

    def __init__(self, source: FreeBody):
        self._source = source

        self.GRAVITY_VEC_W = self._repeat((0.0, 0.0, -1.0))
        """Direction of gravity in the world. Shape: (num_envs, 3)."""
        self.FORWARD_VEC_B = self._repeat((1.0, 0.0, 0.0))
        """Direction ahead in the base frame. Shape: (num_envs, 3)."""
        self.default_root_state = self.root_state_w
        """Position, quaternion and velocities in the world at the start. Shape: (num_envs, 13)."""

    def _repeat(self, value: Tensor | Sequence[float]) -> Tensor:
        """Return a float32 copy of a value for each environment. Shape: (num_envs, …)."""
        position = self._source.root_pos_w
        row = torch.as_tensor(value, dtype=torch.float32, device=position.device)
        return row.expand(len(position), *row.shape).clone()

    def __getattr__(self, name: str) -> NoReturn:
        known = [known_name for known_name in dir(self) if not known_name.startswith("_")]
        raise AttributeError(
            f"there is no data {name!r}; {did_you_mean(name, known)}there are: {', '.join(known)}"
        )

    @property
    def root_pos_w(self) -> Tensor:
        """Position of the origin, m. Shape: (num_envs, 3)."""
        return self._source.root_pos_w.clone()

    @property
    def root_quat_w(self) -> Tensor:
        """Orientation. Shape: (num_envs, 4)."""
        return self._source.root_quat_w.clone()

    @property
    def root_lin_vel_w(self) -> Tensor:
        """Velocity in the world, m/s. Shape: (num_envs, 3)."""
        return self._source.root_lin_vel_w.clone()

    @property
    def root_lin_vel_b(self) -> Tensor:
        """Velocity in the base frame, m/s. Shape: (num_envs, 3)."""
        return self._in_base_frame(self.root_lin_vel_w)

    @property
    def root_ang_vel_w(self) -> Tensor:
        """Angular velocity in the world, rad/s. Shape: (num_envs, 3)."""
        return rotation.rotate(self.root_quat_w, self.root_ang_vel_b)

    @property
    def root_ang_vel_b(self) -> Tensor:
        """Angular velocity in the base frame, rad/s. Shape: (num_envs, 3)."""
        return self._source.root_ang_vel_b.clone()

    @property
    def root_pose_w(self) -> Tensor:
        """Position, m, and quaternion. Shape: (num_envs, 7)."""
        return torch.cat([self.root_pos_w, self.root_quat_w], dim=-1)

    @property
    def root_vel_w(self) -> Tensor:
        """Velocity, m/s, and angular velocity, rad/s, in the world. Shape: (num_envs, 6)."""
        return torch.cat([self.root_lin_vel_w, self.root_ang_vel_w], dim=-1)

    @property
    def root_state_w(self) -> Tensor:
        """Pose and velocities in the world. Shape: (num_envs, 13)."""
        return torch.cat([self.root_pose_w, self.root_vel_w], dim=-1)

    @property
    def heading_w(self) -> Tensor:
        """Angle from the world's x axis to the base's, about z, rad. Shape: (num_envs,)."""
        return rotation.heading(self.root_quat_w)

    @property
    def projected_gravity_b(self) -> Tensor:
        """Direction of gravity in the base frame. Shape: (num_envs, 3)."""
        return self._in_base_frame(self.GRAVITY_VEC_W)

    @property
    def contact_force_w(self) -> Tensor:
        """Net contact force, N.

        Shape: (num_envs, num_bodies, 3), of each body of a robot; (num_envs, 3), of an object.
        """
        return self._source.contact_force_w.clone()

    def _in_base_frame(self, vectors: Tensor) -> Tensor:
        """Return world vectors (num_envs, 3) in the base frame."""
        return rotation.rotate_inverse(self.root_quat_w, vectors.unsqueeze(1)).squeeze(1)


class ArticulationData(EntityData):
    """Quantities of a robot in every environment.

    Joints are in the order of ``RobotCfg.joint_names``, bodies in the order of ``body_names``.

    Args:
        source: The simulation of the robot.
        state: State of the robot, which has its default pose and limits.
    """

    _source: Simulation

    def __init__(self, source: Simulation, state: RobotState):
        super().__init__(source)
        self.default_joint_pos = self._repeat(state.default_joint_pos)
        """Default pose, rad. Shape: (num_envs, num_joints)."""
        self.default_joint_vel = torch.zeros_like(self.default_joint_pos)
        """Velocities of the default pose, 0 rad/s. Shape: (num_envs, num_joints)."""
        self.joint_pos_limits = self._repeat(state.joint_pos_limits)
        """Hard limits, rad; ±inf where there are none. Shape: (num_envs, num_joints, 2)."""
        self.soft_joint_pos_limits = self._repeat(state.joint_pos_limits)
        """The hard limits, rad. Shape: (num_envs, num_joints, 2)."""
        self.joint_vel_limits = self._repeat(state.joint_vel_limits)
        """Largest velocities, rad/s. Shape: (num_envs, num_joints)."""
        self.joint_effort_limits = self._repeat(state.torque_limits)
        """Largest torques, N·m. Shape: (num_envs, num_joints)."""

    @property
    def joint_pos(self) -> Tensor:
        """Joint positions, rad. Shape: (num_envs, num_joints)."""
        return self._source.joint_pos.clone()

    @property
    def joint_vel(self) -> Tensor:
        """Joint velocities, rad/s. Shape: (num_envs, num_joints)."""
        return self._source.joint_vel.clone()

    @property
    def joint_acc(self) -> Tensor:
        """Joint accelerations, rad/s². Shape: (num_envs, num_joints)."""
        return self._source.joint_acc.clone()

    @property
    def joint_torque(self) -> Tensor:
        """Torques that the actuators applied, N·m. Shape: (num_envs, num_joints)."""
        return self._source.joint_torque.clone()

    @property
    def applied_torque(self) -> Tensor:
        """Torques that the actuators applied, N·m. Shape: (num_envs, num_joints)."""
        return self.joint_torque

    @property
    def joint_stiffness(self) -> Tensor:
        """Position gains, N·m/rad. Shape: (num_envs, num_joints)."""
        return self._source.get_parameter("kp").clone()

    @property
    def joint_damping(self) -> Tensor:
        """Velocity gains, N·m·s/rad. Shape: (num_envs, num_joints)."""
        return self._source.get_parameter("kd").clone()

    @property
    def joint_armature(self) -> Tensor:
        """Rotor inertias, kg·m². Shape: (num_envs, num_joints)."""
        return self._source.get_parameter("armature").clone()

    @property
    def default_mass(self) -> Tensor:
        """Masses of the bodies in the model, kg. Shape: (num_envs, num_bodies)."""
        return self._source.default_parameter("body_mass").clone()

    @property
    def body_pos_w(self) -> Tensor:
        """Positions of the bodies, m. Shape: (num_envs, num_bodies, 3)."""
        return self._source.body_pos_w.clone()

    @property
    def body_quat_w(self) -> Tensor:
        """Orientations of the bodies. Shape: (num_envs, num_bodies, 4)."""
        return self._source.body_quat_w.clone()

    @property
    def body_lin_vel_w(self) -> Tensor:
        """Velocities of the bodies in the world, m/s. Shape: (num_envs, num_bodies, 3)."""
        return self._source.body_lin_vel_w.clone()

    @property
    def body_ang_vel_w(self) -> Tensor:
        """Angular velocities of the bodies in the world, rad/s.

        Shape: (num_envs, num_bodies, 3).
        """
        return self._source.body_ang_vel_w.clone()

    @property
    def body_pose_w(self) -> Tensor:
        """Positions, m, and quaternions of the bodies. Shape: (num_envs, num_bodies, 7)."""
        return torch.cat([self.body_pos_w, self.body_quat_w], dim=-1)

    @property
    def body_vel_w(self) -> Tensor:
        """Velocities, m/s and rad/s, of the bodies. Shape: (num_envs, num_bodies, 6)."""
        return torch.cat([self.body_lin_vel_w, self.body_ang_vel_w], dim=-1)

    @property
    def body_state_w(self) -> Tensor:
        """Poses and velocities of the bodies. Shape: (num_envs, num_bodies, 13)."""
        return torch.cat([self.body_pose_w, self.body_vel_w], dim=-1)

    @property
    def foot_pos_w(self) -> Tensor:
        """Positions of the feet, m. Shape: (num_envs, num_feet, 3)."""
        return self._source.foot_pos_w.clone()

    @property
    def foot_lin_vel_w(self) -> Tensor:
        """Velocities of the feet in the world, m/s. Shape: (num_envs, num_feet, 3)."""
        return self._source.foot_lin_vel_w.clone()
