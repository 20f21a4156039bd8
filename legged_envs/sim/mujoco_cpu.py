"""Physics on the CPU with ``mujoco.batch.Batch``, in float64, bit-identical to a plain ``mj_step`` loop."""

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import torch
from torch import Tensor

from legged_envs.robots import RobotCfg
from legged_envs.sim.cfg import SceneCfg
from legged_envs.sim.mujoco_model import (
    ALL,
    OUTPUTS,
    SEEN_BY_RAYS,
    LiveArray,
    ModelSimulation,
    check_shapes,
    flatten,
)
from legged_envs.sim.simulation import SimCfg

_DIVERGED = slice(int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADCTRL) + 1)
"""MuJoCo's warnings about numbers that are not finite or huge: those of qpos, qvel, qacc and ctrl."""
SMALL = 128  # environments up to which NumPy converts faster than PyTorch
_FEW = (
    1 / 64
)  # fraction of the environments up to which rows are converted one by one rather than all together


class _Converted(LiveArray):
    """A float32 copy of an engine array, brought up to date when it is read."""

    def __init__(self, source: Tensor):
        self.source = source
        self.buffer = torch.zeros(source.shape, dtype=torch.float32)
        self.stale: slice | Tensor | None = ALL
        self._update: Callable[[], object] = partial(self.buffer.copy_, source)
        if len(source) <= SMALL:
            self._update = partial(np.copyto, self.buffer.numpy(), source.numpy(), "same_kind")

    def read(self) -> Tensor:
        if self.stale is ALL:
            self._update()
        elif self.stale is not None:
            self.buffer[self.stale] = self.source[self.stale].float()
        self.stale = None
        return self.buffer

    def mark(self, rows: slice | Tensor) -> None:
        _mark_stale((self,), rows)


def _mark_stale(arrays: Sequence[Any], rows: slice | Tensor) -> None:
    if isinstance(rows, Tensor) and len(rows) > _FEW * len(arrays[0].source):
        rows = ALL
    for array in arrays:
        array.stale = rows if array.stale is None or array.stale is rows else ALL


class MujocoSimulation(ModelSimulation):
    """``num_envs`` scenes on ``mujoco.batch.Batch``; ``model`` may differ from ``build_scene(robot, cfg, scene)`` in
    options. The laws of MuJoCo's actuators act in every physics step, with the damping treated implicitly."""

    ARRAY = _Converted

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
            raise ValueError(f"sim='mujoco' runs on device='cpu', got device={str(device)!r}")
        super().__init__(robot, cfg, num_envs, device)
        model = self._take_model(scene := scene or SceneCfg(), model)
        self.batch = batch = mujoco.batch.Batch(model, num_envs, cfg.num_threads)
        self.survives_fork = (
            num_envs == 1 or cfg.num_threads == 1
        )  # a pool's threads stay in the parent process
        first, sizes = (
            mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_TIME),
            (model.nq, model.nv),
        )
        self._state = state = _Converted(
            torch.from_numpy(batch.state)[:, first : first + sum(sizes)]
        )
        self._qpos, self._qvel = state.source.split(sizes, dim=1)
        self._seen, self._controls = (
            state.buffer.split(sizes, dim=1),
            torch.from_numpy(batch.bind("ctrl")),
        )
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # the engine marks some of its outputs as read-only
            self._outputs = {name: torch.from_numpy(batch.bind(name)) for name in OUTPUTS}
        self._constants_changed = changed = np.zeros(num_envs, dtype=bool)
        self._warning_counts = batch.warning[:, _DIVERGED, 1]
        saved = {"rows": batch.state, "warning": batch.warning, "constants_changed": changed}
        self._saved: dict[str, Any] = {**saved, "outputs": self._outputs}
        self._default = np.empty_like(batch.state[0])
        self._take_scene(scene, batch.get_data)
        self._default[:] = batch.state[0]
        batch.forward()

    def step(self, num_steps: int) -> None:
        self._update_constants()
        self.batch.step(nstep=num_steps)
        _mark_stale(self._arrays, ALL)

    def set_timestep(self, dt: float) -> None:
        self.batch.expand("opt.timestep")[:] = dt

    def forward(self, env_ids: Tensor) -> None:
        self._update_constants()
        self.batch.forward(env_ids.numpy().astype(np.int32))
        _mark_stale(self._arrays, env_ids)

    def _restore_start(self, env_ids: Tensor) -> None:
        self.batch.state[env_ids.numpy()] = self._default

    def _own_field(self, name: str, write: bool) -> Tensor | None:
        return (
            torch.from_numpy(self.batch.expand(name))
            if write or self.batch.expanded(name) is not None
            else None
        )

    def _mark_constants(self, env_ids: Tensor) -> None:
        self._constants_changed[env_ids.numpy()] = True

    def _update_constants(self) -> None:
        if np.count_nonzero(self._constants_changed):  # a quarter of the time of any()
            self.batch.set_const(np.flatnonzero(self._constants_changed).astype(np.int32))
            self._constants_changed[:] = False

    def _cast_at_shapes(self, origins_w: Tensor, directions_w: Tensor) -> Tensor:
        groups = np.array(SEEN_BY_RAYS, np.uint8)
        distances, _ = self.batch.ray(
            origins_w.double().numpy(), directions_w.double().numpy(), groups
        )
        return torch.from_numpy(distances).float()

    def diverged(self) -> Tensor | None:
        state = self._state.read()
        if not np.count_nonzero(self._warning_counts) and math.isfinite(state.sum().item()):
            return None
        bad = ~torch.isfinite(state).all(1) | torch.from_numpy(self._warning_counts.any(1))
        self.batch.warning[:] = 0
        return bad if bad.any() else None

    def get_state(self) -> dict[str, Any]:
        return copy.deepcopy({**self._saved, "parameters": self._expanded()})

    def set_state(self, state: dict[str, Any]) -> None:
        given, parameters = self._check_state(state), state["parameters"]
        for name, array in flatten(self._saved).items():
            array[:] = given[name]
        for name in {**self._expanded(), **parameters}:
            self.batch.expand(name)[:] = (
                parameters[name] if name in parameters else attrgetter(name)(self.model)
            )
        for robot in self.robots.values():
            for name, value in vars(robot.parameters).items():
                value.copy_(robot._read_parameter(name, default=False))
        _mark_stale(self._arrays, ALL)

    def _expanded(self) -> dict[str, np.ndarray]:
        fields = {name: self.batch.expanded(name) for name in mujoco.batch.MODEL_FIELDS}
        return {name: values for name, values in fields.items() if values is not None}

    def _check_state(self, state: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(state.get("parameters"), dict):
            raise ValueError(
                f"the state of a simulation holds a dict 'parameters', got {state.get('parameters')!r}"
            )
        expected = {name: np.shape(array) for name, array in flatten(self._saved).items()}
        for name in mujoco.batch.MODEL_FIELDS.intersection(state["parameters"]):
            expected[f"parameters.{name}"] = (
                self.num_envs,
                *np.shape(attrgetter(name)(self.model)),
            )
        check_shapes(given := flatten(state), expected)
        return given
