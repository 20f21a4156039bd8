"""What an ``RLTask`` reads and sets of its robots, in the words of Isaac Sim's core API. Quaternions are (w, x, y, z).
Each environment is a world of its own, so that poses are relative to the environment's origin."""

import re
from typing import Any, ClassVar

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.state import mapped


class RigidPrimView:
    """The bodies whose names match the last part of ``prim_paths_expr``, a regular expression, environment by
    environment; ValueError if none does. They lag by one physics step, as :class:`Simulation` says. For each name of
    ``QUANTITIES`` there is ``get_<name>(indices=None)``. It returns copies, whatever ``clone`` says, of all rows or
    ``indices``: positions, m, (n, 3), and orientations, (n, 4); velocities, m/s and rad/s, and forces, N, in the world
    frame, (n, 3), and ``velocities`` both, (n, 6)."""

    QUANTITIES: ClassVar[dict[str, Any]] = {
        "world_poses": lambda view: (view._of_bodies("pos_w"), view._of_bodies("quat_w")),
        "velocities": lambda view: torch.cat((view._of_bodies("lin_vel_w"), view._of_bodies("ang_vel_w")), dim=1),
        "linear_velocities": lambda view: view._of_bodies("lin_vel_w"),
        "angular_velocities": lambda view: view._of_bodies("ang_vel_w"),
        "net_contact_forces": lambda view: view._sim.contact_force_w[:, view._body_ids].flatten(0, 1),
    }
    count: int
    """How many bodies there are in all environments together, or robots."""

    def __init__(self, prim_paths_expr: str, name: str = "view", **options: bool):
        self.prim_paths_expr, self.name = prim_paths_expr, name

    def initialize(self, core: Any) -> None:
        """What ``scene.add`` calls."""
        names, pattern = core.sim.body_names, self.prim_paths_expr.rpartition("/")[2]
        self._body_ids = [i for i, name in enumerate(names) if re.fullmatch(pattern, name)]
        if not self._body_ids:
            wrong = f"{type(self).__name__} {self.name!r}: no body matches {pattern!r}, the end of prim_paths_expr"
            raise ValueError(f"{wrong}; bodies: {', '.join(names)}")
        self._core, self._sim, self.count = core, core.sim, core.num_envs * len(self._body_ids)

    def __getattr__(self, name: str) -> Any:
        if (quantity := name.removeprefix("get_")) not in self.QUANTITIES or "_sim" not in vars(self):
            raise AttributeError(f"{type(self).__name__} {self.name!r} has no {name!r}, or not before scene.add(view)")
        return lambda indices=None, clone=True: mapped(
            lambda values: values[self._rows(indices)], self.QUANTITIES[quantity](self)
        )

    def _of_bodies(self, name: str) -> Tensor:
        return getattr(self._sim, f"body_{name}")[:, self._body_ids].flatten(0, 1)

    def _rows(self, indices: Any) -> Tensor:
        return torch.as_tensor(range(self.count) if indices is None else indices, device=self._core.device).long()


class ArticulationView(RigidPrimView):
    """The robots: base and joints, one row per environment, as they are at that moment. Joints are in rad, rad/s and
    N·m, (n, num_dof), efforts those that acted in the last physics step, limits (n, num_dof, 2). What is set acts at
    once, a target on the joints whose actuators take it; ValueError if there are none, or if the shape is wrong."""

    QUANTITIES: ClassVar[dict[str, Any]] = RigidPrimView.QUANTITIES | {
        "joint_positions": lambda view: view._sim.joint_pos,
        "joint_velocities": lambda view: view._sim.joint_vel,
        "applied_joint_efforts": lambda view: view._sim.joint_torque,
        "dof_limits": lambda view: view._core.robot.joint_pos_limits.repeat(view.count, 1, 1),
    }

    def initialize(self, core: Any) -> None:
        self._core, self._sim, self.count = core, core.sim, core.num_envs
        self.dof_names, self.body_names = list(core.sim.robot.joint_names), list(core.sim.body_names)
        self.num_dof, self._body_ids = len(self.dof_names), core.sim.body_ids((core.sim.robot.base_body,))

    def get_dof_index(self, dof_name: str) -> int:
        return self.dof_names.index(dof_name)

    def set_world_poses(self, positions: Any = None, orientations: Any = None, indices: Any = None) -> None:
        pos, quat = self.get_world_poses(indices)
        pos, quat = self._like(pos, "positions", positions), self._like(quat, "orientations", orientations)
        self._set_root(pos, quat, self.get_velocities(indices), indices)

    def set_velocities(self, velocities: Any, indices: Any = None) -> None:
        pos, quat = self.get_world_poses(indices)
        self._set_root(pos, quat, self._like(self.get_velocities(indices), "velocities", velocities), indices)

    def set_joint_positions(self, positions: Any, indices: Any = None) -> None:
        pos, vel = self.get_joint_positions(indices), self.get_joint_velocities(indices)
        self._sim.write_joint_state(self._rows(indices), self._like(pos, "joint positions", positions), vel)

    def set_joint_velocities(self, velocities: Any, indices: Any = None) -> None:
        pos, vel = self.get_joint_positions(indices), self.get_joint_velocities(indices)
        self._sim.write_joint_state(self._rows(indices), pos, self._like(vel, "joint velocities", velocities))

    def set_joint_position_targets(self, positions: Any, indices: Any = None) -> None:
        self._set_targets("position", positions, indices)

    def set_joint_efforts(self, efforts: Any, indices: Any = None) -> None:
        self._set_targets("torque", efforts, indices)

    def _of_bodies(self, name: str) -> Tensor:
        if name == "ang_vel_w":
            return rotation.rotate(self._sim.root_quat_w, self._sim.root_ang_vel_b)
        return getattr(self._sim, f"root_{name}")

    def _like(self, present: Tensor, what: str, values: Any) -> Tensor:
        """``values`` as a tensor of the shape of what is ``present``, or that if they are None."""
        given = present if values is None else torch.as_tensor(values, dtype=torch.float32, device=present.device)
        if given.shape != present.shape:
            wrong = f"{what} must have shape {tuple(present.shape)}, got {tuple(given.shape)}"
            raise ValueError(f"{type(self).__name__} {self.name!r}: {wrong}")
        return given

    def _set_root(self, pos: Tensor, quat: Tensor, velocities: Tensor, indices: Any) -> None:
        lin_vel, ang_vel = velocities.split(3, dim=1)
        ang_vel_b = rotation.rotate(rotation.conjugate(quat), ang_vel)
        self._sim.write_root_state(self._rows(indices), pos, quat, lin_vel, ang_vel_b)

    def _set_targets(self, kind: str, values: Any, indices: Any) -> None:
        task, rows = self._core.task, self._rows(indices)
        driven = torch.tensor([actuator == kind for actuator in self._sim.robot.actuators], device=rows.device)
        if not driven.any():
            wrong = f"no joint of {self._sim.robot.name!r} is driven by a {kind} actuator"
            raise ValueError(f"{type(self).__name__} {self.name!r}: {wrong}; RobotCfg.actuators says by which")
        present = task._joint_targets[rows]
        targets = torch.where(driven, self._like(present, f"{kind} targets", values), present)
        task._joint_targets = task._joint_targets.index_put((rows,), targets)
        self._sim.set_joint_targets(task._joint_targets)
