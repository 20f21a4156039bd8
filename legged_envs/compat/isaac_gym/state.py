"""The running simulation: steps, forces, and tensors from and to ``mujoco.batch.Batch``.

Arrays of the engine are float64 and on the CPU. Tensors of Isaac Gym are float32 and on the device
of the simulation. Quaternions are (w, x, y, z) in the engine and (x, y, z, w) in Isaac Gym.
"""

import warnings
from collections.abc import Sequence

import mujoco
import mujoco.batch
import numpy as np
import torch
from torch import Tensor

from legged_envs.compat.isaac_gym.enums import CoordinateSpace, DofDriveMode
from legged_envs.compat.isaac_gym.force_sensors import ForceSensors
from legged_envs.compat.isaac_gym.gymtorch import Descriptor
from legged_envs.compat.isaac_gym.scene import Part
from legged_envs.compat.isaac_gym.speed_limits import SpeedLimits, find_slice
from legged_envs.compat.isaac_gym.tensor_arguments import TensorArguments
from legged_envs.compat.isaac_gym.tensor_layout import TENSOR_COLUMNS, TENSOR_ROWS
from legged_envs.compat.isaac_gym.torch_utils import quat_apply, quat_rotate_inverse

ENGINE_TO_ISAAC = [1, 2, 3, 0]
"""Order that makes (x, y, z, w) of (w, x, y, z)."""

ISAAC_TO_ENGINE = [3, 0, 1, 2]
"""Order that makes (w, x, y, z) of (x, y, z, w)."""

# The engine has three warnings of this kind, one after another: BADQPOS, BADQVEL and BADQACC.
DIVERGENCE_WARNINGS = slice(
    int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADCTRL) + 1
)
"""The engine's warnings of numbers that are not finite or too large."""

NUM_ENVS_IN_WARNING = 8
"""Largest number of environments that a warning lists."""


class State:
    """The environments of a running simulation.

    Rows of tensors are ordered by environment, then by actor.

    Root and DOF tensors are current after a step and after a setter, states of bodies when they are
    refreshed. Contact forces and DOF forces belong to the last physics step.

    Args:
        batch: The engine.
        parts: Each actor's parts of the arrays of the model.
        substeps: Number of physics steps per ``simulate``.
        dof_properties: Properties of the DOFs, with the fields ``DOF_DTYPE``.
            Shape: (num_envs, num_dofs).
        force_sensors: The force sensors.
        device: Device of the tensors.
    """

    def __init__(
        self,
        batch: mujoco.batch.Batch,
        parts: Sequence[Part],
        substeps: int,
        dof_properties: np.ndarray,
        force_sensors: ForceSensors,
        device: torch.device,
    ):
        self.batch = batch
        """The engine."""
        self.model: mujoco.MjModel = batch.model
        """The model that all environments share."""
        self.parts = parts
        """Each actor's parts of the arrays of the model."""
        self.num_envs: int = batch.nsim
        """Number of environments."""
        self.device = device
        """Device of the tensors."""
        self.modes = torch.from_numpy(dof_properties["driveMode"].copy())
        """Drive mode of each DOF. Shape: (num_envs, num_dofs)."""
        sizes = {
            "actors": len(parts),
            "dofs": self.model.nu,
            # Body 0 is the world, which Isaac Gym does not count.
            "bodies": self.model.nbody - 1,
            "force_sensors": force_sensors.count,
        }

        self.arguments = TensorArguments(self.num_envs, sizes, device)
        """Checks of tensors that are given."""
        self.constants_changed = np.zeros(self.num_envs, bool)
        """Environments with changed fields from which the engine derives others.
        Shape: (num_envs,)."""
        self.frame_count = 0
        """Number of calls of ``simulate`` so far."""
        self._substeps = substeps
        self._force_sensors = force_sensors
        joints = np.concatenate([part.joints for part in parts])
        self._dof_qpos = torch.from_numpy(self.model.jnt_qposadr[joints]).long()
        self._dof_qvel = torch.from_numpy(self.model.jnt_dofadr[joints]).long()
        self._selected_qpos = find_slice(self._dof_qpos)
        self._selected_qvel = find_slice(self._dof_qvel)
        self._bind_inputs()
        self.speed_limits = SpeedLimits(
            torch.from_numpy(dof_properties["velocity"].astype(float)),
            self._dof_qpos,
            self._dof_qvel,
            self.model.opt.timestep,
        )
        """Limits of the speeds of the DOFs."""
        self._roots_of_bodies = torch.from_numpy(self.model.body_rootid[1:]).long()
        self._has_moved = True  # Positions of bodies are older than positions of joints.
        self._forces_given = False
        self._body_forces_given = False
        self._last_applied: Tensor | None = None
        self._buffers: dict[str, Tensor] = {}
        self._outputs: dict[str, Tensor] = {}
        self._keep_outputs_of_step()

    def _bind_inputs(self) -> None:
        """Make tensors that share the memory of the engine's inputs."""
        self._qpos = torch.from_numpy(self.batch.bind("qpos"))
        self._qvel = torch.from_numpy(self.batch.bind("qvel"))
        self._ctrl = torch.from_numpy(self.batch.bind("ctrl"))
        self._applied = torch.from_numpy(self.batch.bind("xfrc_applied"))
        self._mocap_pos = torch.from_numpy(self.batch.bind("mocap_pos"))
        self._mocap_quat = torch.from_numpy(self.batch.bind("mocap_quat"))

    def bind_output(self, field: str) -> Tensor:
        """Return a tensor that shares the memory of one of the engine's outputs.

        From the first call on the engine copies this output after each step. So fields that no
        script asks for cost no time.
        """
        if field not in self._outputs:
            with warnings.catch_warnings():
                # The engine marks its outputs as read-only, of which PyTorch warns.
                warnings.simplefilter("ignore", UserWarning)
                self._outputs[field] = torch.from_numpy(self.batch.bind(field))
        return self._outputs[field]

    def _keep_outputs_of_step(self) -> None:
        """Take the forces that only a step evaluates from the engine's memory."""
        self._body_forces_of_step = self.bind_output("cfrc_ext")
        self._dof_forces_of_step = self.bind_output("actuator_force")

    # --- Steps ------------------------------------------------------------------------------------

    def simulate(self) -> None:
        """Run one step of ``dt``.

        Forces on DOFs and bodies act in this step only. No DOF is faster than its ``velocity``.
        Numbers that are not finite lead to a warning that names their environments.
        """
        is_effort = self.modes == int(DofDriveMode.DOF_MODE_EFFORT)
        if self._forces_given:
            self.speed_limits.stop_driving(self._ctrl, self._qvel, is_effort)
        self.update_constants()
        self.batch.step(nstep=self._substeps)
        self.speed_limits.apply(self._qpos, self._qvel)
        self.frame_count += 1
        self._has_moved = True
        if self._forces_given:
            self._ctrl.masked_fill_(is_effort, 0.0)
            self._forces_given = False
        self._last_applied = None
        self._keep_outputs_of_step()
        if self._body_forces_given:
            # The engine counts them among the contact forces, from which a read subtracts them.
            self._last_applied = self._applied[:, 1:].clone()
            self._applied.zero_()
            self._body_forces_given = False
        # The next evaluation of kinematics overwrites what sensors read.
        self._force_sensors.measure(self._last_applied)
        self._warn_of_divergence()

    def _warn_of_divergence(self) -> None:
        counts = self.batch.warning[:, DIVERGENCE_WARNINGS, 1]
        # Counting is the cheapest way to find that there are none, as in nearly every step.
        if not np.count_nonzero(counts):
            return
        bad = np.flatnonzero(counts.any(1))
        self.batch.warning[:] = 0
        # The frames are this one, State.simulate, Gym.simulate and the script.
        warnings.warn(
            f"simulate: environments {bad[:NUM_ENVS_IN_WARNING].tolist()} had numbers that are "
            "not finite or too large, and were put back to the start state of environment 0",
            RuntimeWarning,
            stacklevel=4,
        )

    def drive(self, values: Tensor, mode: DofDriveMode, actors: Tensor | None = None) -> None:
        """Set forces or targets of the DOFs that are in one drive mode.

        Args:
            values: Forces or targets of all DOFs, num_envs · num_dofs of them.
            mode: Drive mode. DOFs in another mode keep what they have.
            actors: Indices of the actors to set. None: all.
        """
        values = values.reshape(self._ctrl.shape).to("cpu", torch.float64)
        is_set = self.modes == int(mode)
        if actors is not None:
            is_chosen = torch.zeros_like(is_set)
            for k, part in enumerate(self.parts):
                is_chosen[self._find_envs(actors, k), part.dofs] = True
            is_set &= is_chosen
        self._forces_given |= mode == DofDriveMode.DOF_MODE_EFFORT
        self._ctrl.copy_(torch.where(is_set, values, self._ctrl))

    def drive_one(self, env: int, dof: int, value: float, mode: DofDriveMode) -> None:
        """Set the force or target of one DOF of an environment, if it is in this drive mode."""
        if self.modes[env, dof] == int(mode):
            self._forces_given |= mode == DofDriveMode.DOF_MODE_EFFORT
            self._ctrl[env, dof] = value

    def apply_body_forces(
        self,
        function: str,
        forces: Descriptor | None,
        torques: Descriptor | None,
        space: int,
        places: Descriptor | None = None,
    ) -> None:
        """Apply forces and torques to bodies in the next step.

        Args:
            function: Name of the function that was called, for the error.
            forces: Descriptor of forces, N. Shape: (num_envs · num_bodies, 3). None: no change.
            torques: Descriptor of torques, N·m, in the same shape. None: no change.
            space: Frame of all, a ``CoordinateSpace``.
            places: Descriptor of the points at which forces act, m, in the same shape.
                None: the centers of mass.

        Raises:
            ValueError: If a shape does not fit, or there is no such space.
        """
        # Columns of the engine's array: forces are the first three, torques the last three. All is
        # checked before anything is written, so that a refused call has no effect.
        given: dict[int, Tensor] = {}
        if forces is not None:
            given[0] = self._read_vectors(function, forces)
        if torques is not None:
            given[3] = self._read_vectors(function, torques)
        points = None if places is None else self._read_vectors(function, places)
        if space not in tuple(CoordinateSpace):
            raise ValueError(
                f"gym.{function}: space must be one of gymapi.CoordinateSpace, got {space!r}"
            )
        if space == CoordinateSpace.LOCAL_SPACE:
            self.update_kinematics()
            quat = self.bind_output("xquat")[:, 1:, ENGINE_TO_ISAAC]
            for first_column, values in given.items():
                given[first_column] = quat_apply(quat, values)
            if points is not None:
                points = quat_apply(quat, points) + self.bind_output("xpos")[:, 1:]
        if points is not None:
            self.update_kinematics()
            lever = points - self.bind_output("xipos")[:, 1:]
            given[3] = torch.linalg.cross(lever, given[0])
        for first_column, values in given.items():
            self._applied[:, 1:, first_column : first_column + 3] = values
        self._body_forces_given = True

    def _read_vectors(self, function: str, given: Descriptor) -> Tensor:
        """Return vectors of all bodies. Shape: (num_envs, num_bodies, 3), float64."""
        values = self.arguments.read_values(function, given, "bodies", 3)
        return values.reshape(self.num_envs, -1, 3).to("cpu", torch.float64)

    def mark_moved(self) -> None:
        """Let states of bodies be evaluated again when they are read."""
        self._has_moved = True

    def update_constants(self) -> None:
        """Let the engine derive fields of the model from changed fields."""
        if self.constants_changed.any():
            self.batch.set_const(np.flatnonzero(self.constants_changed).astype(np.int32))
            self.constants_changed[:] = False

    # --- Tensors ----------------------------------------------------------------------------------

    def acquire(self, name: str) -> Descriptor:
        """Return the buffer of a tensor. It is the same object at each call."""
        if name not in self._buffers:
            num_rows = self.num_envs * self.arguments.sizes[TENSOR_ROWS[name]]
            columns = TENSOR_COLUMNS[name]
            shape = (num_rows, columns) if columns > 1 else (num_rows,)
            # A script may run in inference mode now and not later. Tensors of inference mode
            # cannot be written outside of it.
            with torch.inference_mode(False):
                self._buffers[name] = torch.zeros(shape, device=self.device)
        return Descriptor(self._buffers[name])

    def refresh(self, name: str) -> None:
        """Fill the buffer of a tensor with the present values."""
        buffer = self.acquire(name).tensor.view(self.num_envs, -1, TENSOR_COLUMNS[name])
        buffer.copy_(self.read(name))

    def read(self, name: str) -> Tensor:
        """Return the present values of a tensor. Shape: (num_envs, rows, columns)."""
        if name == "actor_root_state":
            return self._read_roots()
        if name == "dof_state":
            pos = self._qpos[:, self._selected_qpos]
            vel = self._qvel[:, self._selected_qvel]
            return torch.stack((pos, vel), dim=-1)
        if name == "net_contact_force":
            return self._read_contact_forces()
        if name == "rigid_body_state":
            return self._read_bodies()
        if name == "force_sensor":
            return self._force_sensors.readings
        return self._dof_forces_of_step.unsqueeze(-1)

    def _read_roots(self) -> Tensor:
        """Return positions, quaternions and velocities of the centers of mass of all bases."""
        rows = []
        for part in self.parts:
            if part.is_free:
                rows.append(self._read_free_root(part))
            else:
                pos = self._mocap_pos[:, part.mocap]
                quat = self._mocap_quat[:, part.mocap, ENGINE_TO_ISAAC]
                rest = torch.zeros_like(pos)
                rows.append(torch.cat((pos, quat, rest, rest), dim=1))
        return torch.stack(rows, dim=1)

    def _read_free_root(self, part: Part) -> Tensor:
        pos, engine_quat = self._qpos[:, part.qpos : part.qpos + 7].split((3, 4), dim=1)
        quat = engine_quat[:, ENGINE_TO_ISAAC]
        # The engine has the velocity of the body's origin in the world frame and the angular
        # velocity in the body frame. Isaac Gym has the velocity of the center of mass, and both in
        # the world frame.
        origin_vel, local_ang_vel = self._qvel[:, part.qvel : part.qvel + 6].split(3, dim=1)
        ang_vel = quat_apply(quat, local_ang_vel)
        lever = quat_apply(quat, self._get_base_com(part))
        lin_vel = origin_vel + torch.linalg.cross(ang_vel, lever)
        return torch.cat((pos, quat, lin_vel, ang_vel), dim=1)

    def _read_bodies(self) -> Tensor:
        self.update_kinematics()
        pos = self.bind_output("xpos")[:, 1:]
        quat = self.bind_output("xquat")[:, 1:, ENGINE_TO_ISAAC]
        com = self.bind_output("xipos")[:, 1:]
        ang_vel, root_vel = self.bind_output("cvel")[:, 1:].split(3, dim=-1)
        # cvel is the velocity at the center of mass of the whole robot, not of the body.
        root_com = self.bind_output("subtree_com")[:, self._roots_of_bodies]
        lin_vel = root_vel + torch.linalg.cross(ang_vel, com - root_com)
        return torch.cat((pos, quat, lin_vel, ang_vel), dim=-1)

    def _read_contact_forces(self) -> Tensor:
        # The first three columns of cfrc_ext are torques.
        forces = self._body_forces_of_step[:, 1:, 3:]
        if self._last_applied is None:
            return forces
        return forces - self._last_applied[..., :3]

    def update_kinematics(self) -> None:
        """Evaluate where bodies are: after a step the engine has where they were before it."""
        # Outputs must be bound before the engine evaluates them; otherwise it does not copy them.
        for field in ("xpos", "xquat", "xipos", "cvel", "subtree_com"):
            self.bind_output(field)
        if not self._has_moved:
            return
        # The evaluation overwrites the forces of the last step.
        self._body_forces_of_step = self._body_forces_of_step.clone()
        self._dof_forces_of_step = self._dof_forces_of_step.clone()
        self.update_constants()
        self.batch.forward(stage=mujoco.mjtStage.mjSTAGE_VEL.value)
        self._has_moved = False

    def write_roots(self, states: Tensor, actors: Tensor | None = None) -> None:
        """Set root states.

        Args:
            states: Root states of all actors, num_envs · num_actors rows of 13 columns.
            actors: Indices of the actors to set. None: all actors with states that differ from the
                present states. The others keep the digits that float32 cannot hold.
        """
        states = states.reshape(self.num_envs, -1, TENSOR_COLUMNS["actor_root_state"]).to("cpu")
        if actors is None:
            differs = (self._read_roots().float() != states).any(-1)
            actors = differs.flatten().nonzero().flatten()
        self._has_moved = True
        for k, part in enumerate(self.parts):
            env_ids = self._find_envs(actors, k)
            rows = states[env_ids, k].double()
            if part.is_free:
                self._write_free_root(part, env_ids, rows)
            else:
                self._mocap_pos[env_ids, part.mocap] = rows[:, :3]
                self._mocap_quat[env_ids, part.mocap] = rows[:, 3:7][:, ISAAC_TO_ENGINE]

    def _write_free_root(self, part: Part, env_ids: Tensor, states: Tensor) -> None:
        pos, quat, lin_vel, ang_vel = states.split((3, 4, 3, 3), dim=1)
        lever = quat_apply(quat, self._get_base_com(part)[env_ids])
        origin_vel = lin_vel - torch.linalg.cross(ang_vel, lever)
        local_ang_vel = quat_rotate_inverse(quat, ang_vel)
        pose = torch.cat((pos, quat[:, ISAAC_TO_ENGINE]), dim=1)
        self._qpos[env_ids, part.qpos : part.qpos + 7] = pose
        twist = torch.cat((origin_vel, local_ang_vel), dim=1)
        self._qvel[env_ids, part.qvel : part.qvel + 6] = twist

    def write_dofs(self, states: Tensor, actors: Tensor | None = None) -> None:
        """Set positions and velocities of DOFs.

        Args:
            states: States of all DOFs, num_envs · num_dofs rows of 2 columns.
            actors: Indices of the actors to set. None: all.
        """
        states = states.reshape(self.num_envs, -1, TENSOR_COLUMNS["dof_state"]).to("cpu")
        if actors is None:
            actors = torch.arange(self.num_envs * len(self.parts))
        self._has_moved = True
        for k, part in enumerate(self.parts):
            env_ids = self._find_envs(actors, k)
            rows = states[env_ids, part.dofs].double()
            self._qpos[env_ids[:, None], self._dof_qpos[part.dofs]] = rows[..., 0]
            self._qvel[env_ids[:, None], self._dof_qvel[part.dofs]] = rows[..., 1]

    def _find_envs(self, actors: Tensor, k: int) -> Tensor:
        """Return the environments in which actor ``k`` is among some actors."""
        num_actors = len(self.parts)
        return actors[actors % num_actors == k] // num_actors

    def _get_base_com(self, part: Part) -> Tensor:
        """Return the center of mass of the base in the base's frame, m. Shape: (num_envs, 3)."""
        if self.batch.expanded("body_ipos") is None:
            com = torch.from_numpy(self.model.body_ipos[None])
        else:
            com = torch.from_numpy(self.batch.expand("body_ipos"))
        return com[:, part.bodies.start].expand(self.num_envs, 3)
