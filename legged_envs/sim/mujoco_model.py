"""What engines of MuJoCo models have in common: which parts of the engine's arrays a robot's quantities are."""

import copy
import math
from abc import abstractmethod
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from legged_envs.robots import RobotCfg
from legged_envs.sim.cfg import SceneCfg
from legged_envs.sim.ground import Ground
from legged_envs.sim.quantities import ROOT_QUANTITIES, FreeBody
from legged_envs.sim.render import SceneRenderer
from legged_envs.sim.scene import RobotView, build_scene, no_free_joint
from legged_envs.sim.simulation import Simulation
from legged_envs.terrains import make_terrain

CHANGES_CONSTANTS = ("body_mass", "com", "armature")
"""Parameters from which constants of the model follow."""
OUTPUTS = (
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
"""Fields of ``MjData`` that the last physics step left, which a saved state holds too."""
SEEN_BY_RAYS = (1, 0, 0, 0, 1, 1)
"""Groups of shapes without a terrain's, 1, and the robots', 2, to look at, and 3, to collide."""
ALL = slice(None)


class LiveArray:
    """A float32 array of an engine, read as it is."""

    def __init__(self, source: Tensor):
        self.source = self.buffer = source

    def read(self) -> Tensor:
        """The values as they are."""
        return self.buffer

    def mark(self, rows: slice | Tensor) -> None:
        """Take in that ``rows`` have changed."""


class ModelBody(FreeBody):
    _qpos: Tensor
    _qvel: Tensor
    """The positions and velocities of the whole scene, as the engine has them; what is written to them acts."""
    _state: LiveArray
    _seen: tuple[Tensor, ...]
    """What brings them up to date in float32, and the two."""
    _root_qpos: slice
    _root_qvel: slice
    _quantities: dict[str, tuple[LiveArray, Tensor]]
    """The part of an array that each quantity is."""

    def _read_quantity(self, name: str) -> Tensor:
        array, part = self._quantities[name]
        array.read()
        return part

    def _of_state(self, **joints: slice) -> dict[str, tuple[LiveArray, Tensor]]:
        qpos, qvel = self._seen
        pose, twist = qpos[:, self._root_qpos], qvel[:, self._root_qvel]
        parts = dict(
            zip(
                ROOT_QUANTITIES,
                (pose[:, :3], pose[:, 3:], twist[:, :3], twist[:, 3:]),
                strict=False,
            )
        )
        parts |= {
            name: (qpos if name == "joint_pos" else qvel)[:, part] for name, part in joints.items()
        }
        return {name: (self._state, part) for name, part in parts.items()}

    def write_root_state(
        self, env_ids: Tensor, pos_w: Tensor, quat_w: Tensor, lin_vel_w: Tensor, ang_vel_b: Tensor
    ) -> None:
        pos, vel = torch.cat((pos_w, quat_w), dim=1), torch.cat((lin_vel_w, ang_vel_b), dim=1)
        self._write_state(env_ids, self._root_qpos, pos, self._root_qvel, vel)

    def _write_state(
        self, env_ids: Tensor, qpos: slice, pos: Tensor, qvel: slice, vel: Tensor
    ) -> None:
        self._qpos[env_ids, qpos], self._qvel[env_ids, qvel] = (
            pos.to(self._qpos.dtype),
            vel.to(self._qvel.dtype),
        )
        self._state.mark(env_ids)

    def push(self, env_ids: Tensor, lin_vel_w: Tensor) -> None:
        first = self._root_qvel.start
        self._qvel[env_ids, first : first + 3] += lin_vel_w.to(self._qvel.dtype)
        self._state.mark(env_ids)


class _ModelObject(ModelBody):
    """The body ``<name>/body`` of the model of a simulation."""

    def __init__(self, sim: "ModelSimulation", name: str):
        self._qpos, self._qvel, self._state, self._seen = (
            sim._qpos,
            sim._qvel,
            sim._state,
            sim._seen,
        )
        [qpos], [qvel] = (
            getattr(sim.model.joint(f"{name}/root"), first) for first in ("qposadr", "dofadr")
        )
        self._root_qpos, self._root_qvel = slice(qpos, qpos + 7), slice(qvel, qvel + 6)
        force = sim.ARRAY(sim._outputs["cfrc_ext"][:, sim.model.body(f"{name}/body").id, 3:])
        sim._arrays.append(force)
        self._quantities = {**self._of_state(), "contact_force_w": (force, force.buffer)}


class ModelSimulation(ModelBody, Simulation):
    """A simulation whose engine has the arrays of a compiled MuJoCo model, batched, as PyTorch tensors. An engine calls
    ``_take_model``, sets ``_qpos``, ``_qvel``, ``_state``, ``_seen``, ``_controls`` and ``_outputs``, and calls
    ``_take_scene``."""

    ARRAY: type[LiveArray] = LiveArray
    _controls: Tensor
    _outputs: dict[str, Tensor]
    """``MjData.ctrl``, and the fields :data:`OUTPUTS`, of all environments."""

    def _take_model(self, scene: SceneCfg, model: mujoco.MjModel | None = None) -> mujoco.MjModel:
        """Make the ground, and the model unless it is given."""
        terrain = None if scene.terrain is None else make_terrain(scene.terrain)
        self.ground = None if terrain is None else Ground(terrain, self.num_envs, self.device)
        self.model = build_scene(self.robot, self.cfg, scene, terrain) if model is None else model
        self._arrays: list[LiveArray] = []  # of all robots and objects
        return self.model

    def _take_scene(
        self, scene: SceneCfg, get_data: Callable[[int, mujoco.MjData], object]
    ) -> None:
        """Find every robot and object in the arrays, and put them to their starts."""
        view = RobotView.find(self.model, self.robot)
        self._renderer = SceneRenderer(self.model, self.robot, view, self.num_envs, get_data)
        others = {
            name: copy.copy(self) for name in scene.robots
        }  # which share what is set up to here
        self._take_robot(self.robot, scene.start, "")
        for name, placed in scene.robots.items():
            others[name]._take_robot(placed.robot, placed.start, f"{name}/")
        self._robots.update({"robot": self, **others} if others else {})
        self.objects.update({name: _ModelObject(self, name) for name in scene.objects})
        bodies: dict[str, Any] = {**self.robots, **self.objects}
        self._renderer.roots.update({name: body._root_qpos for name, body in bodies.items()})

    def _take_robot(self, robot: RobotCfg, start: tuple[float, float, float], prefix: str) -> None:
        """Be the simulation of ``robot``, whose names in the model begin with ``prefix``, and put it to its start."""
        model, view = self.model, RobotView.find(self.model, robot, prefix)
        if view.root_qpos is None or view.root_qvel is None:
            raise no_free_joint(robot)
        self.robot, self.robot_view, self.start = robot, view, start
        self.parameters, self._default_parameters = SimpleNamespace(), {}
        self._root_qpos, self._root_qvel = view.root_qpos, view.root_qvel
        self.body_names = tuple(
            model.body(i).name.removeprefix(prefix) for i in range(model.nbody)[view.bodies]
        )
        limits = np.where(model.jnt_limited[:, None], model.jnt_range, (-np.inf, np.inf))[
            view.joints
        ]
        self.joint_pos_limits = torch.tensor(limits, dtype=torch.float32, device=self.device)
        self._ctrl = self._controls[:, view.actuators]
        pose, (x, y, yaw) = (
            torch.tensor(robot.default_joint_pos, dtype=torch.float64, device=self.device),
            start,
        )
        if any(start):  # else as in its file
            root = (x, y, robot.base_height, math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
            self._qpos[:, view.root_qpos] = torch.tensor(
                root, dtype=torch.float64, device=self.device
            )
        self._qpos[:, view.root_qpos.start + 2] = robot.base_height
        self._qpos[:, view.joint_qpos] = pose
        self._ctrl.copy_(torch.where(self._driven_by("position"), pose, 0.0))
        self._quantities = self._find_quantities()
        self._arrays.extend(dict.fromkeys(array for array, _ in self._quantities.values()))
        self._parameter_parts = self._find_parameters()

    def _find_quantities(self) -> dict[str, tuple[LiveArray, Tensor]]:
        view, bodies, outputs = self.robot_view, self.robot_view.bodies, self._outputs
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
        arrays = {name: self.ARRAY(output) for name, output in of_outputs.items()}
        twist = arrays["body_twist"]
        quantities = {name: (array, array.buffer) for name, array in arrays.items()}
        quantities["body_ang_vel_w"] = twist, twist.buffer[..., :3]
        return quantities | self._of_state(joint_pos=view.joint_qpos, joint_vel=view.joint_qvel)

    def _find_parameters(
        self,
    ) -> dict[str, list[tuple[str, tuple[Any, ...], float, Tensor | None]]]:
        """For each parameter the model's fields that hold it: name, part, sign, and for which joints (None: all)."""
        view = self.robot_view
        gain, kp, kd = ((ALL, view.actuators, column) for column in range(3))
        return {
            "friction": [("geom_friction", (ALL, view.geoms, 0), 1.0, None)],
            "body_mass": [("body_mass", (ALL, view.bodies), 1.0, None)],
            "com": [("body_ipos", (ALL, view.bodies), 1.0, None)],
            "armature": [("dof_armature", (ALL, view.joint_qvel), 1.0, None)],
            "kp": [
                ("actuator_biasprm", kp, -1.0, None),
                ("actuator_gainprm", gain, 1.0, self._driven_by("position")),
            ],
            "kd": [
                ("actuator_biasprm", kd, -1.0, None),
                ("actuator_gainprm", gain, 1.0, self._driven_by("velocity")),
            ],
        }

    def _driven_by(self, kind: str) -> Tensor:
        return torch.tensor(
            [actuator == kind for actuator in self.robot.actuators], device=self.device
        )

    def _read_quantity(self, name: str) -> Tensor:
        if name == "body_lin_vel_w":
            # cvel is about the centre of mass of the whole robot: v_body = v + ω × (p_body − p_com)
            spatial = self._read_quantity("body_twist")
            arm = self.body_pos_w - self._read_quantity("root_com_w")
            return spatial[..., 3:] + torch.linalg.cross(spatial[..., :3], arm)
        return super()._read_quantity(name)

    def set_joint_targets(self, targets: Tensor) -> None:
        self._ctrl.copy_(targets)

    def reset(self, env_ids: Tensor) -> None:
        self._restore_start(env_ids)
        if self.ground is not None:
            origins = self.ground.origins[env_ids].to(self._qpos.dtype)
            for body in (*self.robots.values(), *self.objects.values()):
                first = body._root_qpos.start  # type: ignore[attr-defined]
                self._qpos[env_ids, first : first + 3] += origins
        self._state.mark(env_ids)

    @abstractmethod
    def _restore_start(self, env_ids: Tensor) -> None:
        """Put all that the future of ``env_ids`` depends on, but for parameters, to what it was after construction."""

    def write_joint_state(self, env_ids: Tensor, pos: Tensor, vel: Tensor) -> None:
        self._write_state(env_ids, self.robot_view.joint_qpos, pos, self.robot_view.joint_qvel, vel)

    @abstractmethod
    def _own_field(self, name: str, write: bool) -> Tensor | None:
        """A field of the model of every environment, to ``write`` to; None if all have that of ``model`` to read."""

    def _read_parameter(self, name: str, default: bool) -> Tensor:
        field, part, sign, _ = self._parameter_parts[name][0]
        values = None if default else self._own_field(field, False)
        values = torch.from_numpy(getattr(self.model, field)[None]) if values is None else values
        values = sign * (values[part][:, 0] if name == "friction" else values[part])
        return values.expand(self.num_envs, *values.shape[1:]).to(
            self.device, torch.float32, copy=True
        )

    def _write_parameter(self, name: str, values: Tensor, env_ids: Tensor) -> None:
        for field, part, sign, joints in self._parameter_parts[name]:
            own = self._own_field(field, True)
            assert own is not None
            target, values = own[part], values.to(own.dtype)
            written = sign * (values.unsqueeze(1) if name == "friction" else values)
            target[env_ids] = (
                written if joints is None else torch.where(joints, written, target[env_ids])
            )
        if name in CHANGES_CONSTANTS:
            self._mark_constants(env_ids)

    @abstractmethod
    def _mark_constants(self, env_ids: Tensor) -> None:
        """Take in that constants of the model of ``env_ids`` must follow before the next step or ``forward``."""

    def cast_rays(self, origins_w: Tensor, directions_w: Tensor, farthest: float) -> Tensor:
        # The engine looks at every cell between a ray's ends, and a ray has no end.
        nearest = torch.full(origins_w.shape[:2], farthest, device=self.device)
        if self.ground is not None:
            nearest = self.ground.cast(origins_w, directions_w, farthest)
        if self.ground is None or self.objects:
            found = self._cast_at_shapes(origins_w, directions_w)
            nearest = torch.where(found < 0.0, nearest, torch.minimum(found, nearest))
        return nearest

    @abstractmethod
    def _cast_at_shapes(self, origins_w: Tensor, directions_w: Tensor) -> Tensor:
        """How far the plane or an object is, negative where there is none. (num_envs, n, 3) twice → (num_envs, n)."""


def flatten(state: dict[str, Any]) -> dict[str, Any]:
    """The arrays of a state, those in dicts as ``"<dict>.<name>"``."""
    nested = {entry: value for entry, value in state.items() if isinstance(value, dict)}
    arrays = {
        f"{entry}.{name}": array
        for entry, arrays in nested.items()
        for name, array in arrays.items()
    }
    return {entry: value for entry, value in state.items() if entry not in nested} | arrays


def check_shapes(given: dict[str, Any], expected: dict[str, tuple[int, ...]]) -> None:
    """Raise a ValueError, naming the first array that differs, unless a flat state has exactly these shapes."""
    shapes = {name: np.shape(array) for name, array in given.items()}
    for name in {**expected, **shapes}:
        if (got := shapes.get(name)) != (own := expected.get(name)):
            raise ValueError(
                f"the state is of another simulation: the shape of {name} is {got}, here it is {own}"
            )
