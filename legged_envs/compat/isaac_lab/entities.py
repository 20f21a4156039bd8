"""Robots and objects of a scene in Isaac Lab's words."""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.checks import match_names
from legged_envs.compat.isaac_lab.entity_data import ArticulationData, EntityData
from legged_envs.compat.isaac_lab.scene_setup import Scene, scene_of
from legged_envs.envs import CoreVectorEnv
from legged_envs.robots import RobotCfg
from legged_envs.sim import ObjectCfg, PlacedRobot, Simulation
from legged_envs.sim.quantities import FreeBody
from legged_envs.state import Stateful

Ids = Tensor | Sequence[int] | slice | None
"""Indices of environments, joints or bodies; None for all."""
ArticulationCfg = RobotCfg
"""Isaac Lab's name of the description of a robot."""
RigidObjectCfg = ObjectCfg
"""Isaac Lab's name of the description of an object."""
ALL = slice(None)
"""Index of all rows or columns."""


class RigidObject(Stateful):
    """An object of the scene.

    Args:
        cfg: Description of the object, by which it is found in the simulation.
        scene: The scene; None for the scene that is being set up.

    Raises:
        ValueError: If the simulation has no object of this description.
        RuntimeError: If no scene is given or being set up.
    """

    def __init__(self, cfg: RobotCfg | PlacedRobot | ObjectCfg, scene: Scene | None = None):
        scene = scene_of(self, scene)
        core = scene.core

        self.cfg = cfg
        """Description of the object."""
        self.name = self._find_name(scene)
        """Name of the object in the simulation."""
        self._body = _bodies(core)[self.name]
        # Isaac Lab's name: tasks read it.
        self._ALL_INDICES = core.all_ids

        self.data = self._make_data(core)
        """Quantities of the object."""

    def _find_name(self, scene: Scene) -> str:
        """Return the name of an object of this description, if possible one without an entity."""
        wanted = self.cfg.robot if isinstance(self.cfg, PlacedRobot) else self.cfg
        descriptions = _descriptions(scene.core)
        names = [name for name, description in descriptions.items() if description == wanted]
        if not names:
            raise ValueError(
                f"{type(self).__name__}: {self.cfg!r} is not in the simulation: "
                "make it a field of the configuration of the environment or of its scene"
            )
        # Sensors have no name, and neither has this entity yet.
        taken = [each.name for each in scene.entities.values() if hasattr(each, "name")]
        for name in names:
            if name not in taken:
                return name
        return names[0]

    def _make_data(self, core: CoreVectorEnv) -> EntityData:
        return EntityData(self._body)

    def reset(self, env_ids: Ids = None) -> None:
        """Begin the episodes of ``env_ids``."""

    def write_root_state_to_sim(self, root_state: Tensor, env_ids: Ids = None) -> None:
        """Write position, quaternion and velocities in the world, (n, 13)."""
        ids = self._env_ids(env_ids)
        state = self.data.root_state_w[ids]
        state[:] = root_state
        self._write_root_state(ids, state)

    def write_root_pose_to_sim(self, root_pose: Tensor, env_ids: Ids = None) -> None:
        """Write position and quaternion, (n, 7); the velocities in the world stay."""
        ids = self._env_ids(env_ids)
        state = self.data.root_state_w[ids]
        state[:, :7] = root_pose
        self._write_root_state(ids, state)

    def write_root_velocity_to_sim(self, root_velocity: Tensor, env_ids: Ids = None) -> None:
        """Write velocity, m/s, and angular velocity, rad/s, in the world, (n, 6)."""
        ids = self._env_ids(env_ids)
        state = self.data.root_state_w[ids]
        state[:, 7:] = root_velocity
        self._write_root_state(ids, state)

    def _write_root_state(self, env_ids: Tensor, state: Tensor) -> None:
        pos, quat, lin_vel, ang_vel = state.split((3, 4, 3, 3), dim=1)
        ang_vel_b = rotation.rotate_inverse(quat, ang_vel.unsqueeze(1)).squeeze(1)
        self._body.write_root_state(env_ids, pos, quat, lin_vel, ang_vel_b)

    def _env_ids(self, env_ids: Ids) -> Tensor:
        return self._ALL_INDICES[ALL if env_ids is None else env_ids]


def _descriptions(core: CoreVectorEnv) -> dict[str, RobotCfg | ObjectCfg]:
    """Return the description of each robot and object of the simulation by name."""
    descriptions: dict[str, RobotCfg | ObjectCfg] = {"robot": core.cfg.robot}
    descriptions.update(core.cfg.scene.objects)
    for name, placed in core.cfg.scene.robots.items():
        descriptions[name] = placed.robot
    return descriptions


def _bodies(core: CoreVectorEnv) -> dict[str, FreeBody]:
    """Return the robots and objects of the simulation by name."""
    return {**core.sim.robots, **core.sim.objects}


def find_robot(path: Sequence[str], robots: Collection[str]) -> str:
    """Return the first part of a path that names a robot, in any case; ``"robot"`` without one."""
    for part in path:
        if part.lower() in robots:
            return part.lower()
    return "robot"


class HasBodies(Stateful):
    """Base of entities that find their bodies by name."""

    body_names: list[str]
    """Names of the bodies."""

    def find_bodies(
        self, name_keys: str | Sequence[str], preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Find bodies by names or regular expressions.

        Args:
            name_keys: Names or expressions, each of which must match a whole name.
            preserve_order: True for the order of the expressions, false for the order of the
                bodies.

        Returns:
            Indices and names.
        """
        return match_names("body", name_keys, self.body_names, preserve_order)


class Articulation(RigidObject, HasBodies):
    """A robot of the scene.

    Args:
        cfg: Description of the robot, by which it is found in the simulation.
        scene: The scene; None for the scene that is being set up.

    Raises:
        ValueError: If the simulation has no robot of this description.
        RuntimeError: If no scene is given or being set up.
    """

    STATE = ("_targets",)

    is_fixed_base = False
    """False: robots move freely."""
    data: ArticulationData
    """Quantities of the robot."""
    _body: Simulation

    def _make_data(self, core: CoreVectorEnv) -> ArticulationData:
        robot = self._body.robot

        self.joint_names = list(robot.joint_names)
        """Names of the joints."""
        self.body_names = list(self._body.body_names)

        self.num_joints = len(self.joint_names)
        """Number of joints."""
        self.num_bodies = len(self.body_names)
        """Number of bodies."""
        data = ArticulationData(self._body, core.robots[self.name])
        # Only positions have a default; the other actuators rest at 0.
        holds_position = [actuator == "position" for actuator in robot.actuators]
        self._rest_targets = data.default_joint_pos * torch.tensor(
            holds_position, device=data.default_joint_pos.device
        )
        self._targets = self._rest_targets.clone()
        return data

    @property
    def num_instances(self) -> int:
        """Number of environments."""
        return len(self._ALL_INDICES)

    def find_joints(
        self, name_keys: str | Sequence[str], preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Find joints by names or regular expressions.

        Args:
            name_keys: Names or expressions, each of which must match a whole name.
            preserve_order: True for the order of the expressions, false for the order of the
                joints.

        Returns:
            Indices and names.
        """
        return match_names("joint", name_keys, self.joint_names, preserve_order)

    def reset(self, env_ids: Ids = None) -> None:
        """Return to the targets of the default pose."""
        ids = self._env_ids(env_ids)
        self._targets[ids] = self._rest_targets[ids]

    def set_joint_position_target(
        self, target: Tensor, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Set targets of joints, rad: see :meth:`set_joint_effort_target`."""
        self._set_targets("position", target, joint_ids, env_ids)

    def set_joint_velocity_target(
        self, target: Tensor, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Set targets of joints, rad/s: see :meth:`set_joint_effort_target`."""
        self._set_targets("velocity", target, joint_ids, env_ids)

    def set_joint_effort_target(
        self, target: Tensor, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Set targets of joints, N·m. They act at once.

        Args:
            target: Targets, shape (n, joints).
            joint_ids: The joints.
            env_ids: The n environments.

        Raises:
            ValueError: If the actuator of a joint takes another kind of target.
        """
        self._set_targets("torque", target, joint_ids, env_ids)

    def _set_targets(self, kind: str, target: Tensor, joint_ids: Ids, env_ids: Ids) -> None:
        columns = ALL if joint_ids is None else joint_ids
        actuators = self._body.robot.actuators
        for joint in torch.arange(self.num_joints)[columns].tolist():
            if actuators[joint] != kind:
                raise ValueError(
                    f"Articulation: joint {self.joint_names[joint]!r} has a {actuators[joint]} "
                    f"actuator, which takes no {kind} target: set RobotCfg.actuators"
                )
        ids = self._env_ids(env_ids)
        # Two steps, because rows and columns may both be lists.
        rows = self._targets[ids]
        rows[:, columns] = target
        self._targets[ids] = rows
        self._body.set_joint_targets(self._targets)

    def write_joint_state_to_sim(
        self,
        position: Tensor | float,
        velocity: Tensor | float,
        joint_ids: Ids = None,
        env_ids: Ids = None,
    ) -> None:
        """Write positions and velocities of joints.

        Args:
            position: Positions, rad, shape (n, joints).
            velocity: Velocities, rad/s, shape (n, joints).
            joint_ids: The joints.
            env_ids: The n environments.
        """
        ids = self._env_ids(env_ids)
        columns = ALL if joint_ids is None else joint_ids
        new_position = self.data.joint_pos[ids]
        new_velocity = self.data.joint_vel[ids]
        new_position[:, columns] = position
        new_velocity[:, columns] = velocity
        self._body.write_joint_state(ids, new_position, new_velocity)
