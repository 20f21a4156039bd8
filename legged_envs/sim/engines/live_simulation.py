"""The common base class of engines that simulate a MuJoCo model in float32, on a CPU or a GPU."""

import copy
from typing import Any

import mujoco
import torch
from torch import Tensor

from legged_envs.sim.cfg import SceneCfg
from legged_envs.sim.engines.arrays import EngineArray
from legged_envs.sim.engines.model_simulation import ModelSimulation
from legged_envs.sim.engines.saved_state import check_shapes, flatten

HUGE = 1e10
"""Absolute value above which a position or velocity counts as diverged (MuJoCo's ``mjMAXVAL``)."""


class LiveSimulation(ModelSimulation):
    """A simulation with quantities that are the engine's own float32 arrays, without copies.

    The next step overwrites them in place. The constructor of a subclass calls ``_make_model``,
    then sets ``_fields`` and ``_outputs``, and then calls ``_make_live_scene``.
    """

    _fields: dict[str, Tensor]
    """Fields of ``MjModel`` with a row per environment, by name."""
    _stale_constants: set[str]
    """Reasons to compute the model's constants before the next step. Empty: they are up to date.

    All robots of a scene share the set.
    """

    def _check_device(self, engine: str, device: torch.device) -> torch.device:
        """Return the device with its index.

        Raises:
            ValueError: The device is neither the CPU nor an NVIDIA GPU that PyTorch finds.
        """
        is_gpu = device.type == "cuda" and torch.cuda.is_available()
        if device.type != "cpu" and not is_gpu:
            raise ValueError(
                f"sim={engine!r} runs on device='cpu', and on 'cuda' where PyTorch finds an "
                f"NVIDIA GPU, got device={str(device)!r}"
            )
        # The device of a tensor on "cuda" has an index, so it would not be equal to "cuda".
        if str(device) == "cuda":
            return torch.device("cuda", torch.cuda.current_device())
        return device

    def _make_live_scene(self, scene: SceneCfg, state: dict[str, Tensor], timestep: Tensor) -> None:
        """Take the arrays of the engine, and put everything to its start.

        Args:
            scene: Contents of the scene.
            state: Arrays that the next step depends on; ``qpos``, ``qvel`` and ``ctrl`` are
                among them. Shapes: (num_envs, …).
            timestep: Physics time step, s.
        """
        self._constants_changed = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self._stale_constants = set()
        self._timestep = timestep
        self._saved: dict[str, Any] = {
            "state": state,
            "outputs": self._outputs,
            "parameters": self._fields,
            "common": {"timestep": timestep, "constants_changed": self._constants_changed},
        }
        # The engine may have taken steps already, which have changed these arrays.
        for array in state.values():
            array.zero_()
        qpos = state["qpos"]
        qvel = state["qvel"]
        qpos.copy_(torch.from_numpy(self.model.qpos0))
        self._qpos = qpos
        self._qvel = qvel
        self._qpos_read = qpos
        self._qvel_read = qvel
        self._state = EngineArray(qpos)
        self._controls = state["ctrl"]

        def get_data(env_id: int, data: mujoco.MjData) -> None:
            data.qpos = qpos[env_id].cpu().numpy()
            data.qvel = qvel[env_id].cpu().numpy()

        # Made before the scene, because the simulations of further robots share it.
        self._start_rows: dict[str, Tensor] = {}
        """State of one environment after construction."""
        self._make_scene(scene, get_data)
        for name, array in state.items():
            self._start_rows[name] = array[0].clone()

    def set_timestep(self, dt: float) -> None:
        self._timestep.fill_(dt)

    def _mark_constants(self, env_ids: Tensor) -> None:
        self._constants_changed[env_ids] = True
        self._stale_constants.add("a parameter was set")

    def _field_to_read(self, name: str) -> Tensor | None:
        return self._fields[name]

    def _field_to_write(self, name: str) -> Tensor:
        return self._fields[name]

    def _restore_start(self, env_ids: Tensor) -> None:
        for name, array in self._saved["state"].items():
            array[env_ids] = self._start_rows[name]

    def _is_finite(self) -> Tensor:
        """Return the environments with finite, not huge numbers. Shape: (num_envs,), bool."""
        qpos_is_finite = (self._qpos.abs() < HUGE).all(1)
        qvel_is_finite = (self._qvel.abs() < HUGE).all(1)
        return qpos_is_finite & qvel_is_finite

    def get_state(self) -> dict[str, Any]:
        return copy.deepcopy(self._saved)

    def set_state(self, state: dict[str, Any]) -> None:
        given = flatten(state)
        own = flatten(self._saved)
        check_shapes(given, {name: tuple(array.shape) for name, array in own.items()})
        # Written in place, because the engine and the quantities use this memory.
        for name, array in own.items():
            array.copy_(torch.as_tensor(given[name]))
        if self._constants_changed.any():
            self._stale_constants.add("they were in the state")
        for robot in self.robots.values():
            robot._refresh_parameters()
