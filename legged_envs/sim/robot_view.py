"""Where a robot is in a compiled scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from legged_envs.robots import RobotCfg


@dataclass(frozen=True)
class RobotView:
    """One robot's parts of the arrays of a MuJoCo model, as slices. A scene may hold several robots."""

    root_qpos: slice | None
    """Its free joint in ``qpos``: position and quaternion. None if the base is fixed."""
    root_qvel: slice | None
    """Its free joint in ``qvel``: linear and angular velocity. None if the base is fixed."""
    joints: slice
    """Its joints without the free one, in the order of ``RobotCfg.joint_names``, among the model's."""
    joint_qpos: slice
    joint_qvel: slice
    actuators: slice
    """In the order of ``RobotCfg.joint_names``."""
    bodies: slice
    """The base first."""
    geoms: slice
    """From its first collision shape to its last."""
    foot_sites: slice
    """In the order of ``RobotCfg.foot_names``."""
    foot_velocities: slice
    """Three values per foot in ``sensordata``."""

    @classmethod
    def find(cls, model: mujoco.MjModel, robot: RobotCfg, prefix: str = "") -> RobotView:
        """The view of ``robot``, of whose names in the model each begins with ``prefix``.

        ValueError if the robot's joints are not those of its ``RobotCfg``, or its parts not one after another.
        """
        base = model.body(prefix + robot.base_body).id
        bodies = np.flatnonzero(model.body_rootid == base)
        joints = np.flatnonzero(np.isin(model.jnt_bodyid, bodies))
        floats = bool((model.jnt_type[joints[:1]] == mujoco.mjtJoint.mjJNT_FREE).any())
        root, joints = joints[:floats], joints[floats:]
        names = tuple(model.joint(i).name for i in joints)
        if names != tuple(prefix + name for name in robot.joint_names):
            raise ValueError(f"{robot.xml} has joints {names}, but RobotCfg {robot.name!r} names {robot.joint_names}")
        if not np.isin(model.jnt_type[joints], (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)).all():
            raise ValueError(f"{robot.xml}: every joint but the free one of the base must be a hinge or a slide")
        shapes = np.flatnonzero(np.isin(model.geom_bodyid, bodies) & (model.geom_conaffinity > 0))
        sites = [model.site(f"{prefix}{foot}_site").id for foot in robot.foot_names]
        velocities = [model.sensor(f"{prefix}{foot}_lin_vel").adr[0] for foot in robot.foot_names]

        def span(ids: Sequence[int] | np.ndarray, parts: str, stride: int = 1) -> slice:
            if list(ids) != list(range(ids[0], ids[0] + stride * len(ids), stride)):
                raise ValueError(f"{robot.xml} must declare {parts} one after another, in RobotCfg's order")
            return slice(int(ids[0]), int(ids[0]) + stride * len(ids))

        return cls(
            root_qpos=span(model.jnt_qposadr[root], "its base", 7) if floats else None,
            root_qvel=span(model.jnt_dofadr[root], "its base", 6) if floats else None,
            joints=span(joints, "its joints"),
            joint_qpos=span(model.jnt_qposadr[joints], "its joints"),
            joint_qvel=span(model.jnt_dofadr[joints], "its joints"),
            actuators=span([model.actuator(name).id for name in names], "its actuators"),
            bodies=span(bodies, "its bodies"),
            geoms=slice(int(shapes[0]), int(shapes[-1]) + 1),
            foot_sites=span(sites, "the sites of its feet"),
            foot_velocities=span(velocities, "the sensors of its feet", 3),
        )
