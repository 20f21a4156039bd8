"""What an ``RLTask`` reads and sets of its robots, in the words of Isaac Sim's core API. Quaternions are (w, x, y, z).
Each environment is a world of its own, so that poses are relative to the environment's origin."""

from functools import partialmethod
from typing import Any

import torch
from torch import Tensor

from legged_envs.compat.isaac_lab.entities import Articulation
from legged_envs.state import map_tree


class RigidPrimView:
    """The bodies whose names match the last part of ``prim_paths_expr``, a regular expression, environment by
    environment; ValueError if none does. They lag by one physics step, as :class:`Simulation` says. Each getter takes
    ``indices`` of rows, by default of all, and returns copies, whatever ``clone`` says: positions, m, (n, 3), and
    orientations, (n, 4); velocities, m/s and rad/s, and forces, N, in the world frame, (n, 3), and ``velocities``
    both, (n, 6)."""

    count: int
    """How many bodies there are in all environments together, or robots."""

    def __init__(self, prim_paths_expr: str, name: str = "view", **options: bool):
        self.prim_paths_expr, self.name = prim_paths_expr, name

    def initialize(self, robot: Articulation) -> None:
        """What ``scene.add`` calls."""
        self._ids, self.body_names = robot.find_bodies(self.prim_paths_expr.rpartition("/")[2])
        self.robot, self.count = robot, robot.num_instances * len(self._ids)

    def _get(self, names: Any, indices: Any = None, clone: bool = True) -> Any:
        return map_tree(
            lambda name: self._read(name)[slice(None) if indices is None else indices], names
        )

    def _read(self, name: str) -> Tensor:
        return getattr(self.robot.data, name)[:, self._ids].flatten(0, 1)

    get_world_poses = partialmethod(_get, ("body_pos_w", "body_quat_w"))
    get_velocities = partialmethod(_get, "body_vel_w")
    get_linear_velocities = partialmethod(_get, "body_lin_vel_w")
    get_angular_velocities = partialmethod(_get, "body_ang_vel_w")
    get_net_contact_forces = partialmethod(_get, "contact_force_w")


class ArticulationView(RigidPrimView):
    """The robots: base and joints, one row per environment, as they are at that moment. Joints are in rad, rad/s and
    N·m, (n, num_dof), efforts those that acted in the last physics step, limits (n, num_dof, 2), contact forces those
    on all bodies, (n, num_bodies, 3). What is set acts at once, a target on the joints whose actuators take it;
    ValueError if there are none, or if the shape is wrong."""

    def initialize(self, robot: Articulation) -> None:
        self.robot, self.count, self.body_names = robot, robot.num_instances, robot.body_names
        self.dof_names, self.num_dof = robot.joint_names, robot.num_joints

    def _read(self, name: str) -> Tensor:
        return getattr(self.robot.data, name.replace("body", "root"))

    get_joint_positions = partialmethod(RigidPrimView._get, "joint_pos")
    get_joint_velocities = partialmethod(RigidPrimView._get, "joint_vel")
    get_applied_joint_efforts = partialmethod(RigidPrimView._get, "joint_torque")
    get_dof_limits = partialmethod(RigidPrimView._get, "joint_pos_limits")

    def get_dof_index(self, dof_name: str) -> int:
        return self.dof_names.index(dof_name)

    def set_world_poses(
        self, positions: Any = None, orientations: Any = None, indices: Any = None
    ) -> None:
        pose = (
            self._new("root_pos_w", positions, indices),
            self._new("root_quat_w", orientations, indices),
        )
        self.robot.write_root_pose_to_sim(torch.cat(pose, dim=1), indices)

    def set_velocities(self, velocities: Any, indices: Any = None) -> None:
        self.robot.write_root_velocity_to_sim(self._new("root_vel_w", velocities, indices), indices)

    def set_joint_positions(self, positions: Any, indices: Any = None) -> None:
        new = self._new("joint_pos", positions, indices)
        self.robot.write_joint_state_to_sim(
            new, self.get_joint_velocities(indices), env_ids=indices
        )

    def set_joint_velocities(self, velocities: Any, indices: Any = None) -> None:
        new = self._new("joint_vel", velocities, indices)
        self.robot.write_joint_state_to_sim(self.get_joint_positions(indices), new, env_ids=indices)

    def set_joint_position_targets(self, positions: Any, indices: Any = None) -> None:
        self._set_targets("position", positions, indices)

    def set_joint_efforts(self, efforts: Any, indices: Any = None) -> None:
        self._set_targets("torque", efforts, indices)

    def _new(self, name: str, values: Any, indices: Any) -> Tensor:
        """``values`` as a tensor of the shape of what is there, or that if they are None."""
        present = self._get(name, indices)
        given = (
            present
            if values is None
            else torch.as_tensor(values, dtype=torch.float32, device=present.device)
        )
        if given.shape != present.shape:
            wrong = f"{name} must have shape {tuple(present.shape)}, got {tuple(given.shape)}"
            raise ValueError(f"ArticulationView {self.name!r}: {wrong}")
        return given

    def _set_targets(self, kind: str, values: Any, indices: Any) -> None:
        driven = [i for i, actuator in enumerate(self.robot.cfg.actuators) if actuator == kind]
        joints = driven or [*range(self.num_dof)]  # which the robot refuses
        self.robot._set_targets(
            kind, self._new("joint_pos", values, indices)[:, joints], joints, indices
        )
