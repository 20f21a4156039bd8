"""Robots and objects of a scene: their pose and velocity in the arrays of a MuJoCo model."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from legged_envs.sim.engines.arrays import EngineArray, Quantity
from legged_envs.sim.quantities import FreeBody

if TYPE_CHECKING:
    from legged_envs.sim.engines.model_simulation import ModelSimulation


class ModelBody(FreeBody):
    """A robot or object with a free joint in ``qpos`` and ``qvel`` of a MuJoCo model."""

    _qpos: Tensor
    """Positions of the whole scene in the engine's memory; writes to it act. (num_envs, nq)."""
    _qvel: Tensor
    """Velocities of the whole scene in the engine's memory; writes to it act. (num_envs, nv)."""
    _state: EngineArray
    """Array that ``_qpos_read`` and ``_qvel_read`` are parts of."""
    _qpos_read: Tensor
    """Positions of the whole scene, float32, as of the last refresh of ``_state``."""
    _qvel_read: Tensor
    """Velocities of the whole scene, float32, as of the last refresh of ``_state``."""
    _root_qpos: slice
    """Columns of the free joint in ``qpos``: position and quaternion."""
    _root_qvel: slice
    """Columns of the free joint in ``qvel``: velocity and angular velocity."""
    _quantities: dict[str, Quantity]
    """Quantities by name."""

    def _read_quantity(self, name: str) -> Tensor:
        array, values = self._quantities[name]
        array.refresh()
        return values

    def _root_quantities(self) -> dict[str, Quantity]:
        # A free joint has 7 numbers in qpos and 6 in qvel, the angular velocity in its own frame.
        pose = self._qpos_read[:, self._root_qpos]
        twist = self._qvel_read[:, self._root_qvel]
        return {
            "root_pos_w": Quantity(self._state, pose[:, :3]),
            "root_quat_w": Quantity(self._state, pose[:, 3:]),
            "root_lin_vel_w": Quantity(self._state, twist[:, :3]),
            "root_ang_vel_b": Quantity(self._state, twist[:, 3:]),
        }

    def write_root_state(
        self, env_ids: Tensor, pos_w: Tensor, quat_w: Tensor, lin_vel_w: Tensor, ang_vel_b: Tensor
    ) -> None:
        pose = torch.cat((pos_w, quat_w), dim=1)
        twist = torch.cat((lin_vel_w, ang_vel_b), dim=1)
        self._qpos[env_ids, self._root_qpos] = pose.to(self._qpos.dtype)
        self._qvel[env_ids, self._root_qvel] = twist.to(self._qvel.dtype)
        self._state.mark_stale(env_ids)

    def push(self, env_ids: Tensor, lin_vel_w: Tensor) -> None:
        # The first three velocities of a free joint are its linear velocity in the world.
        first = self._root_qvel.start
        self._qvel[env_ids, first : first + 3] += lin_vel_w.to(self._qvel.dtype)
        self._state.mark_stale(env_ids)


class ModelObject(ModelBody):
    """An object of a scene, such as a ball, in every environment.

    Args:
        sim: Simulation of the scene.
        name: Name of the object. Its body in the MuJoCo model is ``<name>/body``.
    """

    def __init__(self, sim: "ModelSimulation", name: str):
        self._qpos = sim._qpos
        self._qvel = sim._qvel
        self._state = sim._state
        self._qpos_read = sim._qpos_read
        self._qvel_read = sim._qvel_read
        joint = sim.model.joint(f"{name}/root")
        first_qpos = int(joint.qposadr[0])
        first_qvel = int(joint.dofadr[0])
        self._root_qpos = slice(first_qpos, first_qpos + 7)
        self._root_qvel = slice(first_qvel, first_qvel + 6)
        body = sim.model.body(f"{name}/body").id
        force = sim.ARRAY(sim._outputs["cfrc_ext"][:, body, 3:])
        sim._arrays.append(force)
        self._quantities = self._root_quantities()
        self._quantities["contact_force_w"] = Quantity(force, force.buffer)
