"""The engine ``"mujoco"``: MuJoCo on the CPU, in float64.

Its results are bit-identical to a plain loop of ``mj_step``.
"""

import copy
import math
import warnings
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import torch
from torch import Tensor

from legged_envs.robots import RobotCfg
from legged_envs.sim.cfg import SceneCfg, SimCfg
from legged_envs.sim.engines.arrays import ALL, ConvertedArray, mark_stale
from legged_envs.sim.engines.model_simulation import (
    GEOM_GROUPS_SEEN_BY_RAYS,
    OUTPUTS,
    ModelSimulation,
)
from legged_envs.sim.engines.saved_state import check_shapes, flatten
from legged_envs.sim.simulation import Simulation

BAD_NUMBER_WARNINGS = slice(
    int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADCTRL) + 1
)
"""Indices of MuJoCo's warnings about non-finite or huge numbers in qpos, qvel, qacc and ctrl."""
WARNING_COUNT = 1
"""Column of ``Batch.warning`` with the number of times that a warning was given."""


class MujocoSimulation(ModelSimulation):
    """A simulation of many environments with MuJoCo on the CPU (``mujoco.batch.Batch``).

    MuJoCo computes the torques of the actuators in every physics step, with implicit damping.

    Args:
        robot: First robot of the scene.
        cfg: Physics settings.
        num_envs: Number of environments.
        device: Device of all tensors, which must be the CPU.
        model: Model to use instead of ``build_scene(robot, cfg, scene)``. It must be the same
            model, but may have other options, such as another integrator. None: it is built.
        scene: Other robots, objects and ground. None: one robot on a plane.

    Raises:
        ValueError: The device is not the CPU, or the robot or the scene is wrong.
    """

    ARRAY = ConvertedArray
    parameter_names = (*Simulation.parameter_names, "joint_damping", "joint_friction")

    def __init__(
        self,
        robot: RobotCfg,
        cfg: SimCfg,
        num_envs: int,
        device: torch.device,
        model: mujoco.MjModel | None = None,
        scene: SceneCfg | None = None,
    ):
        if device.type != "cpu":
            raise ValueError(
                f"sim='mujoco' runs on device='cpu', got device={str(device)!r}: on a GPU take "
                "sim='mujoco_warp' (pip install 'legged-envs[warp]') or sim='genesis' "
                "(pip install 'legged-envs[genesis]')"
            )
        super().__init__(robot, cfg, num_envs, device)
        scene = scene or SceneCfg()
        model = self._make_model(scene, model)

        self.batch = mujoco.batch.Batch(model, num_envs, cfg.num_threads)
        """MuJoCo's batch, which steps all environments. It has a row of state per environment."""
        # A forked child process does not have the threads of the batch's thread pool.
        self.survives_fork = num_envs == 1 or cfg.num_threads == 1
        self._bind_arrays(model)
        # Made before the scene, because the simulations of further robots share it.
        self._start_row = np.empty_like(self.batch.state[0])
        """State of one environment after construction. Shape: (state size,)."""
        self._make_scene(scene, self.batch.get_data)
        self._start_row[:] = self.batch.state[0]
        self.batch.forward()

    def _bind_arrays(self, model: mujoco.MjModel) -> None:
        """Set the tensors that share the memory of the batch."""
        batch = self.batch
        # A row of state is time, qpos, qvel, and everything else that the future depends on.
        first = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_TIME)
        last = first + model.nq + model.nv
        self._state = ConvertedArray(torch.from_numpy(batch.state)[:, first:last])
        self._qpos = self._state.source[:, : model.nq]
        self._qvel = self._state.source[:, model.nq :]
        self._qpos_read = self._state.buffer[:, : model.nq]
        self._qvel_read = self._state.buffer[:, model.nq :]
        self._controls = torch.from_numpy(batch.bind("ctrl"))
        with warnings.catch_warnings():
            # The engine marks some of its outputs as read-only, which PyTorch warns about.
            warnings.simplefilter("ignore", UserWarning)
            self._outputs = {name: torch.from_numpy(batch.bind(name)) for name in OUTPUTS}
        self._constants_changed = np.zeros(self.num_envs, dtype=bool)
        """Environments that ``set_const`` must be called for before the next step."""
        self._warning_counts = batch.warning[:, BAD_NUMBER_WARNINGS, WARNING_COUNT]
        self._saved: dict[str, Any] = {
            "rows": batch.state,
            "warning": batch.warning,
            "constants_changed": self._constants_changed,
            "outputs": self._outputs,
        }

    def step(self, num_steps: int) -> None:
        self._update_constants()
        # All physics steps of a control step in one call, with Python's lock released.
        self.batch.step(nstep=num_steps)
        self._mark_all_arrays(ALL)

    def set_timestep(self, dt: float) -> None:
        self.batch.expand("opt.timestep")[:] = dt

    def forward(self, env_ids: Tensor) -> None:
        self._update_constants()
        self.batch.forward(env_ids.numpy().astype(np.int32))
        self._mark_all_arrays(env_ids)

    def _mark_all_arrays(self, rows: slice | Tensor) -> None:
        mark_stale(self._arrays, rows)  # type: ignore[arg-type]

    def _restore_start(self, env_ids: Tensor) -> None:
        # The row also has the targets and the solver's warm start, so that nothing of the episode
        # before remains.
        self.batch.state[env_ids.numpy()] = self._start_row

    def _field_to_read(self, name: str) -> Tensor | None:
        # Only a write expands a field to a row per environment, because this costs memory, and
        # time in every step.
        if self.batch.expanded(name) is None:
            return None
        return self._field_to_write(name)

    def _field_to_write(self, name: str) -> Tensor:
        return torch.from_numpy(self.batch.expand(name))

    def _mark_constants(self, env_ids: Tensor) -> None:
        self._constants_changed[env_ids.numpy()] = True

    def _update_constants(self) -> None:
        """Compute the model's constants in the environments where masses, for example, were set."""
        # count_nonzero takes a quarter of the time of any().
        if np.count_nonzero(self._constants_changed):
            changed = np.flatnonzero(self._constants_changed)
            self.batch.set_const(changed.astype(np.int32))
            self._constants_changed[:] = False

    def _cast_at_shapes(self, origins_w: Tensor, directions_w: Tensor) -> Tensor:
        distances, _ = self.batch.ray(
            origins_w.double().numpy(),
            directions_w.double().numpy(),
            np.array(GEOM_GROUPS_SEEN_BY_RAYS, np.uint8),
        )
        return torch.from_numpy(distances).float()

    def diverged(self) -> Tensor | None:
        self._state.refresh()
        state = self._state.buffer
        # If the sum is finite, all numbers are. It needs one pass and no temporary array.
        if not np.count_nonzero(self._warning_counts) and math.isfinite(state.sum().item()):
            return None
        # MuJoCo resets a state with such numbers itself and counts a warning, so the state can be
        # finite again by now.
        has_warning = torch.from_numpy(self._warning_counts.any(1))
        bad = ~torch.isfinite(state).all(1) | has_warning
        self.batch.warning[:] = 0
        return bad if bad.any() else None

    # --- State ------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        return copy.deepcopy({**self._saved, "parameters": self._own_fields()})

    def set_state(self, state: dict[str, Any]) -> None:
        # Everything is checked before anything is written: an error changes nothing.
        given = self._check_state(state)
        for name, array in flatten(self._saved).items():
            array[:] = given[name]
        given_fields = state["parameters"]
        for name in {**self._own_fields(), **given_fields}:
            if name in given_fields:
                values = given_fields[name]
            else:
                # At the time of the state the field had the model's value.
                values = _field_of_model(self.model, name)
            self.batch.expand(name)[:] = values
        for robot in self.robots.values():
            robot._refresh_parameters()
        self._mark_all_arrays(ALL)

    def _own_fields(self) -> dict[str, np.ndarray]:
        """Return the fields of the model that each environment has for itself."""
        fields = {}
        for name in mujoco.batch.MODEL_FIELDS:
            values = self.batch.expanded(name)
            if values is not None:
                fields[name] = values
        return fields

    def _check_state(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a state flattened; ValueError if it belongs to another simulation."""
        given_fields = state.get("parameters")
        if not isinstance(given_fields, dict):
            raise ValueError(
                "the state of a simulation holds a dict 'parameters', got "
                f"{state.get('parameters')!r}"
            )
        expected = {name: np.shape(array) for name, array in flatten(self._saved).items()}
        for name in mujoco.batch.MODEL_FIELDS.intersection(given_fields):
            shape = np.shape(_field_of_model(self.model, name))
            expected[f"parameters.{name}"] = (self.num_envs, *shape)
        given = flatten(state)
        check_shapes(given, expected)
        return given


def _field_of_model(model: mujoco.MjModel, name: str) -> Any:
    """Return a field that ``Batch.expand`` knows, such as ``"body_mass"`` or ``"opt.timestep"``."""
    return attrgetter(name)(model)
