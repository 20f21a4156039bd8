"""Indices of one robot's joints, bodies and sensors in the arrays of a MuJoCo model."""

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from legged_envs.robots import RobotCfg
from legged_envs.tables import TableRepr


@dataclass(frozen=True, repr=False)
class RobotView(TableRepr):
    """Slices that select one robot's parts of the arrays of a MuJoCo model.

    The model may have several robots. Joints and feet are in the order of the robot's ``RobotCfg``.
    """

    root_qpos: slice | None
    """Entries of the free joint in ``qpos``: position, m, and quaternion (w, x, y, z). None if the
    base is fixed."""
    root_qvel: slice | None
    """Entries of the free joint in ``qvel``: velocity in the world, m/s, and angular velocity in
    the base frame, rad/s. None if the base is fixed."""
    joints: slice
    """Indices of the joints, without the free joint of the base."""
    joint_qpos: slice
    """Positions of the robot's actuated joints in MuJoCo's ``qpos``."""
    joint_qvel: slice
    """Velocities of the robot's actuated joints in MuJoCo's ``qvel``."""
    actuators: slice
    """Indices of the actuators of the robot's joints, in the order of its joint names."""
    bodies: slice
    """Indices of the robot's bodies, the base first."""
    geoms: slice
    """Indices of the shapes from the first to the last colliding shape."""
    foot_sites: slice
    """Indices of the sites at the origins of the feet."""
    foot_velocities: slice
    """Velocities of the feet in ``sensordata``, m/s in the world, three values per foot."""

    def _describe(self) -> str:
        parts = []
        for name, part in vars(self).items():
            span = "None" if part is None else f"{part.start}:{part.stop}"
            parts.append(f"{name}={span}")
        return ", ".join(parts)

    @classmethod
    def find(cls, model: mujoco.MjModel, robot: RobotCfg, prefix: str = "") -> "RobotView":
        """Find the parts of a robot in a model.

        Args:
            model: Compiled scene.
            robot: Configuration of the robot.
            prefix: Beginning of the names of the robot's parts in the model: empty for the first
                robot of a scene, ``"<name>/"`` for a further one.

        Raises:
            ValueError: The parts of the model do not fit the configuration, or are in another
                order.
        """
        base = model.body(prefix + robot.base_body).id
        bodies = np.flatnonzero(model.body_rootid == base)
        joints = np.flatnonzero(np.isin(model.jnt_bodyid, bodies))
        root_qpos = None
        root_qvel = None
        # The free joint of the base is the first one of the robot's bodies.
        if len(joints) > 0 and model.jnt_type[joints[0]] == mujoco.mjtJoint.mjJNT_FREE:
            root = joints[:1]
            joints = joints[1:]
            root_qpos = _span(model.jnt_qposadr[root], robot, "its base", 7)
            root_qvel = _span(model.jnt_dofadr[root], robot, "its base", 6)
        _check_joints(model, robot, joints, prefix)
        # Shapes that are only drawn have no affinity.
        collides = model.geom_conaffinity > 0
        geoms = np.flatnonzero(np.isin(model.geom_bodyid, bodies) & collides)
        actuators = []
        for name in robot.joint_names:
            actuators.append(model.actuator(prefix + name).id)
        sites = []
        sensors = []
        for foot in robot.foot_names:
            sites.append(model.site(f"{prefix}{foot}_site").id)
            sensors.append(model.sensor(f"{prefix}{foot}_lin_vel").adr[0])
        return cls(
            root_qpos=root_qpos,
            root_qvel=root_qvel,
            joints=_span(joints, robot, "its joints"),
            joint_qpos=_span(model.jnt_qposadr[joints], robot, "its joints"),
            joint_qvel=_span(model.jnt_dofadr[joints], robot, "its joints"),
            actuators=_span(actuators, robot, "its actuators"),
            bodies=_span(bodies, robot, "its bodies"),
            geoms=slice(int(geoms[0]), int(geoms[-1]) + 1),
            foot_sites=_span(sites, robot, "the sites of its feet"),
            foot_velocities=_span(sensors, robot, "the sensors of its feet", 3),
        )


def _check_joints(model: mujoco.MjModel, robot: RobotCfg, joints: np.ndarray, prefix: str) -> None:
    """Raise a ValueError unless ``joints`` are hinges and slides with the names of the robot's."""
    names = tuple(model.joint(i).name for i in joints)
    if names != tuple(prefix + name for name in robot.joint_names):
        raise ValueError(
            f"{robot.xml} has joints {names}, but RobotCfg {robot.name!r} names "
            f"{robot.joint_names}: name all of them, in the order of the file"
        )
    allowed = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    if not np.isin(model.jnt_type[joints], allowed).all():
        raise ValueError(
            f"{robot.xml}: every joint but the free one of the base must be a hinge or a slide"
        )


def _span(
    first_ids: Sequence[int] | np.ndarray, robot: RobotCfg, parts: str, size: int = 1
) -> slice:
    """Return the slice of parts that follow one another.

    Args:
        first_ids: First index of each part.
        robot: The robot, for the error.
        parts: Name of the parts, for the error.
        size: Number of indices that each part has.

    Raises:
        ValueError: Other parts are in between, or the order is another one.
    """
    first = int(first_ids[0])
    last = first + size * len(first_ids)
    if list(first_ids) != list(range(first, last, size)):
        raise ValueError(f"{robot.xml} must declare {parts} one after another, in RobotCfg's order")
    return slice(first, last)


def no_free_joint(robot: RobotCfg) -> ValueError:
    """Return the error to raise for a robot with a fixed base, which has no free joint."""
    return ValueError(
        f"{robot.xml}: base_body {robot.base_body!r} of RobotCfg {robot.name!r} has no free joint: "
        'put <freejoint name="root"/> first into that body'
    )
