"""What engines have in common that compute in float32 with the arrays of a MuJoCo model, on a CPU or a GPU."""

import copy
from typing import Any

import mujoco
import torch
from torch import Tensor

from legged_envs.sim.cfg import SceneCfg
from legged_envs.sim.mujoco_model import LiveArray, ModelSimulation, check_shapes, flatten

HUGE = 1e10
"""Numbers beyond which MuJoCo resets a state (``mjMAXVAL``)."""
SET = (
    "geom_friction",
    "body_mass",
    "body_ipos",
    "dof_armature",
    "actuator_gainprm",
    "actuator_biasprm",
)
"""Fields of ``MjModel`` that parameters set."""


class LiveSimulation(ModelSimulation):
    """A model simulation whose arrays are the engine's own, in float32, which the next step overwrites in place. An
    engine has ``_fields`` of its own model and ``_outputs``, and calls ``_take_arrays``."""

    _fields: dict[str, Tensor]
    """Fields of ``MjModel`` of which each environment has its own."""

    def _check_device(self, name: str, device: torch.device) -> torch.device:
        """The device with its index; ValueError unless it is the CPU or an NVIDIA GPU."""
        if device.type != "cpu" and not (device.type == "cuda" and torch.cuda.is_available()):
            where = "on device='cpu', and on 'cuda' where PyTorch finds an NVIDIA GPU"
            raise ValueError(f"sim={name!r} runs {where}, got device={str(device)!r}")
        return (
            torch.device("cuda", torch.cuda.current_device()) if str(device) == "cuda" else device
        )

    def _take_arrays(self, scene: SceneCfg, state: dict[str, Tensor], timestep: Tensor) -> None:
        """Begin with ``state``: what the next step depends on, such as ``qpos``, ``qvel`` and ``ctrl``."""
        self._constants_changed = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self._stale_constants: set[str] = set()
        """Why constants are to be computed anew; all robots of a scene share it."""
        self._timestep = timestep
        common = {"timestep": timestep, "constants_changed": self._constants_changed}
        self._saved = {
            "state": state,
            "outputs": self._outputs,
            "parameters": self._fields,
            "common": common,
        }
        self._qpos, self._qvel, self._controls = state["qpos"], state["qvel"], state["ctrl"]
        self._seen, self._state = (self._qpos, self._qvel), LiveArray(self._qpos)
        for array in state.values():
            array.zero_()
        self._qpos.copy_(torch.from_numpy(self.model.qpos0))
        qpos, qvel = self._qpos, self._qvel

        def get_data(env_id: int, data: mujoco.MjData) -> None:
            data.qpos, data.qvel = qpos[env_id].cpu().numpy(), qvel[env_id].cpu().numpy()

        self._take_scene(scene, get_data)
        self._default = {name: array[0].clone() for name, array in state.items()}

    def set_timestep(self, dt: float) -> None:
        self._timestep.fill_(dt)

    def _mark_constants(self, env_ids: Tensor) -> None:
        self._constants_changed[env_ids] = True
        self._stale_constants.add("a parameter was set")

    def _own_field(self, name: str, write: bool) -> Tensor | None:
        return self._fields[name]

    def _restore_start(self, env_ids: Tensor) -> None:
        for name, array in self._saved["state"].items():
            array[env_ids] = self._default[name]

    def _fine(self) -> Tensor:
        """Which environments have finite numbers. Shape: (num_envs,)."""
        return (self._qpos.abs() < HUGE).all(1) & (self._qvel.abs() < HUGE).all(1)

    def get_state(self) -> dict[str, Any]:
        return copy.deepcopy(self._saved)

    def set_state(self, state: dict[str, Any]) -> None:
        given, own = flatten(state), flatten(self._saved)
        check_shapes(given, {name: tuple(array.shape) for name, array in own.items()})
        for name, array in own.items():
            array.copy_(torch.as_tensor(given[name]))
        if self._constants_changed.any():
            self._stale_constants.add("they were in the state")
        for robot in self.robots.values():
            for name, value in vars(robot.parameters).items():
                value.copy_(robot._read_parameter(name, default=False))
