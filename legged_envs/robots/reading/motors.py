"""Limits of motors: numbers that stand for none, and inertias that are too small for a motor."""

from collections.abc import Mapping

import mujoco
import numpy as np

from legged_envs.robots.reading.pose import GRAVITY

# Of the robots of the package, the strongest motor has 0.9 of it (Go2).
MOST_TORQUE = 5.0
"""Largest torque of a joint in multiples of m g h, with the mass m of the robot and the height h
of its base. Files with more have a placeholder, such as 1000 N m."""

MOST_VELOCITY = 100.0
"""Largest velocity of a joint, rad/s. Files with more have a placeholder, such as 1000 rad/s."""

PHYSICS_DT = 0.005
"""Physics time step of a task (``SimCfg.dt``), s."""

# Of the robots of the package, the lightest joint has 2 (elbow of K1).
MOST_JUMP = 5.0
"""Largest change of a joint's velocity in one physics step by the full torque of its motor.

It is a multiple of the motor's velocity limit. With more, a controller throws the joint from one
limit to the other in every step, and the robot explodes.
"""


def most_torque(mass: float, height: float) -> float:
    """Return the torque, N m, beyond which no motor of a robot of this size goes."""
    return MOST_TORQUE * mass * GRAVITY * height


def split_placeholders(
    limits: Mapping[str, float], most: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the limits up to ``most``, and those beyond it, which are placeholders."""
    real = {}
    placeholders = {}
    for joint, limit in limits.items():
        if limit > most:
            placeholders[joint] = limit
        else:
            real[joint] = limit
    return real, placeholders


def missing_armatures(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    torque_limits: Mapping[str, float],
    velocity_limits: Mapping[str, float],
) -> dict[str, float]:
    """Return the joints that have too little inertia for their motors, with an armature for each.

    With this armature, which is the inertia of the motor's rotor times the square of the gear
    ratio, the motor needs one physics step from rest to its velocity limit.

    Args:
        model: Robot on a free base.
        data: Pose in which the inertias are computed, after ``mj_forward``.
        torque_limits: Torque limit of each joint, N m.
        velocity_limits: Velocity limit of each joint, rad/s.

    Returns:
        Armature of each joint whose velocity changes by more than ``MOST_JUMP`` of its limit in a
        step, kg m², with two digits.
    """
    inverse = np.zeros((model.nv, model.nv))
    mujoco.mj_solveM(model, data, inverse, np.eye(model.nv))
    armatures = {}
    for joint, torque in torque_limits.items():
        dof = int(model.joint(joint).dofadr[0])
        limit = velocity_limits[joint]
        jump = torque * PHYSICS_DT * inverse[dof, dof]
        if jump > MOST_JUMP * limit:
            armatures[joint] = float(f"{torque * PHYSICS_DT / limit:.2g}")
    return armatures


def group_by_value(values: Mapping[str, float]) -> str:
    """Return names and values as text: the joints of each value, such as ``0.01 of 'a', 'b'``."""
    names: dict[float, list[str]] = {}
    for name, value in values.items():
        names.setdefault(value, []).append(repr(name))
    return "; ".join(f"{value:g} of {', '.join(group)}" for value, group in names.items())
