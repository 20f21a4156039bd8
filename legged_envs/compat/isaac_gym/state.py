"""What happens while a simulation runs: steps, forces, and tensors from and to ``mujoco.batch.Batch``."""

import warnings
from collections.abc import Callable, Sequence

import mujoco
import mujoco.batch
import numpy as np
import torch
from torch import Tensor

from legged_envs.compat.isaac_gym.assets import Array
from legged_envs.compat.isaac_gym.gymtorch import Descriptor
from legged_envs.compat.isaac_gym.records import DOF_MODE_EFFORT, CoordinateSpace
from legged_envs.compat.isaac_gym.scene import Part
from legged_envs.compat.isaac_gym.torch_utils import quat_apply, quat_rotate_inverse

_XYZW, _WXYZ = [1, 2, 3, 0], [3, 0, 1, 2]
_DIVERGED = slice(int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADCTRL) + 1)
_KINEMATICS = ("xpos", "xquat", "xipos", "cvel", "subtree_com")
_OF_STEP = ("cfrc_ext", "actuator_force")
"""Fields that only a step evaluates."""
TENSORS = {
    "actor_root_state": 13,
    "dof_state": 2,
    "net_contact_force": 3,
    "rigid_body_state": 13,
    "dof_force": 1,
}
"""Columns of each tensor."""


class State:
    """The environments of a simulation. Their order of numbers is by environment, then by actor.

    Root and DOF tensors show what the engine has, also after a setter; bodies are evaluated anew for it when they are
    refreshed; contact forces and forces of DOFs are those of the last physics step."""

    def __init__(
        self,
        batch: mujoco.batch.Batch,
        parts: Sequence[Part],
        substeps: int,
        dofs: Array,
        device: torch.device,
    ):
        self.batch, self.parts, self.device = batch, parts, device
        self.modes, self.max_speeds = (
            torch.from_numpy(dofs[name].copy()) for name in ("driveMode", "velocity")
        )
        self.model, self.num_envs, self._substeps = batch.model, batch.nsim, substeps
        self.sizes = {"actors": len(parts), "dofs": self.model.nu, "bodies": self.model.nbody - 1}
        self.constants_changed, self.frame_count = np.zeros(batch.nsim, bool), 0
        names = ("qpos", "qvel", "ctrl", "xfrc_applied", "mocap_pos", "mocap_quat")
        self._qpos, self._qvel, self._ctrl, self._applied, *self._mocap = (
            torch.from_numpy(batch.bind(name)) for name in names
        )
        joints = np.concatenate([part.joints for part in parts])
        places = (self.model.jnt_qposadr, self.model.jnt_dofadr)
        self._dof_qpos, self._dof_qvel = (torch.from_numpy(each[joints]).long() for each in places)
        self._roots_of_bodies = torch.from_numpy(self.model.body_rootid[1:]).long()
        self._moved, self._forces_given, self._body_forces_given = True, False, False
        self._last_applied: Tensor | None = None
        self._buffers = dict[str, Tensor]()
        self._outputs = dict[str, Tensor]()
        self._of_step = self._bind(_OF_STEP)

    # --- Steps --------------------------------------------------------------------------------------------------------

    def simulate(self) -> None:
        """One step of ``dt``. Forces on DOFs and bodies count for it alone; a DOF in mode EFFORT, faster than its
        ``velocity``, is not driven on. A warning tells of numbers that are not finite."""
        speeds = self._qvel[:, self._dof_qvel]
        idle = (
            (speeds.abs() > self.max_speeds) & (speeds * self._ctrl > 0.0)
            if self._forces_given
            else True
        )
        self._ctrl.masked_fill_((self.modes == DOF_MODE_EFFORT) & idle, 0.0)
        self.update_constants()
        self.batch.step(nstep=self._substeps)
        self.frame_count += 1
        self._moved, self._forces_given, self._last_applied = True, False, None
        self._of_step = self._bind(_OF_STEP)
        if self._body_forces_given:
            self._last_applied, self._body_forces_given = self._applied[:, 1:, :3].clone(), False
            self._applied.zero_()
        if np.count_nonzero(self.batch.warning[:, _DIVERGED, 1]):
            bad = np.flatnonzero(self.batch.warning[:, _DIVERGED, 1].any(1))
            self.batch.warning[:] = 0
            what = "had numbers that are not finite or too large, and were put back to where environment 0 began"
            warnings.warn(
                f"simulate: environments {bad[:8].tolist()} {what}", RuntimeWarning, stacklevel=4
            )

    def drive(self, values: Tensor, mode: int) -> None:
        """Forces or targets of the DOFs of a mode."""
        values = values.reshape(self._ctrl.shape).to("cpu", torch.float64)
        self._ctrl.copy_(torch.where(self.modes == mode, values, self._ctrl))
        self._forces_given |= mode == DOF_MODE_EFFORT

    def apply_body_forces(
        self, forces: Descriptor | None, torques: Descriptor | None, space: int
    ) -> None:
        function, columns = "apply_rigid_body_force_tensors", {0: forces, 3: torques}
        given = {
            i: self.checked(function, each, "bodies", 3)
            for i, each in columns.items()
            if each is not None
        }
        if space not in tuple(CoordinateSpace):
            raise ValueError(
                f"gym.{function}: space must be one of gymapi.CoordinateSpace, got {space!r}"
            )
        for first, tensor in given.items():
            values = tensor.reshape(self.num_envs, -1, 3).to("cpu", torch.float64)
            if space == CoordinateSpace.LOCAL_SPACE:
                values = quat_apply(self._update_kinematics()[1][:, 1:, _XYZW], values)
            self._applied[:, 1:, first : first + 3] = values
        self._body_forces_given = True

    def update_constants(self) -> None:
        if self.constants_changed.any():
            self.batch.set_const(np.flatnonzero(self.constants_changed).astype(np.int32))
            self.constants_changed[:] = False

    # --- Tensors ------------------------------------------------------------------------------------------------------

    def acquire(self, name: str) -> Descriptor:
        """The buffer of a tensor, always the same."""
        if name not in self._buffers:
            kind = {"actor_root_state": "actors", "dof_state": "dofs", "dof_force": "dofs"}.get(
                name, "bodies"
            )
            rows, columns = self.num_envs * self.sizes[kind], TENSORS[name]
            with torch.inference_mode(False):
                self._buffers[name] = torch.zeros(
                    (rows, columns) if columns > 1 else rows, device=self.device
                )
        return Descriptor(self._buffers[name])

    def checked(self, function: str, given: Descriptor, kind: str, columns: int) -> Tensor:
        """The tensor of a descriptor; ValueError unless it is that of all actors, bodies or DOFs, in rows of
        ``columns`` or, of one, in rows of all or of an environment's."""
        tensor, rows = (
            self._unwrapped(function, given, torch.float32),
            self.num_envs * self.sizes[kind],
        )
        shape = tuple(tensor.shape)
        fits = shape[-1:] == (columns,) if columns > 1 else shape[:1] in ((rows,), (self.num_envs,))
        if not fits or tensor.numel() != rows * columns or tensor.device != self.device:
            expected = f"{(rows, columns) if columns > 1 else (self.num_envs, self.sizes[kind])} on {self.device}"
            got = f"{shape} on {tensor.device}, expected {expected}"
            raise ValueError(f"gym.{function}: got {got}, for the {kind} of all environments")
        return tensor

    def checked_actors(self, function: str, given: Descriptor, count: int) -> Tensor:
        """The first ``count`` indices of a descriptor; ValueError unless they are int32 and those of actors."""
        if count < 0:
            raise ValueError(f"gym.{function} takes a number of indices of at least 0, got {count}")
        ids = self._unwrapped(function, given, torch.int32).flatten()[:count].to("cpu", torch.int64)
        actors = self.num_envs * len(self.parts)
        if len(ids) < count or len(wrong := ids[(ids < 0) | (ids >= actors)]):
            got = f"{len(ids)} of them" if len(ids) < count else f"one of actor {int(wrong[0])}"
            raise ValueError(
                f"gym.{function} takes {count} indices of actors, which are 0 to {actors - 1}, got {got}"
            )
        return ids

    def _unwrapped(self, function: str, given: Descriptor, dtype: torch.dtype) -> Tensor:
        if not isinstance(given, Descriptor) or given.tensor.dtype != dtype:
            got = given.tensor.dtype if isinstance(given, Descriptor) else type(given).__name__
            raise TypeError(
                f"gym.{function} takes gymtorch.unwrap_tensor(tensor) of a {dtype} tensor, got {got}"
            )
        return given.tensor.detach()

    def refresh(self, name: str) -> None:
        """Fill the buffer of a tensor."""
        buffer = self.acquire(name).tensor.view(self.num_envs, -1, TENSORS[name])
        read: dict[str, Callable[[], Tensor]] = {
            "actor_root_state": self._roots,
            "dof_state": lambda: torch.stack(
                (self._qpos[:, self._dof_qpos], self._qvel[:, self._dof_qvel]), dim=-1
            ),
            "net_contact_force": self._contact_forces,
            "rigid_body_state": self._bodies,
            "dof_force": lambda: self._of_step[1].unsqueeze(-1),
        }
        buffer.copy_(read[name]())

    def write(self, name: str, values: Tensor, actors: Tensor | None = None) -> None:
        """Set the states of ``actors``, or of all: without ``actors`` roots that are as they were keep what float32
        cannot hold."""
        values = values.reshape(self.num_envs, -1, TENSORS[name]).to("cpu")
        if actors is None:
            actors = torch.arange(self.num_envs * len(self.parts))
            if name == "actor_root_state":
                actors = actors[(self._roots().float() != values).any(-1).flatten()]
        self._moved = True
        for k, part in enumerate(self.parts):
            envs = actors[actors % len(self.parts) == k] // len(self.parts)
            if name == "actor_root_state":
                self._write_root(part, envs, values[envs, k].double())
                continue
            for i, (array, places) in enumerate(
                ((self._qpos, self._dof_qpos), (self._qvel, self._dof_qvel))
            ):
                array[envs[:, None], places[part.dofs]] = values[envs, part.dofs, i].double()

    def _roots(self) -> Tensor:
        """Position, quaternion (x, y, z, w), velocities of the centre of mass. Shape: (num_envs, actors, 13)."""
        rows = []
        for part in self.parts:
            if part.floats:
                pos, quat = self._qpos[:, part.qpos : part.qpos + 7].split((3, 4), dim=1)
                vel, turn = self._qvel[:, part.qvel : part.qvel + 6].split(3, dim=1)
                ang = quat_apply(quat := quat[:, _XYZW], turn)
                twist = (vel + torch.linalg.cross(ang, quat_apply(quat, self._com(part))), ang)
            else:
                pos, quat = self._mocap[0][:, part.mocap], self._mocap[1][:, part.mocap, _XYZW]
                twist = torch.zeros_like(pos), torch.zeros_like(pos)
            rows.append(torch.cat((pos, quat, *twist), dim=1))
        return torch.stack(rows, dim=1)

    def _write_root(self, part: Part, envs: Tensor, states: Tensor) -> None:
        pos, quat, lin, ang = states.split((3, 4, 3, 3), dim=1)
        if part.floats:
            vel = lin - torch.linalg.cross(ang, quat_apply(quat, self._com(part)[envs]))
            self._qpos[envs, part.qpos : part.qpos + 7] = torch.cat((pos, quat[:, _WXYZ]), dim=1)
            self._qvel[envs, part.qvel : part.qvel + 6] = torch.cat(
                (vel, quat_rotate_inverse(quat, ang)), dim=1
            )
        else:
            self._mocap[0][envs, part.mocap], self._mocap[1][envs, part.mocap] = pos, quat[:, _WXYZ]

    def _com(self, part: Part) -> Tensor:
        """Centre of mass of the base in its own frame."""
        shared = self.batch.expanded("body_ipos") is None
        com = torch.from_numpy(
            self.model.body_ipos[None] if shared else self.batch.expand("body_ipos")
        )
        return com[:, part.bodies.start].expand(self.num_envs, 3)

    def _bind(self, fields: Sequence[str]) -> list[Tensor]:
        """Outputs of the engine, which it copies out at each call from the first time on that they are asked for."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # the engine marks its outputs as read-only
            for field in (field for field in fields if field not in self._outputs):
                self._outputs[field] = torch.from_numpy(self.batch.bind(field))
        return [self._outputs[field] for field in fields]

    def _update_kinematics(self) -> list[Tensor]:
        """Evaluate where bodies are: a step leaves where they were before it."""
        outputs = self._bind(_KINEMATICS)
        if self._moved:
            self._of_step = [output.clone() for output in self._of_step]  # which forward spoils
            self.update_constants()
            self.batch.forward(stage=mujoco.mjtStage.mjSTAGE_VEL.value)
            self._moved = False
        return outputs

    def _bodies(self) -> Tensor:
        pos, quat, com, twist, roots = self._update_kinematics()
        ang, lin = twist[:, 1:].split(
            3, dim=-1
        )  # cvel is about the centre of mass of the whole robot
        lin = lin + torch.linalg.cross(ang, com[:, 1:] - roots[:, self._roots_of_bodies])
        return torch.cat((pos[:, 1:], quat[:, 1:, _XYZW], lin, ang), dim=-1)

    def _contact_forces(self) -> Tensor:
        forces = self._of_step[0][:, 1:, 3:]
        return forces if self._last_applied is None else forces - self._last_applied
