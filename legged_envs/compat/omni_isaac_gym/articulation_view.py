"""Views of the bodies and robots of an ``RLTask`` in the words of Isaac Sim's core API.

Quaternions are (w, x, y, z). Each environment is a separate world, so poses are relative to the
origin of their environment.
"""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from legged_envs.compat.isaac_lab.entities import Articulation
from legged_envs.robots import RobotCfg

Indices = Tensor | Sequence[int] | None
"""Rows of a view; None for all."""
Values = Tensor | Sequence[Any] | None
"""Numbers to set; None keeps the present numbers."""


class RigidPrimView:
    """Bodies that match a regular expression, in all environments, environment by environment.

    Body quantities belong to the last physics step, see
    :class:`~legged_envs.sim.Simulation`. Each getter takes ``indices`` of rows, None for all, and
    returns copies, whatever ``clone`` is. n is the number of these rows.

    Args:
        prim_paths_expr: Path of which the last part matches the names of the bodies.
        name: Name of the view, for errors.
        options: This setting has no effect.
    """

    count: int
    """Number of rows: bodies in all environments together, or robots."""
    robot: Articulation
    """The robots that the view shows, from ``scene.add(view)`` on."""
    body_names: list[str]
    """Names of the bodies of one environment."""

    def __init__(self, prim_paths_expr: str, name: str = "view", **options: bool):
        self.prim_paths_expr = prim_paths_expr
        """Path of which the last part matches the names of the bodies."""
        self.name = name
        """Name of the view."""

    def initialize(self, robot: Articulation) -> None:
        """Find the bodies; ``scene.add`` calls this method.

        Raises:
            ValueError: If no body matches.
        """
        # Every robot is cloned from the first: the path above the body is the same for all.
        pattern = self.prim_paths_expr.rpartition("/")[2]
        self._body_ids, self.body_names = robot.find_bodies(pattern)
        self.robot = robot
        self.count = robot.num_instances * len(self._body_ids)

    def get_world_poses(self, indices: Indices = None, clone: bool = True) -> tuple[Tensor, Tensor]:
        """Return positions, m, (n, 3), and orientations, (n, 4)."""
        data = self.robot.data
        return (
            self._select_bodies(data.body_pos_w, indices),
            self._select_bodies(data.body_quat_w, indices),
        )

    def get_velocities(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return linear and angular velocities in the world frame, m/s and rad/s, (n, 6)."""
        return self._select_bodies(self.robot.data.body_vel_w, indices)

    def get_linear_velocities(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return linear velocities in the world frame, m/s, (n, 3)."""
        return self._select_bodies(self.robot.data.body_lin_vel_w, indices)

    def get_angular_velocities(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return angular velocities in the world frame, rad/s, (n, 3)."""
        return self._select_bodies(self.robot.data.body_ang_vel_w, indices)

    def get_net_contact_forces(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return net contact forces in the world frame, N, (n, 3)."""
        return self._select_bodies(self.robot.data.contact_force_w, indices)

    def _select_bodies(self, values: Tensor, indices: Indices) -> Tensor:
        """Return rows of values of all bodies, (num_envs, bodies, …)."""
        # Isaac Sim counts bodies environment by environment.
        return _select_rows(values[:, self._body_ids].flatten(0, 1), indices)


class ArticulationView(RigidPrimView):
    """The robots: bases and joints, one row per environment.

    Base and joint quantities are current, and changes act at once. ``num_dof`` is the
    number of joints.
    """

    dof_names: list[str]
    """Names of the joints."""
    num_dof: int
    """Number of joints of a robot."""

    def initialize(self, robot: Articulation) -> None:
        """Show all robots, whatever the path is; ``scene.add`` calls this method."""
        self.robot = robot
        self.count = robot.num_instances
        self.body_names = robot.body_names
        self.dof_names = robot.joint_names
        self.num_dof = robot.num_joints

    def get_world_poses(self, indices: Indices = None, clone: bool = True) -> tuple[Tensor, Tensor]:
        """Return positions of the bases, m, (n, 3), and their orientations, (n, 4)."""
        data = self.robot.data
        return _select_rows(data.root_pos_w, indices), _select_rows(data.root_quat_w, indices)

    def get_velocities(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return velocities of the bases in the world frame, m/s and rad/s, (n, 6)."""
        return _select_rows(self.robot.data.root_vel_w, indices)

    def get_linear_velocities(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return linear velocities of the bases in the world frame, m/s, (n, 3)."""
        return _select_rows(self.robot.data.root_lin_vel_w, indices)

    def get_angular_velocities(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return angular velocities of the bases in the world frame, rad/s, (n, 3)."""
        return _select_rows(self.robot.data.root_ang_vel_w, indices)

    def get_net_contact_forces(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return net contact forces on all bodies, N, (n, bodies, 3), of the last physics step."""
        return _select_rows(self.robot.data.contact_force_w, indices)

    def get_joint_positions(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return joint angles, rad, (n, num_dof)."""
        return _select_rows(self.robot.data.joint_pos, indices)

    def get_joint_velocities(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return joint velocities, rad/s, (n, num_dof)."""
        return _select_rows(self.robot.data.joint_vel, indices)

    def get_applied_joint_efforts(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return the joint torques of the last physics step, N·m, (n, num_dof)."""
        return _select_rows(self.robot.data.joint_torque, indices)

    def get_dof_limits(self, indices: Indices = None, clone: bool = True) -> Tensor:
        """Return (low, high) of the joint angles, rad, (n, num_dof, 2)."""
        return _select_rows(self.robot.data.joint_pos_limits, indices)

    def get_dof_index(self, dof_name: str) -> int:
        """Return the index of a joint.

        Raises:
            ValueError: If there is no such joint.
        """
        return self.dof_names.index(dof_name)

    def set_world_poses(
        self, positions: Values = None, orientations: Values = None, indices: Indices = None
    ) -> None:
        """Place the bases.

        Args:
            positions: Positions, m, (n, 3).
            orientations: Quaternions, (n, 4).
            indices: Rows that are set.

        Raises:
            ValueError: If a shape is wrong.
        """
        present_pos, present_quat = self.get_world_poses(indices)
        pos = self._new_values("root_pos_w", positions, present_pos)
        quat = self._new_values("root_quat_w", orientations, present_quat)
        self.robot.write_root_pose_to_sim(torch.cat((pos, quat), dim=1), indices)

    def set_velocities(self, velocities: Values, indices: Indices = None) -> None:
        """Set linear and angular velocities of the bases in the world frame, m/s and rad/s, (n, 6).

        Raises:
            ValueError: If the shape is wrong.
        """
        new = self._new_values("root_vel_w", velocities, self.get_velocities(indices))
        self.robot.write_root_velocity_to_sim(new, indices)

    def set_joint_positions(self, positions: Values, indices: Indices = None) -> None:
        """Set joint angles, rad, (n, num_dof); the velocities stay.

        Raises:
            ValueError: If the shape is wrong.
        """
        new = self._new_values("joint_pos", positions, self.get_joint_positions(indices))
        velocities = self.get_joint_velocities(indices)
        self.robot.write_joint_state_to_sim(new, velocities, env_ids=indices)

    def set_joint_velocities(self, velocities: Values, indices: Indices = None) -> None:
        """Set joint velocities, rad/s, (n, num_dof); the angles stay.

        Raises:
            ValueError: If the shape is wrong.
        """
        new = self._new_values("joint_vel", velocities, self.get_joint_velocities(indices))
        positions = self.get_joint_positions(indices)
        self.robot.write_joint_state_to_sim(positions, new, env_ids=indices)

    def set_joint_position_targets(self, positions: Values, indices: Indices = None) -> None:
        """Set targets of the joints with position actuators, rad.

        Args:
            positions: Targets of all joints, (n, num_dof); values of other joints are not used.
            indices: Rows that are set.

        Raises:
            ValueError: If no joint has such an actuator, or the shape is wrong.
        """
        # A robot may have other joints too, such as wheels; their columns mean nothing.
        joints = self._joints_with("position")
        targets = self._new_values("joint_pos", positions, self.get_joint_positions(indices))
        self.robot.set_joint_position_target(targets[:, joints], joints, indices)

    def set_joint_efforts(self, efforts: Values, indices: Indices = None) -> None:
        """Set torques of the joints with torque actuators, N·m.

        Args:
            efforts: Torques of all joints, (n, num_dof); values of other joints are not used.
            indices: Rows that are set.

        Raises:
            ValueError: If no joint has such an actuator, or the shape is wrong.
        """
        joints = self._joints_with("torque")
        targets = self._new_values("joint_pos", efforts, self.get_joint_positions(indices))
        self.robot.set_joint_effort_target(targets[:, joints], joints, indices)

    def _joints_with(self, actuator: str) -> list[int]:
        """Return the joints with a kind of actuator, or all joints if there are none."""
        joints = []
        robot = cast(RobotCfg, self.robot.cfg)
        for index, kind in enumerate(robot.actuators):
            if kind == actuator:
                joints.append(index)
        # The robot refuses targets of the wrong kind with an error that names a joint.
        return joints or list(range(self.num_dof))

    def _new_values(self, name: str, values: Values, present: Tensor) -> Tensor:
        """Return values as a tensor of the shape of the present ones; those if they are None."""
        # Isaac Sim: None leaves what is there, such as set_world_poses(positions).
        if values is None:
            return present
        given = torch.as_tensor(values, dtype=torch.float32, device=present.device)
        if given.shape != present.shape:
            raise ValueError(
                f"ArticulationView {self.name!r}: {name} must have shape {tuple(present.shape)}, "
                f"got {tuple(given.shape)}"
            )
        return given


def _select_rows(values: Tensor, indices: Indices) -> Tensor:
    """Return the rows of ``indices``, or all rows if they are None."""
    return values if indices is None else values[indices]
