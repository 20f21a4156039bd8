"""Finds joints with inertias that are too small for their motors."""

from collections.abc import Mapping

import mujoco
import numpy as np

PHYSICS_DT = 0.005
"""Physics time step of a task (``SimCfg.dt``), s."""

# The package's robots have files with the inertia of rotors: their legs have at most 1.1 and the
# lightest joint, an elbow of K1, 1.95.
MOST_JUMP = 2.0
"""Largest change of a joint's velocity in one physics step by the full torque of its motor.

It is a multiple of the motor's velocity limit. With more, a controller throws the joint from one
limit to the other in every step, and some robots explode: a Go1 with 3.5.
"""

MOST_JUMP_TO_BALANCE = 1.5
"""``MOST_JUMP`` of robots on two feet, which fall over ankles that shake."""

NUM_POSES = 32
"""Number of random poses in which the inertias of joints are looked at."""


def missing_armatures(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    torque_limits: Mapping[str, float],
    velocity_limits: Mapping[str, float],
    most_jump: float = MOST_JUMP,
    num_poses: int = NUM_POSES,
) -> dict[str, float]:
    """Return the joints that have too little inertia for their motors, with an armature for each.

    With this armature, which is the inertia of the motor's rotor times the square of the gear
    ratio, the motor needs one physics step from rest to its velocity limit. In a file without any
    armature, random poses are looked at too: the inertia about the upper arm is a hundred times
    smaller with a straight elbow.

    Args:
        model: Robot on a free base.
        data: Pose in which the inertias are computed, after ``mj_forward``.
        torque_limits: Torque limit of each joint, N m.
        velocity_limits: Velocity limit of each joint, rad/s.
        most_jump: Largest change of a joint's velocity in a step, as a multiple of its limit.
        num_poses: Number of random poses that are looked at too.

    Returns:
        Armature of each joint with a change of velocity above ``most_jump``, kg m², with two
        digits.
    """
    mobility = _mobility(model, data)
    if not model.dof_armature.any():
        moved = mujoco.MjData(model)
        random = np.random.default_rng(0)
        for _ in range(num_poses):
            moved.qpos[:] = data.qpos
            _move_joints(model, moved, random)
            mobility = np.maximum(mobility, _mobility(model, moved))
    armatures = {}
    for joint, torque in torque_limits.items():
        dof = int(model.joint(joint).dofadr[0])
        limit = velocity_limits[joint]
        jump = torque * PHYSICS_DT * mobility[dof]
        if jump > most_jump * limit:
            armatures[joint] = float(f"{torque * PHYSICS_DT / limit:.2g}")
    return armatures


def _mobility(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Return the acceleration of each degree of freedom by a unit force on it. Shape: (nv,)."""
    inverse = np.zeros((model.nv, model.nv))
    mujoco.mj_solveM(model, data, inverse, np.eye(model.nv))
    return np.diag(inverse)


def _move_joints(model: mujoco.MjModel, data: mujoco.MjData, random: np.random.Generator) -> None:
    """Draw a position within its range for each joint, and update the inertias."""
    for i in range(model.njnt):
        if model.jnt_type[i] == mujoco.mjtJoint.mjJNT_HINGE:
            low, high = model.jnt_range[i] if model.jnt_limited[i] else (-np.pi, np.pi)
            data.qpos[model.jnt_qposadr[i]] = random.uniform(low, high)
    mujoco.mj_forward(model, data)


def group_by_value(values: Mapping[str, float]) -> str:
    """Return names and values as text: the joints of each value, such as ``0.01 of 'a', 'b'``."""
    names: dict[float, list[str]] = {}
    for name, value in values.items():
        names.setdefault(value, []).append(repr(name))
    return "; ".join(f"{value:g} of {', '.join(group)}" for value, group in names.items())
