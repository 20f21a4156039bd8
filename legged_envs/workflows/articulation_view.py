"""What an ``RLTask`` reads and sets of its robots, in the words of Isaac Sim's core API. Quaternions are (w, x, y, z).
Each environment is a world of its own, so that poses are relative to the environment's origin."""

import re
from typing import Any

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.checks import check_known

_ROOT = {"positions": slice(0, 3), "orientations": slice(3, 7), "velocities": slice(7, 13)}
_ROOT |= {"linear velocities": slice(7, 10), "angular velocities": slice(10, 13)}


class RigidPrimView:
    """The bodies whose names match the last part of ``prim_paths_expr``, a regular expression, environment by
    environment; ValueError if none does. They lag by one physics step, as :class:`Simulation` says. What is returned
    are copies, whatever ``clone`` says, of all rows or those of ``indices``."""

    count: int
    """How many bodies there are in all environments together."""

    def __init__(self, prim_paths_expr: str, name: str = "", reset_xform_properties: bool = True, **contacts: bool):
        check_known("a view has no argument", contacts, ("track_contact_forces", "prepare_contact_sensors"), "it has")
        self.prim_paths_expr, self.name = prim_paths_expr, name or type(self).__name__

    def initialize(self, core: Any) -> None:
        """What ``scene.add`` calls."""
        names, pattern = core.sim.body_names, self.prim_paths_expr.rpartition("/")[2]
        self._bodies = [i for i, name in enumerate(names) if re.fullmatch(pattern, name)]
        if not self._bodies:
            wrong = f"{type(self).__name__} {self.name!r}: no body matches {pattern!r}, the end of prim_paths_expr"
            raise ValueError(f"{wrong}; bodies: {', '.join(names)}")
        self._core, self._sim, self.count = core, core.sim, core.num_envs * len(self._bodies)

    def get_world_poses(self, indices: Any = None, clone: bool = True) -> tuple[Tensor, Tensor]:
        """Positions, m, and orientations. Shapes: (n, 3), (n, 4)."""
        return self._read("pos_w", indices), self._read("quat_w", indices)

    def get_linear_velocities(self, indices: Any = None, clone: bool = True) -> Tensor:
        """m/s in the world frame. Shape: (n, 3)."""
        return self._read("lin_vel_w", indices)

    def get_angular_velocities(self, indices: Any = None, clone: bool = True) -> Tensor:
        """rad/s in the world frame. Shape: (n, 3)."""
        return self._read("ang_vel_w", indices)

    def get_velocities(self, indices: Any = None, clone: bool = True) -> Tensor:
        """Linear and angular velocities. Shape: (n, 6)."""
        return torch.cat((self._read("lin_vel_w", indices), self._read("ang_vel_w", indices)), dim=1)

    def get_net_contact_forces(self, indices: Any = None, clone: bool = True, dt: float = 1.0) -> Tensor:
        """N in the world frame. Shape: (n, 3)."""
        return self._sim.contact_force_w[:, self._bodies].flatten(0, 1)[self._rows(indices)]

    def _read(self, name: str, indices: Any) -> Tensor:
        return getattr(self._sim, f"body_{name}")[:, self._bodies].flatten(0, 1)[self._rows(indices)]

    def _rows(self, indices: Any, count: int | None = None) -> Tensor:
        chosen = range(self.count if count is None else count) if indices is None else indices
        return torch.as_tensor(chosen, device=self._core.device).long()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} {self.name!r} has no {name!r}, or not before scene.add(view)")


class ArticulationView(RigidPrimView):
    """The robots: base and joints, one row per environment, as they are at that moment. What is set, of ``indices`` and
    ``joint_indices``, acts at once; ValueError if its shape is not that of what is chosen. A target that is not for the
    kind of actuator that drives a joint is a ValueError."""

    def initialize(self, core: Any) -> None:
        self._core, self._sim, self.count = core, core.sim, core.num_envs
        self.dof_names, self.body_names = list(core.sim.robot.joint_names), list(core.sim.body_names)
        self.num_dof, self._bodies = len(self.dof_names), core.sim.body_ids((core.sim.robot.base_body,))

    def get_dof_index(self, dof_name: str) -> int:
        check_known(f"robot {self._sim.robot.name!r} has no joint", (dof_name,), self.dof_names, "joints")
        return self.dof_names.index(dof_name)

    def get_dof_limits(self) -> Tensor:
        """Lowest and highest joint positions, rad. Shape: (num_envs, num_dof, 2)."""
        return self._core.robot.joint_pos_limits.repeat(self.count, 1, 1)

    def get_joint_positions(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> Tensor:
        """rad. Shape: (n, joints)."""
        return self._sim.joint_pos[self._block(indices, joint_indices)]

    def get_joint_velocities(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> Tensor:
        """rad/s. Shape: (n, joints)."""
        return self._sim.joint_vel[self._block(indices, joint_indices)]

    def get_applied_joint_efforts(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> Tensor:
        """Torques that the actuators applied in the last physics step, within limits, N·m. Shape: (n, joints)."""
        return self._sim.joint_torque[self._block(indices, joint_indices)]

    def set_world_poses(self, positions: Any = None, orientations: Any = None, indices: Any = None) -> None:
        self._write_root(indices, positions=positions, orientations=orientations)

    def set_velocities(self, velocities: Any, indices: Any = None) -> None:
        self._write_root(indices, velocities=velocities)

    def set_linear_velocities(self, velocities: Any, indices: Any = None) -> None:
        self._write_root(indices, **{"linear velocities": velocities})

    def set_angular_velocities(self, velocities: Any, indices: Any = None) -> None:
        self._write_root(indices, **{"angular velocities": velocities})

    def set_joint_positions(self, positions: Any, indices: Any = None, joint_indices: Any = None) -> None:
        pos = self._replaced("joint positions", self._sim.joint_pos, positions, indices, joint_indices)
        self._sim.write_joint_state(rows := self._rows(indices), pos[rows], self._sim.joint_vel[rows])

    def set_joint_velocities(self, velocities: Any, indices: Any = None, joint_indices: Any = None) -> None:
        vel = self._replaced("joint velocities", self._sim.joint_vel, velocities, indices, joint_indices)
        self._sim.write_joint_state(rows := self._rows(indices), self._sim.joint_pos[rows], vel[rows])

    def set_joint_position_targets(self, positions: Any, indices: Any = None, joint_indices: Any = None) -> None:
        self._set_targets("position", positions, indices, joint_indices)

    def set_joint_velocity_targets(self, velocities: Any, indices: Any = None, joint_indices: Any = None) -> None:
        self._set_targets("velocity", velocities, indices, joint_indices)

    def set_joint_efforts(self, efforts: Any, indices: Any = None, joint_indices: Any = None) -> None:
        self._set_targets("torque", efforts, indices, joint_indices)

    def _read(self, name: str, indices: Any) -> Tensor:
        if name == "ang_vel_w":
            return rotation.rotate(self._sim.root_quat_w, self._sim.root_ang_vel_b)[self._rows(indices)]
        return getattr(self._sim, f"root_{name}")[self._rows(indices)]

    def _block(self, indices: Any, joint_indices: Any) -> tuple[Tensor, Tensor]:
        return self._rows(indices).unsqueeze(1), self._rows(joint_indices, self.num_dof)

    def _fitting(self, what: str, values: Any, present: Tensor) -> Tensor:
        given = torch.as_tensor(values, dtype=torch.float32, device=self._core.device)
        if given.shape != present.shape:
            wrong = f"{what} must have shape {tuple(present.shape)}, got {tuple(given.shape)}"
            raise ValueError(f"{type(self).__name__} {self.name!r}: {wrong}")
        return given

    def _write_root(self, indices: Any, **parts: Any) -> None:
        state = torch.cat((*self.get_world_poses(indices), self.get_velocities(indices)), dim=1)
        for what, values in parts.items():
            if values is not None:
                state[:, _ROOT[what]] = self._fitting(what, values, state[:, _ROOT[what]])
        pos, quat, lin_vel, ang_vel = state.split((3, 4, 3, 3), dim=1)
        ang_vel_b = rotation.rotate(rotation.conjugate(quat), ang_vel)
        self._sim.write_root_state(self._rows(indices), pos, quat, lin_vel, ang_vel_b)

    def _replaced(self, what: str, whole: Tensor, values: Any, indices: Any, joint_indices: Any) -> Tensor:
        block = self._block(indices, joint_indices)
        return whole.index_put(block, self._fitting(what, values, whole[block]))

    def _set_targets(self, kind: str, values: Any, indices: Any, joint_indices: Any) -> None:
        task, robot = self._core.task, self._sim.robot
        for joint in self._rows(joint_indices, self.num_dof).tolist():
            if robot.actuators[joint] != kind:
                wrong = f"{robot.joint_names[joint]!r} is driven by a {robot.actuators[joint]} actuator, no {kind} one"
                raise ValueError(f"ArticulationView: {wrong}; RobotCfg.actuators of the task's robot says which")
        targets = self._replaced(f"{kind} targets", task._joint_targets, values, indices, joint_indices)
        task._joint_targets = targets
        self._sim.set_joint_targets(targets)


class Scene:
    """The views of a task by name; :meth:`add` makes them show its robots, ValueError if it has one of that name."""

    def __init__(self, core: Any):
        self._core = core
        self._views: dict[str, Any] = {}

    def add(self, view: Any) -> Any:
        if view.name in self._views:
            raise ValueError(f"Scene.add: there is a view {view.name!r} already; remove_object(name) takes it out")
        view.initialize(self._core)
        return self._views.setdefault(view.name, view)

    def object_exists(self, name: str) -> bool:
        return name in self._views

    def remove_object(self, name: str, registry_only: bool = False) -> None:
        check_known("Scene.remove_object: there is no view", (name,), self._views, "views")
        del self._views[name]
