"""Physics on the CPU with MuJoCo's own batch engine, ``mujoco.batch.Batch``.

The batch steps all copies on its thread pool with the interpreter lock released, bit-identically to a plain ``mj_step``
loop. State arrives as float64 views of the batch's rows; each quantity is converted to float32 once per step, when it
is first read.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable
from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import torch

from legged_envs.robots import RobotCfg
from legged_envs.sim.scene import build_scene
from legged_envs.sim.simulation import Pose, SimCfg, Simulation

_DIVERGED = [
    int(warning)
    for warning in (  # one after another in MuJoCo's enumeration
        mujoco.mjtWarning.mjWARN_BADQPOS,
        mujoco.mjtWarning.mjWARN_BADQVEL,
        mujoco.mjtWarning.mjWARN_BADQACC,
        mujoco.mjtWarning.mjWARN_BADCTRL,
    )
]
_NO_STAGE = mujoco.mjtStage.mjSTAGE_NONE.value
_GHOST_RGBA = (0.1, 0.55, 0.35, 0.35)
_NO_SHADOW = mujoco.mjtCatBit.mjCAT_DECOR.value  # decoration is all that the renderer lets cast no shadow
_CHANGES_CONSTANTS = ("body_mass", "com", "armature")


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

    Joint PD are position actuators, so they run in every physics step with the damping treated implicitly.
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
        self.batch = mujoco.batch.Batch(self.model, num_envs, cfg.num_threads)
        self.survives_fork = num_envs == 1 or cfg.num_threads == 1  # a pool's threads stay in the parent process
        self._constants_changed = np.zeros(num_envs, dtype=bool)
        self._default = self._default_state()
        self._warning_counts = self.batch.warning[:, _DIVERGED[0] : _DIVERGED[-1] + 1, 1]
        self._renderer: mujoco.Renderer | None = None
        self._viewer: Any = None

        self.body_names = tuple(self.model.body(i).name for i in range(1, self.model.nbody))
        self._robot_geoms = np.flatnonzero((self.model.geom_bodyid > 0) & (self.model.geom_conaffinity > 0))
        self.joint_pos_limits = torch.tensor(self.model.jnt_range[1:], dtype=torch.float32)

        qpos, qvel, state = self.batch.bind("qpos"), self.batch.bind("qvel"), self.batch.state
        first = (qpos.ctypes.data - state.ctypes.data) // state.itemsize
        if qvel.ctypes.data != qpos.ctypes.data + self.model.nq * state.itemsize:
            raise RuntimeError("this MuJoCo version does not keep qvel behind qpos in a state row")
        self._qpos, self._qvel = torch.from_numpy(qpos), torch.from_numpy(qvel)
        self._ctrl = torch.from_numpy(self.batch.bind("ctrl"))
        self._state = _Converted(torch.from_numpy(state[:, first : first + self.model.nq + self.model.nv]))
        nq = self.model.nq
        self._root_pos_w = self._state.buffer[:, 0:3]
        self._root_quat_w = self._state.buffer[:, 3:7]
        self._joint_pos = self._state.buffer[:, 7:nq]
        self._root_lin_vel_w = self._state.buffer[:, nq : nq + 3]
        self._root_ang_vel_b = self._state.buffer[:, nq + 3 : nq + 6]
        self._joint_vel = self._state.buffer[:, nq + 6 :]

        outputs = (
            "qacc",
            "actuator_force",
            "xpos",
            "xquat",
            "cvel",
            "subtree_com",
            "cfrc_ext",
            "site_xpos",
            "sensordata",
        )
        self._outputs = {name: _share(self.batch.bind(name)) for name in outputs}
        out = self._outputs
        self._joint_acc = _Converted(out["qacc"][:, 6:])
        self._joint_torque = _Converted(out["actuator_force"])
        self._body_pos_w = _Converted(out["xpos"][:, 1:])
        self._body_quat_w = _Converted(out["xquat"][:, 1:])
        self._body_vel = _Converted(out["cvel"][:, 1:])
        self._root_com_w = _Converted(out["subtree_com"][:, 1:2])
        self._contact_force_w = _Converted(out["cfrc_ext"][:, 1:, 3:])
        foot_sites = [self.model.site(f"{name}_site").id for name in robot.foot_names]
        num_feet = len(foot_sites)
        if foot_sites != list(range(foot_sites[0], foot_sites[0] + num_feet)):
            raise ValueError(f"{robot.xml} must declare the sites of its feet one after another, in RobotCfg's order")
        self._foot_pos_w = _Converted(out["site_xpos"][:, foot_sites[0] : foot_sites[-1] + 1])
        self._foot_lin_vel_w = _Converted(out["sensordata"][:, : 3 * num_feet].unflatten(1, (num_feet, 3)))
        self._converted = (
            self._state,
            self._joint_acc,
            self._joint_torque,
            self._body_pos_w,
            self._body_quat_w,
            self._body_vel,
            self._root_com_w,
            self._contact_force_w,
            self._foot_pos_w,
            self._foot_lin_vel_w,
        )

        self.reset(torch.arange(num_envs))
        self.batch.forward()

    def _default_state(self) -> np.ndarray:
        """The state row of the default pose at rest, with the PD targets at the default pose."""
        data = mujoco.MjData(self.model)
        data.qpos[:] = self.model.qpos0
        data.qpos[2] = self.robot.base_height
        data.qpos[7:] = self.robot.default_joint_pos
        data.ctrl[:] = self.robot.default_joint_pos
        spec = mujoco.mjtState.mjSTATE_INTEGRATION
        row = np.empty(mujoco.mj_stateSize(self.model, spec))
        mujoco.mj_getState(self.model, data, row, spec)
        return row

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def root_pos_w(self) -> torch.Tensor:
        self._state.read()
        return self._root_pos_w

    @property
    def root_quat_w(self) -> torch.Tensor:
        self._state.read()
        return self._root_quat_w

    @property
    def root_lin_vel_w(self) -> torch.Tensor:
        self._state.read()
        return self._root_lin_vel_w

    @property
    def root_ang_vel_b(self) -> torch.Tensor:
        self._state.read()
        return self._root_ang_vel_b

    @property
    def joint_pos(self) -> torch.Tensor:
        self._state.read()
        return self._joint_pos

    @property
    def joint_vel(self) -> torch.Tensor:
        self._state.read()
        return self._joint_vel

    @property
    def joint_acc(self) -> torch.Tensor:
        return self._joint_acc.read()

    @property
    def joint_torque(self) -> torch.Tensor:
        return self._joint_torque.read()

    @property
    def body_pos_w(self) -> torch.Tensor:
        return self._body_pos_w.read()

    @property
    def body_quat_w(self) -> torch.Tensor:
        return self._body_quat_w.read()

    @property
    def body_lin_vel_w(self) -> torch.Tensor:
        # cvel is about the centre of mass of the whole robot: v_body = v + ω × (p_body − p_com)
        spatial = self._body_vel.read()
        arm = self.body_pos_w - self._root_com_w.read()
        return spatial[..., 3:] + torch.linalg.cross(spatial[..., :3], arm)

    @property
    def body_ang_vel_w(self) -> torch.Tensor:
        return self._body_vel.read()[..., :3]

    @property
    def contact_force_w(self) -> torch.Tensor:
        return self._contact_force_w.read()

    @property
    def foot_pos_w(self) -> torch.Tensor:
        return self._foot_pos_w.read()

    @property
    def foot_lin_vel_w(self) -> torch.Tensor:
        return self._foot_lin_vel_w.read()

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
        if self._constants_changed.any():
            self._update_constants()
        self.batch.step(nstep=num_steps)
        self._mark(self._converted, _ALL)

    def forward(self, env_ids: torch.Tensor) -> None:
        if self._constants_changed.any():
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
        self._qpos[env_ids, :7] = torch.cat((pos_w, quat_w), dim=1).double()
        self._qvel[env_ids, :6] = torch.cat((lin_vel_w, ang_vel_b), dim=1).double()
        self._mark((self._state,), env_ids)

    def write_joint_state(self, env_ids: torch.Tensor, pos: torch.Tensor, vel: torch.Tensor) -> None:
        self._qpos[env_ids, 7:] = pos.double()
        self._qvel[env_ids, 6:] = vel.double()
        self._mark((self._state,), env_ids)

    def push(self, env_ids: torch.Tensor, lin_vel_w: torch.Tensor) -> None:
        self._qvel[env_ids, :3] += lin_vel_w.double()
        self._mark((self._state,), env_ids)

    # --- per-environment model parameters ----------------------------------------------------------------------------

    def _read_parameter(self, name: str) -> torch.Tensor:
        target, sign = self._parameter_targets(name)[0]
        value = sign * target
        return (value[:, 0] if name == "friction" else value).float()

    def _write_parameter(self, name: str, values: torch.Tensor, env_ids: torch.Tensor) -> None:
        values = values.double()
        for target, sign in self._parameter_targets(name):
            target[env_ids] = sign * (values.unsqueeze(1) if name == "friction" else values)
        if name in _CHANGES_CONSTANTS:
            self._constants_changed[env_ids.numpy()] = True

    def _parameter_targets(self, name: str) -> list[tuple[torch.Tensor, float]]:
        """Live views of the model fields that hold a parameter, with the sign they hold it with."""

        def field(model_field: str) -> torch.Tensor:
            return torch.from_numpy(self.batch.expand(model_field))

        if name == "friction":
            return [(field("geom_friction")[:, self._robot_geoms[0] : self._robot_geoms[-1] + 1, 0], 1.0)]
        if name == "body_mass":
            return [(field("body_mass")[:, 1:], 1.0)]
        if name == "com":
            return [(field("body_ipos")[:, 1:], 1.0)]
        if name == "armature":
            return [(field("dof_armature")[:, 6:], 1.0)]
        if name == "kp":
            return [(field("actuator_gainprm")[:, :, 0], 1.0), (field("actuator_biasprm")[:, :, 1], -1.0)]
        return [(field("actuator_biasprm")[:, :, 2], -1.0)]

    def _update_constants(self) -> None:
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
        parameters = {name: self.batch.expanded(name) for name in mujoco.batch.MODEL_FIELDS}
        return {
            "parameters_f32": {name: value.clone() for name, value in vars(self.parameters).items()},
            "rows": self.batch.state.copy(),
            "warning": self.batch.warning.copy(),
            "outputs": {name: value.clone() for name, value in self._outputs.items()},
            "parameters": {name: value.copy() for name, value in parameters.items() if value is not None},
            "constants_changed": self._constants_changed.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        if state["rows"].shape != self.batch.state.shape:
            raise ValueError(f"state rows have shape {state['rows'].shape}, this simulation's {self.batch.state.shape}")
        names = {*vars(self.parameters), *state["parameters_f32"]}
        defaults = {name: self.default_parameter(name) for name in names}  # read before the fields are overwritten
        self.batch.state[:] = state["rows"]
        self.batch.warning[:] = state["warning"]
        for name, value in state["outputs"].items():
            self._outputs[name].copy_(value)
        for name in mujoco.batch.MODEL_FIELDS:
            if name in state["parameters"]:
                self.batch.expand(name)[:] = state["parameters"][name]
            elif self.batch.expanded(name) is not None:
                self.batch.expand(name)[:] = getattr(self.model, name)
        for name, default in defaults.items():
            self.get_parameter(name).copy_(state["parameters_f32"].get(name, default))
        self._constants_changed[:] = state["constants_changed"]
        self._mark(self._converted, _ALL)

    def render(self, env_id: int = 0, width: int = 640, height: int = 480, ghost: Pose | None = None) -> np.ndarray:
        if not 0 <= env_id < self.num_envs:
            raise ValueError(f"env_id={env_id} is not in [0, {self.num_envs})")
        if ghost is not None:
            ghost.check(self.robot)
        if self._renderer is None or (self._renderer.width, self._renderer.height) != (width, height):
            if self._renderer is not None:
                self._renderer.close()
            self._renderer = self._make_renderer(width, height)
            self._render_data = mujoco.MjData(self.model)
        data = self.batch.get_data(env_id, self._render_data)
        mujoco.mj_forward(self.model, data)
        self._renderer.update_scene(data, camera="track")
        if ghost is not None:
            self._add_ghost(self._renderer.scene, data, ghost)
        return self._renderer.render()

    def _add_ghost(self, scene: mujoco.MjvScene, data: mujoco.MjData, ghost: Pose) -> None:
        """Append the shapes of the robot in a pose. ``data`` is overwritten."""
        data.qpos[:] = torch.cat((ghost.root_pos_w, ghost.root_quat_w, ghost.joint_pos)).cpu().numpy()
        mujoco.mj_kinematics(self.model, data)
        first = scene.ngeom
        dynamic = mujoco.mjtCatBit.mjCAT_DYNAMIC.value  # the robot; the ground is static
        mujoco.mjv_addGeoms(self.model, data, mujoco.MjvOption(), mujoco.MjvPerturb(), dynamic, scene)
        for geom in scene.geoms[first : scene.ngeom]:
            geom.rgba, geom.emission, geom.category = _GHOST_RGBA, 0.0, _NO_SHADOW

    def _make_renderer(self, width: int, height: int) -> mujoco.Renderer:
        try:
            return mujoco.Renderer(self.model, height=height, width=width)
        except Exception as error:
            raise RuntimeError(
                f"rendering failed to start with MUJOCO_GL={os.environ.get('MUJOCO_GL', '')!r}: {error}. "
                "Without a display, set MUJOCO_GL=egl before mujoco is first imported and install EGL "
                "(Debian: apt-get install libegl1 libgl1-mesa-dri libopengl0)"
            ) from error

    def view(self, env_id: int = 0) -> bool:
        if self._viewer is None:
            import mujoco.viewer

            self._viewer_data = mujoco.MjData(self.model)
            self._viewer = mujoco.viewer.launch_passive(self.model, self._viewer_data)
        mujoco.mj_forward(self.model, self.batch.get_data(env_id, self._viewer_data))
        self._viewer.sync()
        return bool(self._viewer.is_running())

    def close(self) -> None:
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
