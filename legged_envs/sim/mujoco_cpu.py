"""Physics on the CPU with ``mujoco.batch.Batch``, in float64, bit-identical to a plain ``mj_step`` loop."""

import copy
import math
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import torch
from torch import Tensor

from legged_envs.robots import RobotCfg
from legged_envs.sim.cfg import SceneCfg
from legged_envs.sim.ground import Ground
from legged_envs.sim.quantities import ROOT_QUANTITIES, FreeBody
from legged_envs.sim.render import SceneRenderer
from legged_envs.sim.scene import RobotView, build_scene
from legged_envs.sim.simulation import SimCfg, Simulation
from legged_envs.terrains import make_terrain

_DIVERGED = slice(int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADCTRL) + 1)
"""MuJoCo's warnings about numbers that are not finite or huge: those of qpos, qvel, qacc and ctrl."""
_CHANGES_CONSTANTS = ("body_mass", "com", "armature")
_OUTPUTS = ("qacc", "actuator_force", "xpos", "xquat", "cvel", "subtree_com", "cfrc_ext", "site_xpos", "sensordata")
"""Fields of ``MjData`` that the last physics step left, which a saved state holds too."""
_SEEN_BY_RAYS = np.array((1, 0, 0, 0, 1, 1), np.uint8)
"""Groups of shapes without a terrain's, 1, and the robots', 2, to look at, and 3, to collide."""
_ALL = slice(None)
SMALL = 128  # environments up to which NumPy converts faster than PyTorch
_FEW = 1 / 64  # fraction of the environments up to which rows are converted one by one rather than all together


class _Converted:
    """A float32 copy of an engine array, brought up to date when it is read."""

    def __init__(self, source: Tensor):
        self.source = source
        self.buffer = torch.zeros(source.shape, dtype=torch.float32)
        self.stale: slice | Tensor | None = _ALL
        self._update: Callable[[], object] = partial(self.buffer.copy_, source)
        if len(source) <= SMALL:
            self._update = partial(np.copyto, self.buffer.numpy(), source.numpy(), "same_kind")

    def read(self) -> Tensor:
        if self.stale is _ALL:
            self._update()
        elif self.stale is not None:
            self.buffer[self.stale] = self.source[self.stale].float()
        self.stale = None
        return self.buffer


class _MujocoBody(FreeBody):
    num_envs: int
    _state: _Converted
    _qpos: Tensor
    _qvel: Tensor
    """The positions and velocities of the whole scene, float32, and as the engine has them."""
    _root_qpos: slice
    _root_qvel: slice
    _quantities: dict[str, tuple[_Converted, Tensor]]
    """The part of a converted array that each quantity is."""

    def _read_quantity(self, name: str) -> Tensor:
        array, part = self._quantities[name]
        array.read()
        return part

    def _of_state(self, **joints: slice) -> dict[str, tuple[_Converted, Tensor]]:
        qpos, qvel = self._state.buffer.split((self._qpos.shape[1], self._qvel.shape[1]), dim=1)
        pose, twist = qpos[:, self._root_qpos], qvel[:, self._root_qvel]
        parts = dict(zip(ROOT_QUANTITIES, (pose[:, :3], pose[:, 3:], twist[:, :3], twist[:, 3:]), strict=False))
        parts |= {name: (qpos if name == "joint_pos" else qvel)[:, part] for name, part in joints.items()}
        return {name: (self._state, part) for name, part in parts.items()}

    def _mark_stale(self, converted: Iterable[_Converted], rows: slice | Tensor) -> None:
        if isinstance(rows, Tensor) and len(rows) > _FEW * self.num_envs:
            rows = _ALL
        for array in converted:
            array.stale = rows if array.stale is None or array.stale is rows else _ALL

    def write_root_state(
        self, env_ids: Tensor, pos_w: Tensor, quat_w: Tensor, lin_vel_w: Tensor, ang_vel_b: Tensor
    ) -> None:
        pos, vel = torch.cat((pos_w, quat_w), dim=1), torch.cat((lin_vel_w, ang_vel_b), dim=1)
        self._write_state(env_ids, self._root_qpos, pos, self._root_qvel, vel)

    def _write_state(self, env_ids: Tensor, qpos: slice, pos: Tensor, qvel: slice, vel: Tensor) -> None:
        self._qpos[env_ids, qpos], self._qvel[env_ids, qvel] = pos.double(), vel.double()
        self._mark_stale((self._state,), env_ids)

    def push(self, env_ids: Tensor, lin_vel_w: Tensor) -> None:
        first = self._root_qvel.start
        self._qvel[env_ids, first : first + 3] += lin_vel_w.double()
        self._mark_stale((self._state,), env_ids)


class _MujocoObject(_MujocoBody):
    """The body ``<name>/body`` of the model of a simulation."""

    def __init__(self, sim: "MujocoSimulation", name: str, forces: Tensor):
        self.num_envs, self._state, self._qpos, self._qvel = sim.num_envs, sim._state, sim._qpos, sim._qvel
        [qpos], [qvel] = (getattr(sim.model.joint(f"{name}/root"), first) for first in ("qposadr", "dofadr"))
        self._root_qpos, self._root_qvel = slice(qpos, qpos + 7), slice(qvel, qvel + 6)
        force = _Converted(forces[:, sim.model.body(f"{name}/body").id, 3:])
        sim._converted.append(force)
        self._quantities = {**self._of_state(), "contact_force_w": (force, force.buffer)}


class MujocoSimulation(_MujocoBody, Simulation):
    """``num_envs`` scenes on ``mujoco.batch.Batch``; ``model`` may differ from ``build_scene(robot, cfg, scene)`` in
    options. The laws of MuJoCo's actuators act in every physics step, with the damping treated implicitly."""

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
        scene = scene or SceneCfg()
        terrain = None if scene.terrain is None else make_terrain(scene.terrain)
        self.ground = None if terrain is None else Ground(terrain, num_envs, device)
        self.model = model = build_scene(robot, cfg, scene, terrain) if model is None else model
        self.batch = batch = mujoco.batch.Batch(model, num_envs, cfg.num_threads)
        self.survives_fork = num_envs == 1 or cfg.num_threads == 1  # a pool's threads stay in the parent process
        first, sizes = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_TIME), (model.nq, model.nv)
        self._state = _Converted(torch.from_numpy(batch.state)[:, first : first + sum(sizes)])
        self._qpos, self._qvel = self._state.source.split(sizes, dim=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the engine marks some of its outputs as read-only
            outputs = {name: torch.from_numpy(batch.bind(name)) for name in _OUTPUTS}
        self._constants_changed = changed = np.zeros(num_envs, dtype=bool)
        self._warning_counts = batch.warning[:, _DIVERGED, 1]
        self._saved = {"rows": batch.state, "warning": batch.warning, "constants_changed": changed, "outputs": outputs}
        self._default = np.empty_like(batch.state[0])
        self._converted: list[_Converted] = []  # of all robots and objects
        self._renderer = SceneRenderer(model, robot, RobotView.find(model, robot), num_envs, batch.get_data)
        others = {name: copy.copy(self) for name in scene.robots}  # which share what is set up to here
        self._take_robot(robot, scene.start, outputs, "")
        for name, placed in scene.robots.items():
            others[name]._take_robot(placed.robot, placed.start, outputs, f"{name}/")
        self._robots.update({"robot": self, **others} if others else {})
        self.objects.update({name: _MujocoObject(self, name, outputs["cfrc_ext"]) for name in scene.objects})
        bodies: dict[str, Any] = {**self.robots, **self.objects}
        self._renderer.roots.update({name: body._root_qpos for name, body in bodies.items()})
        self._default[:] = batch.state[0]
        batch.forward()

    def _take_robot(
        self, robot: RobotCfg, start: tuple[float, float, float], outputs: dict[str, Tensor], prefix: str
    ) -> None:
        """Be the simulation of ``robot``, whose names in the model begin with ``prefix``, and put it to its start."""
        model, view = self.model, RobotView.find(self.model, robot, prefix)
        if view.root_qpos is None or view.root_qvel is None:
            wrong = f"{robot.xml}: base_body {robot.base_body!r} of RobotCfg {robot.name!r} has no free joint"
            raise ValueError(f'{wrong}: put <freejoint name="root"/> first into that body')
        self.robot, self.robot_view, self.start = robot, view, start
        self.parameters, self._default_parameters = SimpleNamespace(), {}
        self._root_qpos, self._root_qvel = view.root_qpos, view.root_qvel
        self.body_names = tuple(model.body(i).name.removeprefix(prefix) for i in range(model.nbody)[view.bodies])
        limits = np.where(model.jnt_limited[:, None], model.jnt_range, (-np.inf, np.inf))[view.joints]
        self.joint_pos_limits = torch.tensor(limits, dtype=torch.float32)
        self._ctrl = torch.from_numpy(self.batch.bind("ctrl"))[:, view.actuators]
        pose, (x, y, yaw) = torch.tensor(robot.default_joint_pos, dtype=torch.float64), start
        if any(start):  # else as in its file
            root = (x, y, robot.base_height, math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
            self._qpos[:, view.root_qpos] = torch.tensor(root, dtype=torch.float64)
        self._qpos[:, view.root_qpos.start + 2] = robot.base_height
        self._qpos[:, view.joint_qpos] = pose
        self._ctrl.copy_(torch.where(self._driven_by("position"), pose, 0.0))
        self._quantities = self._find_quantities(outputs)
        self._converted.extend(dict.fromkeys(array for array, _ in self._quantities.values()))
        self._parameter_parts = self._find_parameters()

    def _find_quantities(self, outputs: dict[str, Tensor]) -> dict[str, tuple[_Converted, Tensor]]:
        view, bodies = self.robot_view, self.robot_view.bodies
        of_outputs = {
            "joint_acc": outputs["qacc"][:, view.joint_qvel],
            "joint_torque": outputs["actuator_force"][:, view.actuators],
            "body_pos_w": outputs["xpos"][:, bodies],
            "body_quat_w": outputs["xquat"][:, bodies],
            "body_twist": outputs["cvel"][:, bodies],
            "root_com_w": outputs["subtree_com"][:, bodies.start, None],
            "contact_force_w": outputs["cfrc_ext"][:, bodies, 3:],
            "foot_pos_w": outputs["site_xpos"][:, view.foot_sites],
            "foot_lin_vel_w": outputs["sensordata"][:, view.foot_velocities].unflatten(1, (-1, 3)),
        }
        converted = {name: _Converted(output) for name, output in of_outputs.items()}
        twist = converted["body_twist"]
        quantities = {name: (array, array.buffer) for name, array in converted.items()}
        quantities["body_ang_vel_w"] = twist, twist.buffer[..., :3]
        return quantities | self._of_state(joint_pos=view.joint_qpos, joint_vel=view.joint_qvel)

    def _find_parameters(self) -> dict[str, list[tuple[str, tuple[Any, ...], float, Tensor | None]]]:
        """For each parameter the model's fields that hold it: name, part, sign, and for which joints (None: all)."""
        view = self.robot_view
        gain, kp, kd = ((_ALL, view.actuators, column) for column in range(3))
        return {
            "friction": [("geom_friction", (_ALL, view.geoms, 0), 1.0, None)],
            "body_mass": [("body_mass", (_ALL, view.bodies), 1.0, None)],
            "com": [("body_ipos", (_ALL, view.bodies), 1.0, None)],
            "armature": [("dof_armature", (_ALL, view.joint_qvel), 1.0, None)],
            "kp": [("actuator_biasprm", kp, -1.0, None), ("actuator_gainprm", gain, 1.0, self._driven_by("position"))],
            "kd": [("actuator_biasprm", kd, -1.0, None), ("actuator_gainprm", gain, 1.0, self._driven_by("velocity"))],
        }

    def _driven_by(self, kind: str) -> Tensor:
        return torch.tensor([actuator == kind for actuator in self.robot.actuators])

    def _read_quantity(self, name: str) -> Tensor:
        if name == "body_lin_vel_w":
            # cvel is about the centre of mass of the whole robot: v_body = v + ω × (p_body − p_com)
            spatial = self._read_quantity("body_twist")
            arm = self.body_pos_w - self._read_quantity("root_com_w")
            return spatial[..., 3:] + torch.linalg.cross(spatial[..., :3], arm)
        return super()._read_quantity(name)

    def set_joint_targets(self, targets: Tensor) -> None:
        self._ctrl.copy_(targets)

    def step(self, num_steps: int) -> None:
        self._update_constants()
        self.batch.step(nstep=num_steps)
        self._mark_stale(self._converted, _ALL)

    def set_timestep(self, dt: float) -> None:
        self.batch.expand("opt.timestep")[:] = dt

    def forward(self, env_ids: Tensor) -> None:
        self._update_constants()
        self.batch.forward(env_ids.numpy().astype(np.int32))
        self._mark_stale(self._converted, env_ids)

    def reset(self, env_ids: Tensor) -> None:
        self.batch.state[env_ids.numpy()] = self._default
        if self.ground is not None:
            origins = self.ground.origins[env_ids].double()
            for body in (*self.robots.values(), *self.objects.values()):
                first = body._root_qpos.start  # type: ignore[attr-defined]
                self._qpos[env_ids, first : first + 3] += origins
        self._mark_stale((self._state,), env_ids)

    def write_joint_state(self, env_ids: Tensor, pos: Tensor, vel: Tensor) -> None:
        self._write_state(env_ids, self.robot_view.joint_qpos, pos, self.robot_view.joint_qvel, vel)

    def _read_parameter(self, name: str, default: bool) -> Tensor:
        field, part, sign, _ = self._parameter_parts[name][0]
        live = not default and self.batch.expanded(field) is not None
        values = torch.from_numpy(self.batch.expand(field) if live else getattr(self.model, field)[None])[part]
        values = sign * (values[:, 0] if name == "friction" else values)
        return values.expand(self.num_envs, *values.shape[1:]).to(torch.float32, copy=True)

    def _write_parameter(self, name: str, values: Tensor, env_ids: Tensor) -> None:
        values = values.double()
        for field, part, sign, joints in self._parameter_parts[name]:
            target = torch.from_numpy(self.batch.expand(field))[part]
            written = sign * (values.unsqueeze(1) if name == "friction" else values)
            target[env_ids] = written if joints is None else torch.where(joints, written, target[env_ids])
        if name in _CHANGES_CONSTANTS:
            self._constants_changed[env_ids.numpy()] = True

    def _update_constants(self) -> None:
        if np.count_nonzero(self._constants_changed):  # a quarter of the time of any()
            self.batch.set_const(np.flatnonzero(self._constants_changed).astype(np.int32))
            self._constants_changed[:] = False

    def cast_rays(self, origins_w: Tensor, directions_w: Tensor, farthest: float) -> Tensor:
        # The engine looks at every cell between a ray's ends, and a ray has no end.
        nearest = torch.full(origins_w.shape[:2], farthest)
        if self.ground is not None:
            nearest = self.ground.cast(origins_w, directions_w, farthest)
        if self.ground is None or self.objects:
            distances, _ = self.batch.ray(origins_w.double().numpy(), directions_w.double().numpy(), _SEEN_BY_RAYS)
            found = torch.from_numpy(distances).float()
            nearest = torch.where(found < 0.0, nearest, torch.minimum(found, nearest))
        return nearest

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
        for name, array in _flatten(self._saved).items():
            array[:] = given[name]
        for name in {**self._expanded(), **parameters}:
            self.batch.expand(name)[:] = parameters[name] if name in parameters else attrgetter(name)(self.model)
        for robot in self.robots.values():
            for name, value in vars(robot.parameters).items():
                value.copy_(robot._read_parameter(name, default=False))
        self._mark_stale(self._converted, _ALL)

    def _expanded(self) -> dict[str, np.ndarray]:
        fields = {name: self.batch.expanded(name) for name in mujoco.batch.MODEL_FIELDS}
        return {name: values for name, values in fields.items() if values is not None}

    def _check_state(self, state: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(state.get("parameters"), dict):
            raise ValueError(f"the state of a simulation holds a dict 'parameters', got {state.get('parameters')!r}")
        given = _flatten(state)
        shapes = {name: np.shape(array) for name, array in given.items()}
        expected = {name: np.shape(array) for name, array in _flatten(self._saved).items()}
        for name in mujoco.batch.MODEL_FIELDS.intersection(state["parameters"]):
            expected[f"parameters.{name}"] = (self.num_envs, *np.shape(attrgetter(name)(self.model)))
        for name in {**expected, **shapes}:
            if (got := shapes.get(name)) != (own := expected.get(name)):
                raise ValueError(f"the state is of another simulation: the shape of {name} is {got}, here it is {own}")
        return given


def _flatten(state: dict[str, Any]) -> dict[str, Any]:
    nested = {entry: value for entry, value in state.items() if isinstance(value, dict)}
    arrays = {f"{entry}.{name}": array for entry, arrays in nested.items() for name, array in arrays.items()}
    return {entry: value for entry, value in state.items() if entry not in nested} | arrays
