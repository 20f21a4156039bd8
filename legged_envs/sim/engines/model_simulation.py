"""The common base class of engines that simulate a compiled MuJoCo model."""

import copy
import math
from abc import abstractmethod
from collections.abc import Callable

import mujoco
import numpy as np
import torch
from torch import Tensor

from legged_envs.robots import RobotCfg
from legged_envs.sim.cfg import SceneCfg
from legged_envs.sim.engines.arrays import EngineArray, Quantity
from legged_envs.sim.engines.model_body import ModelBody, ModelObject
from legged_envs.sim.engines.parameters import CHANGES_CONSTANTS, find_model_fields
from legged_envs.sim.ground import Ground
from legged_envs.sim.render.renderer import SceneRenderer
from legged_envs.sim.robot_view import RobotView, no_free_joint
from legged_envs.sim.scene import build_scene
from legged_envs.sim.simulation import Simulation
from legged_envs.terrains import make_terrain

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
"""Fields of ``MjData`` that a physics step computes. A saved state also contains them."""
GEOM_GROUPS_SEEN_BY_RAYS = (1, 0, 0, 0, 1, 1)
"""1 for each of MuJoCo's six geom groups that rays can hit.

Rays do not hit terrain, group 1, and robots, groups 2 and 3.
"""


class ModelSimulation(ModelBody, Simulation):
    """A simulation on an engine with the arrays of a MuJoCo model for all environments.

    The arrays must be available as PyTorch tensors that share the engine's memory. The constructor
    of a subclass calls ``_make_model``, then sets ``_qpos``, ``_qvel``, ``_state``, ``_qpos_read``,
    ``_qvel_read``, ``_controls`` and ``_outputs``, and then calls ``_make_scene``.
    """

    ARRAY: type[EngineArray] = EngineArray
    """Class of the arrays from which quantities are read."""
    _controls: Tensor
    """Field ``ctrl`` of ``MjData`` of all environments. Shape: (num_envs, nu)."""
    _outputs: dict[str, Tensor]
    """The fields `OUTPUTS` of ``MjData`` of all environments."""

    def _make_model(self, scene: SceneCfg, model: mujoco.MjModel | None = None) -> mujoco.MjModel:
        """Make the ground, and the model unless it is given."""
        terrain = None
        if scene.terrain is not None:
            terrain = make_terrain(scene.terrain)
            self.ground = Ground(terrain, self.num_envs, self.device)
        if model is None:
            model = build_scene(self.robot, self.cfg, scene, terrain)
        self.model = model
        """MuJoCo model of the compiled scene."""
        self._arrays: list[EngineArray] = []
        """Arrays of the quantities of all robots and objects."""
        return model

    def _make_scene(
        self, scene: SceneCfg, get_data: Callable[[int, mujoco.MjData], object]
    ) -> None:
        """Find every robot and object in the arrays, and put them to their starts.

        Args:
            scene: Contents of the scene.
            get_data: Function ``get_data(env_id, data)`` that writes the state of an environment
                to ``data``, for pictures.
        """
        view = RobotView.find(self.model, self.robot)
        self._renderer = SceneRenderer(self.model, self.robot, view, self.num_envs, get_data)
        # The simulations of further robots share all that has been set up to here: model, arrays,
        # renderer, ground, and the dicts of robots and objects. What _place_robot sets is separate.
        further_robots = {name: copy.copy(self) for name in scene.robots}
        self._place_robot(self.robot, scene.start, prefix="")
        for name, placed in scene.robots.items():
            further_robots[name]._place_robot(placed.robot, placed.start, prefix=f"{name}/")
        if further_robots:
            self._robots["robot"] = self
            self._robots.update(further_robots)
        for name in scene.objects:
            self.objects[name] = ModelObject(self, name)
        for name, body in self._bodies_by_name().items():
            self._renderer.roots[name] = body._root_qpos

    def _bodies_by_name(self) -> dict[str, ModelBody]:
        """Return all robots and objects of the scene."""
        return {**self.robots, **self.objects}  # type: ignore[dict-item]

    def _place_robot(self, robot: RobotCfg, start: tuple[float, float, float], prefix: str) -> None:
        """Become the simulation of a robot of the scene, and put it to its start.

        Args:
            robot: The robot.
            start: x and y, m, and yaw, rad.
            prefix: Beginning of the names of its parts in the model.
        """
        view = RobotView.find(self.model, robot, prefix)
        if view.root_qpos is None or view.root_qvel is None:
            raise no_free_joint(robot)
        self.robot = robot

        self.robot_view = view
        """Indices of the robot's parts in the arrays of the model."""
        self.start = start
        self._parameters = {}
        self._default_parameters = {}
        self._root_qpos = view.root_qpos
        self._root_qvel = view.root_qvel
        self._name_bodies_and_limits(prefix)
        self._put_to_start()
        self._quantities = self._find_quantities()
        for quantity in self._quantities.values():
            if quantity.array not in self._arrays:
                self._arrays.append(quantity.array)
        self._model_fields = find_model_fields(
            view, self._joints_with("position"), self._joints_with("velocity")
        )

    def _name_bodies_and_limits(self, prefix: str) -> None:
        model = self.model
        view = self.robot_view
        bodies = range(model.nbody)[view.bodies]
        self.body_names = tuple(model.body(i).name.removeprefix(prefix) for i in bodies)
        is_limited = model.jnt_limited[view.joints, None]
        limits = np.where(is_limited, model.jnt_range[view.joints], (-np.inf, np.inf))
        self.joint_pos_limits = torch.tensor(limits, dtype=torch.float32, device=self.device)

    def _put_to_start(self) -> None:
        """Write the robot's default pose at its place to ``qpos``, and its targets to ``ctrl``."""
        robot = self.robot
        x, y, yaw = self.start
        if x or y or yaw:
            # At the origin the orientation comes from the robot's file.
            root = (x, y, robot.base_height, math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
            self._qpos[:, self._root_qpos] = self._double(root)
        # The third number of a free joint is its height.
        self._qpos[:, self._root_qpos.start + 2] = robot.base_height
        pose = self._double(robot.default_joint_pos)
        self._qpos[:, self.robot_view.joint_qpos] = pose

        self._ctrl = self._controls[:, self.robot_view.actuators]
        """Targets of the actuators of this robot. Shape: (num_envs, num_joints)."""
        self._ctrl.copy_(torch.where(self._joints_with("position"), pose, 0.0))

    def _double(self, values: tuple[float, ...]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=self.device)

    def _joints_with(self, actuator: str) -> Tensor:
        """Return the joints with a kind of actuator, (num_joints,) bool."""
        is_kind = [kind == actuator for kind in self.robot.actuators]
        return torch.tensor(is_kind, device=self.device)

    def _find_quantities(self) -> dict[str, Quantity]:
        view = self.robot_view
        bodies = view.bodies
        outputs = self._outputs
        foot_velocities = outputs["sensordata"][:, view.foot_velocities]
        joint_acc = self.ARRAY(outputs["qacc"][:, view.joint_qvel])
        joint_torque = self.ARRAY(outputs["actuator_force"][:, view.actuators])
        body_pos_w = self.ARRAY(outputs["xpos"][:, bodies])
        body_quat_w = self.ARRAY(outputs["xquat"][:, bodies])
        body_twist = self.ARRAY(outputs["cvel"][:, bodies])
        # MuJoCo's cvel is about the centre of mass of the whole robot, of its base's subtree.
        root_com_w = self.ARRAY(outputs["subtree_com"][:, bodies.start, None])
        # A row of cfrc_ext is a torque and then a force.
        contact_force_w = self.ARRAY(outputs["cfrc_ext"][:, bodies, 3:])
        foot_pos_w = self.ARRAY(outputs["site_xpos"][:, view.foot_sites])
        foot_lin_vel_w = self.ARRAY(foot_velocities.unflatten(1, (-1, 3)))
        return {
            **self._root_quantities(),
            "joint_pos": Quantity(self._state, self._qpos_read[:, view.joint_qpos]),
            "joint_vel": Quantity(self._state, self._qvel_read[:, view.joint_qvel]),
            "joint_acc": Quantity(joint_acc, joint_acc.buffer),
            "joint_torque": Quantity(joint_torque, joint_torque.buffer),
            "body_pos_w": Quantity(body_pos_w, body_pos_w.buffer),
            "body_quat_w": Quantity(body_quat_w, body_quat_w.buffer),
            # Angular velocity, and velocity of the body's point at the robot's centre of mass.
            "body_twist": Quantity(body_twist, body_twist.buffer),
            "body_ang_vel_w": Quantity(body_twist, body_twist.buffer[..., :3]),
            "root_com_w": Quantity(root_com_w, root_com_w.buffer),
            "contact_force_w": Quantity(contact_force_w, contact_force_w.buffer),
            "foot_pos_w": Quantity(foot_pos_w, foot_pos_w.buffer),
            "foot_lin_vel_w": Quantity(foot_lin_vel_w, foot_lin_vel_w.buffer),
        }

    @property
    def body_lin_vel_w(self) -> Tensor:
        """Velocities of the bodies' origins in the world frame, m/s.

        v_body = v + ω × (p_body − p_com), with a body's angular velocity ω and its velocity v at
        the robot's centre of mass p_com. Shape: (num_envs, num_bodies, 3). Lags by one physics step
        after ``step``.
        """
        twist = self._read_quantity("body_twist")
        arm = self.body_pos_w - self._read_quantity("root_com_w")
        return twist[..., 3:] + torch.linalg.cross(twist[..., :3], arm)

    def set_joint_targets(self, targets: Tensor) -> None:
        # copy_ writes to the engine's memory and converts to its dtype.
        self._ctrl.copy_(targets)

    def write_joint_state(self, env_ids: Tensor, pos: Tensor, vel: Tensor) -> None:
        self._qpos[env_ids, self.robot_view.joint_qpos] = pos.to(self._qpos.dtype)
        self._qvel[env_ids, self.robot_view.joint_qvel] = vel.to(self._qvel.dtype)
        self._state.mark_stale(env_ids)

    def reset(self, env_ids: Tensor) -> None:
        self._restore_start(env_ids)
        if self.ground is not None:
            # Starts are relative to the origin: on terrain all bodies are moved to the tile.
            origins = self.ground.origins[env_ids].to(self._qpos.dtype)
            for body in self._bodies_by_name().values():
                first = body._root_qpos.start
                self._qpos[env_ids, first : first + 3] += origins
        self._state.mark_stale(env_ids)

    @abstractmethod
    def _restore_start(self, env_ids: Tensor) -> None:
        """Restore the state after construction of ``env_ids``, except for parameters."""

    def _read_parameter(self, name: str, default: bool) -> Tensor:
        """Return a copy of a physics parameter of all environments, float32.

        Args:
            name: Name of the parameter.
            default: True for the value of the model file, False for the present one.
        """
        field = self._model_fields[name][0]
        values = None if default else self._field_to_read(field.name)
        # None: the environments share the model's value.
        if values is None:
            values = torch.from_numpy(getattr(self.model, field.name)[None])
        values = field.sign * values[field.part]
        if name == "friction":
            # All shapes of a robot have the same friction.
            values = values[:, 0]
        values = values.expand(self.num_envs, *values.shape[1:])
        return values.to(self.device, torch.float32, copy=True)

    def _write_parameter(self, name: str, values: Tensor, env_ids: Tensor) -> None:
        if name == "friction":
            values = values.unsqueeze(1)
        for field in self._model_fields[name]:
            target = self._field_to_write(field.name)[field.part]  # a view
            signed = field.sign * values.to(target.dtype)
            if field.joints is not None:
                # For other joints this field has another parameter, which must not change.
                signed = torch.where(field.joints, signed, target[env_ids])
            target[env_ids] = signed
        if name in CHANGES_CONSTANTS:
            self._mark_constants(env_ids)

    @abstractmethod
    def _field_to_read(self, name: str) -> Tensor | None:
        """Return a field of the MuJoCo model with a row per environment.

        None if all environments have the values of ``model``.
        """

    @abstractmethod
    def _field_to_write(self, name: str) -> Tensor:
        """Return a field of the MuJoCo model with a row per environment, in the engine's memory."""

    @abstractmethod
    def _mark_constants(self, env_ids: Tensor) -> None:
        """Note that parameters of ``env_ids`` were set on which constants of the model depend.

        The engine must compute the constants, such as inverse inertias, before its next step or
        ``forward``.
        """

    def cast_rays(self, origins_w: Tensor, directions_w: Tensor, farthest: float) -> Tensor:
        # Rays at a height field are computed in PyTorch. MuJoCo is slow there: it tests every cell
        # along a ray, and its rays have no largest length.
        if self.ground is None:
            nearest = torch.full(origins_w.shape[:2], farthest, device=self.device)
        else:
            nearest = self.ground.cast(origins_w, directions_w, farthest)
        if self.ground is None or self.objects:
            to_shapes = self._cast_at_shapes(origins_w, directions_w)
            nearer = torch.minimum(to_shapes, nearest)
            nearest = torch.where(to_shapes < 0.0, nearest, nearer)
        return nearest

    @abstractmethod
    def _cast_at_shapes(self, origins_w: Tensor, directions_w: Tensor) -> Tensor:
        """Return the distance to the plane or an object, negative where there is nothing.

        Args:
            origins_w: Points in the world, m. Shape: (num_envs, n, 3).
            directions_w: Unit vectors in the world. Shape: (num_envs, n, 3).

        Returns:
            Distances, m. Shape: (num_envs, n).
        """
