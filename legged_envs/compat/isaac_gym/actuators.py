"""Motors of a robot's file, which scripts read and which drive nothing here."""

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from legged_envs.compat.isaac_gym.records import ActuatorProperties


@dataclass(frozen=True)
class Actuator:
    """A motor of a robot's file."""

    name: str
    """Its name."""
    joint: str
    """Name of the joint that it drives; empty if it drives a tendon or a site."""
    properties: ActuatorProperties
    """Its effort, gains and limits."""


def read_actuators(path: Path) -> list[Actuator]:
    """Return the motors of an MJCF file in their order. A URDF and a shape have none.

    Args:
        path: File of the robot.
    """
    if path.suffix.lower() != ".xml":
        return []
    spec = mujoco.MjSpec.from_file(str(path))
    actuators = []
    for index, motor in enumerate(spec.actuators):
        drives_joint = motor.trntype == mujoco.mjtTrn.mjTRN_JOINT
        actuator = Actuator(
            name=motor.name or f"actuator_{index}",
            joint=motor.target if drives_joint else "",
            properties=_properties(motor),
        )
        actuators.append(actuator)
    return actuators


def _properties(motor: mujoco.MjsActuator) -> ActuatorProperties:
    # A position servo has the bias −kp q − kv q'.
    kp = max(-motor.biasprm[1], 0.0)
    kv = max(-motor.biasprm[2], 0.0)
    return ActuatorProperties(
        control_limited=_is_limited(motor.ctrllimited, motor.ctrlrange),
        force_limited=_is_limited(motor.forcelimited, motor.forcerange),
        kp=kp,
        kv=kv,
        lower_control_limit=motor.ctrlrange[0],
        lower_force_limit=motor.forcerange[0],
        # Torque of a control of 1.
        motor_effort=motor.gear[0],
        upper_control_limit=motor.ctrlrange[1],
        upper_force_limit=motor.forcerange[1],
    )


def _is_limited(flag: int, limits: np.ndarray) -> bool:
    if flag == mujoco.mjtLimited.mjLIMITED_AUTO:
        return bool(limits[0] < limits[1])
    return flag == mujoco.mjtLimited.mjLIMITED_TRUE
