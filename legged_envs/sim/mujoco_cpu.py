"""Physics on the CPU with MuJoCo's own batch engine, ``mujoco.batch.Batch``.

The batch steps all copies on its thread pool with the interpreter lock released, bit-identically to a plain ``mj_step``
loop. State arrives as float64 views of the batch's rows; each quantity is converted to float32 once per step, when it
is first read.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import torch

from legged_envs.robots import RobotCfg
from legged_envs.sim.render import SceneRenderer
from legged_envs.sim.robot_view import RobotView
from legged_envs.sim.scene import build_scene
from legged_envs.sim.simulation import SimCfg, Simulation

_DIVERGED = [int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}")) for what in ("QPOS", "QVEL", "QACC", "CTRL")]
"""Warnings about numbers that are not finite or huge, one after another in MuJoCo's enumeration."""
_CHANGES_CONSTANTS = ("body_mass", "com", "armature")
_OUTPUTS = ("qacc", "actuator_force", "xpos", "xquat", "cvel", "subtree_com", "cfrc_ext", "site_xpos", "sensordata")
"""Fields of ``MjData`` that the last physics step left, which a saved state holds too."""


def _share(array: np.ndarray) -> torch.Tensor:
    """A tensor on the memory of ``array``, which the engine may have marked read-only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


_ALL = slice(None)
_FEW = 1 / 64
"""Fraction of the environments up to which rows are converted one by one rather than all together."""


class _Converted:
    """A float32 copy of an engine array, brought up to date when it is read."""

    def __init__(self, source: torch.Tensor):
        self.source = source
        self.buffer = torch.zeros(source.shape, dtype=torch.float32)
        self._stale: slice | torch.Tensor | None = _ALL

    def mark(self, rows: slice | torch.Tensor) -> None:
        """Note that ``rows`` of the source changed."""
        self._stale = rows if self._stale is None or self._stale is rows else _ALL

    def read(self) -> torch.Tensor:
        if isinstance(self._stale, torch.Tensor):
            self.buffer[self._stale] = self.source[self._stale].float()
        elif self._stale is not None:
            self.buffer.copy_(self.source)
        self._stale = None
        return self.buffer


class MujocoSimulation(Simulation):
    """``num_envs`` robots on ``mujoco.batch.Batch``.

    MuJoCo's actuators drive the joints, so their laws act in every physics step, with the damping treated implicitly.
    Contact forces are ``cfrc_ext``: world frame, about the whole body.

    Args:
        model: A compiled model to use in place of ``build_scene(robot, cfg)``, from which it may differ in options.
    """

    def __init__(
        self,
        robot: RobotCfg,
        cfg: SimCfg,
        num_envs: int,
        device: torch.device,
        model: mujoco.MjModel | None = None,
    ):
        if device.type != "cpu":
            raise ValueError(f"sim='mujoco' runs on device='cpu', got device={str(device)!r}")
        super().__init__(robot, cfg, num_envs, device)
        self.model = build_scene(robot, cfg) if model is None else model
        self.robot_view = view = RobotView.find(self.model, robot)
        if view.root_qpos is None or view.root_qvel is None:
            raise ValueError(f"{robot.xml}: base_body {robot.base_body!r} of RobotCfg {robot.name!r} has no free joint")
        self._root_qpos, self._root_qvel = view.root_qpos, view.root_qvel
        self.batch = mujoco.batch.Batch(self.model, num_envs, cfg.num_threads)
        self.survives_fork = num_envs == 1 or cfg.num_threads == 1  # a pool's threads stay in the parent process
        self._renderer = SceneRenderer(self.model, robot, view, num_envs, self.batch.get_data)
        self._constants_changed = np.zeros(num_envs, dtype=bool)
        self._default = self._default_state()
        self._warning_counts = self.batch.warning[:, _DIVERGED[0] : _DIVERGED[-1] + 1, 1]
        self._parameter_parts = self._find_parameters()

        self.body_names = tuple(self.model.body(i).name for i in range(self.model.nbody)[view.bodies])
        limited = self.model.jnt_limited[view.joints, None].astype(bool)
        limits = np.where(limited, self.model.jnt_range[view.joints], (-np.inf, np.inf))
        self.joint_pos_limits = torch.tensor(limits, dtype=torch.float32)

        qpos, qvel, state = self.batch.bind("qpos"), self.batch.bind("qvel"), self.batch.state
        first = (qpos.ctypes.data - state.ctypes.data) // state.itemsize
        if qvel.ctypes.data != qpos.ctypes.data + self.model.nq * state.itemsize:
            raise RuntimeError("this MuJoCo version does not keep qvel behind qpos in a state row")
        self._qpos, self._qvel = torch.from_numpy(qpos), torch.from_numpy(qvel)
        self._ctrl = torch.from_numpy(self.batch.bind("ctrl"))[:, view.actuators]
        self._outputs = {name: _share(self.batch.bind(name)) for name in _OUTPUTS}
        self._state = _Converted(torch.from_numpy(state[:, first : first + self.model.nq + self.model.nv]))
        self._define_quantities()
        self.reset(torch.arange(num_envs))
        self.batch.forward()

    def _define_quantities(self) -> None:
        """Find each quantity in the engine's arrays."""
        view, out = self.robot_view, self._outputs
        bodies, base = view.bodies, slice(view.bodies.start, view.bodies.start + 1)
        converted = {
            "joint_acc": _Converted(out["qacc"][:, view.joint_qvel]),
            "joint_torque": _Converted(out["actuator_force"][:, view.actuators]),
            "body_pos_w": _Converted(out["xpos"][:, bodies]),
            "body_quat_w": _Converted(out["xquat"][:, bodies]),
            "body_twist": _Converted(out["cvel"][:, bodies]),
            "root_com_w": _Converted(out["subtree_com"][:, base]),
            "contact_force_w": _Converted(out["cfrc_ext"][:, bodies, 3:]),
            "foot_pos_w": _Converted(out["site_xpos"][:, view.foot_sites]),
            "foot_lin_vel_w": _Converted(out["sensordata"][:, view.foot_velocities].unflatten(1, (-1, 3))),
        }
        self._converted = (self._state, *converted.values())
        qpos, qvel = self._state.buffer.split((self.model.nq, self.model.nv), dim=1)
        root_qpos, root_qvel = qpos[:, self._root_qpos], qvel[:, self._root_qvel]
        self._quantities = {
            **{name: (array, array.buffer) for name, array in converted.items()},
            "root_pos_w": (self._state, root_qpos[:, :3]),
            "root_quat_w": (self._state, root_qpos[:, 3:]),
            "root_lin_vel_w": (self._state, root_qvel[:, :3]),
            "root_ang_vel_b": (self._state, root_qvel[:, 3:]),
            "joint_pos": (self._state, qpos[:, view.joint_qpos]),
            "joint_vel": (self._state, qvel[:, view.joint_qvel]),
            "body_ang_vel_w": (converted["body_twist"], converted["body_twist"].buffer[..., :3]),
        }

    def _find_parameters(self) -> dict[str, list[tuple[str, tuple[Any, ...], float, torch.Tensor | None]]]:
        """For each parameter the model's fields that hold it: name, part, sign, and for which joints (None: all)."""
        view, kinds = self.robot_view, np.array(self.robot.actuators)
        gain, kp, kd = (_ALL, view.actuators, 0), (_ALL, view.actuators, 1), (_ALL, view.actuators, 2)
        position, velocity = (torch.from_numpy(kinds == kind) for kind in ("position", "velocity"))
        return {
            "friction": [("geom_friction", (_ALL, view.geoms, 0), 1.0, None)],
            "body_mass": [("body_mass", (_ALL, view.bodies), 1.0, None)],
            "com": [("body_ipos", (_ALL, view.bodies), 1.0, None)],
            "armature": [("dof_armature", (_ALL, view.joint_qvel), 1.0, None)],
            "kp": [("actuator_biasprm", kp, -1.0, None), ("actuator_gainprm", gain, 1.0, position)],
            "kd": [("actuator_biasprm", kd, -1.0, None), ("actuator_gainprm", gain, 1.0, velocity)],
        }

    def _default_state(self) -> np.ndarray:
        """The state row of the default pose at rest, with the targets at the default pose."""
        view, pose = self.robot_view, np.array(self.robot.default_joint_pos)
        data = mujoco.MjData(self.model)
        data.qpos[:] = self.model.qpos0
        data.qpos[self._root_qpos.start + 2] = self.robot.base_height
        data.qpos[view.joint_qpos] = pose
        data.ctrl[view.actuators] = np.where(np.array(self.robot.actuators) == "position", pose, 0.0)
        spec = mujoco.mjtState.mjSTATE_INTEGRATION
        row = np.empty(mujoco.mj_stateSize(self.model, spec))
        mujoco.mj_getState(self.model, data, row, spec)
        return row

    def _read_quantity(self, name: str) -> torch.Tensor:
        if name == "body_lin_vel_w":
            # cvel is about the centre of mass of the whole robot: v_body = v + ω × (p_body − p_com)
            spatial = self._read_quantity("body_twist")
            arm = self.body_pos_w - self._read_quantity("root_com_w")
            return spatial[..., 3:] + torch.linalg.cross(spatial[..., :3], arm)
        array, part = self._quantities[name]
        array.read()
        return part

    # --- commands ----------------------------------------------------------------------------------------------------

    def _mark(self, converted: Iterable[_Converted], rows: slice | torch.Tensor) -> None:
        """Note that the engine's arrays changed in ``rows``."""
        if isinstance(rows, torch.Tensor) and len(rows) > _FEW * self.num_envs:
            rows = _ALL
        for array in converted:
            array.mark(rows)

    def set_joint_targets(self, targets: torch.Tensor) -> None:
        self._ctrl.copy_(targets)

    def step(self, num_steps: int) -> None:
        self._update_constants()
        self.batch.step(nstep=num_steps)
        self._mark(self._converted, _ALL)

    def forward(self, env_ids: torch.Tensor) -> None:
        self._update_constants()
        self.batch.forward(env_ids.numpy().astype(np.int32))
        self._mark(self._converted, env_ids)

    def reset(self, env_ids: torch.Tensor) -> None:
        self.batch.state[env_ids.numpy()] = self._default
        self._mark((self._state,), env_ids)

    def write_root_state(
        self,
        env_ids: torch.Tensor,
        pos_w: torch.Tensor,
        quat_w: torch.Tensor,
        lin_vel_w: torch.Tensor,
        ang_vel_b: torch.Tensor,
    ) -> None:
        self._qpos[env_ids, self._root_qpos] = torch.cat((pos_w, quat_w), dim=1).double()
        self._qvel[env_ids, self._root_qvel] = torch.cat((lin_vel_w, ang_vel_b), dim=1).double()
        self._mark((self._state,), env_ids)

    def write_joint_state(self, env_ids: torch.Tensor, pos: torch.Tensor, vel: torch.Tensor) -> None:
        self._qpos[env_ids, self.robot_view.joint_qpos] = pos.double()
        self._qvel[env_ids, self.robot_view.joint_qvel] = vel.double()
        self._mark((self._state,), env_ids)

    def push(self, env_ids: torch.Tensor, lin_vel_w: torch.Tensor) -> None:
        first = self._root_qvel.start
        self._qvel[env_ids, first : first + 3] += lin_vel_w.double()
        self._mark((self._state,), env_ids)

    # --- per-environment model parameters ----------------------------------------------------------------------------

    def _read_parameter(self, name: str, default: bool) -> torch.Tensor:
        field, part, sign, _ = self._parameter_parts[name][0]
        live = not default and self.batch.expanded(field) is not None
        values = torch.from_numpy(self.batch.expand(field) if live else getattr(self.model, field)[None])[part]
        values = sign * (values[:, 0] if name == "friction" else values)
        return values.expand(self.num_envs, *values.shape[1:]).to(torch.float32, copy=True)

    def _write_parameter(self, name: str, values: torch.Tensor, env_ids: torch.Tensor) -> None:
        values = values.double()
        for field, part, sign, joints in self._parameter_parts[name]:
            target = torch.from_numpy(self.batch.expand(field))[part]
            written = sign * (values.unsqueeze(1) if name == "friction" else values)
            target[env_ids] = written if joints is None else torch.where(joints, written, target[env_ids])
        if name in _CHANGES_CONSTANTS:
            self._constants_changed[env_ids.numpy()] = True

    def _update_constants(self) -> None:
        """Let the constants that follow from the model's parameters follow where these changed."""
        if not self._constants_changed.any():
            return
        self.batch.set_const(np.flatnonzero(self._constants_changed).astype(np.int32))
        self._constants_changed[:] = False

    # --- the rest ----------------------------------------------------------------------------------------------------

    def diverged(self) -> torch.Tensor | None:
        state = self._state.read()
        warned = self._warning_counts.any()
        if not warned and math.isfinite(state.sum().item()):
            return None
        bad = ~torch.isfinite(state).all(1) | torch.from_numpy(self._warning_counts.any(1))
        self.batch.warning[:] = 0
        return bad if bad.any() else None

    def get_state(self) -> dict[str, Any]:
        fields = {name: self.batch.expanded(name) for name in mujoco.batch.MODEL_FIELDS}
        return {
            "rows": self.batch.state.copy(),
            "warning": self.batch.warning.copy(),
            "outputs": {name: value.clone() for name, value in self._outputs.items()},
            "parameters": {name: value.copy() for name, value in fields.items() if value is not None},
            "constants_changed": self._constants_changed.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self._check_state(state)
        self.batch.state[:] = state["rows"]
        self.batch.warning[:] = state["warning"]
        for name, value in state["outputs"].items():
            self._outputs[name].copy_(value)
        for name in mujoco.batch.MODEL_FIELDS:
            if name in state["parameters"]:
                self.batch.expand(name)[:] = state["parameters"][name]
            elif self.batch.expanded(name) is not None:
                self.batch.expand(name)[:] = attrgetter(name)(self.model)
        for name, value in vars(self.parameters).items():
            value.copy_(self._read_parameter(name, default=False))
        self._constants_changed[:] = state["constants_changed"]
        self._mark(self._converted, _ALL)

    def _check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError, naming the entry, if ``state`` is not one that :meth:`get_state` gives here."""
        expected = {
            "rows": self.batch.state.shape,
            "warning": self.batch.warning.shape,
            "constants_changed": self._constants_changed.shape,
            **{f"outputs.{name}": tuple(value.shape) for name, value in self._outputs.items()},
        }
        given = {name: np.shape(value) for name, value in state.items() if not isinstance(value, dict)}
        for entry in ("outputs", "parameters"):
            if not isinstance(state.get(entry), dict):
                raise ValueError(f"the state of a simulation holds a dict {entry!r}, got {state.get(entry)!r}")
            given |= {f"{entry}.{name}": np.shape(value) for name, value in state[entry].items()}
        for name in state["parameters"]:
            if name in mujoco.batch.MODEL_FIELDS:
                expected[f"parameters.{name}"] = (self.num_envs, *np.shape(attrgetter(name)(self.model)))
        for name in {**expected, **given}:
            if given.get(name) != expected.get(name):
                raise ValueError(
                    f"the state is of another simulation: the shape of its {name} is {given.get(name)}, here it is "
                    f"{expected.get(name)}"
                )
