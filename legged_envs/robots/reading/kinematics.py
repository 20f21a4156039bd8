"""How a robot lifts its feet, from its model."""

from functools import lru_cache

import mujoco
import numpy as np

from legged_envs.robots import RobotCfg
from legged_envs.robots.reading.draft import way

_STEPS, _GAIN, _DAMPING = 200, 0.5, 1e-4


@lru_cache
def in_legs(robot: RobotCfg) -> tuple[bool, ...]:
    """Whether each joint is on the way from the base to a foot: those of arms and heads are not."""
    model = mujoco.MjModel.from_xml_path(str(robot.path))
    legs = {body for name in robot.foot_names for body in way(model, model.body(name).id)}
    return tuple(model.joint(name).bodyid[0] in legs for name in robot.joint_names)


@lru_cache
def lifted(robot: RobotCfg, height: float) -> np.ndarray:
    """How far from the default pose the joints of each leg lift its foot by ``height``, m, straight up, and keep it
    level where they can, rad: the least change, by damped least squares. Joints that move other feet too, and those
    that are not driven to positions, stay. Shape: (num_feet, num_joints). ValueError if a leg is too short for that."""
    model = mujoco.MjModel.from_xml_path(str(robot.path))
    data, legs = (
        mujoco.MjData(model),
        [{*way(model, model.body(name).id)} for name in robot.foot_names],
    )
    joints = [model.joint(name) for name in robot.joint_names]
    default = {
        joint.qposadr[0]: value
        for joint, value in zip(joints, robot.default_joint_pos, strict=True)
    }
    result, jacobian = np.zeros((len(legs), robot.num_joints)), np.zeros((6, model.nv))
    for foot, name in enumerate(robot.foot_names):
        body, own = data.body(name), legs[foot].difference(*legs[:foot], *legs[foot + 1 :])
        moved = [
            i
            for i, kind in enumerate(robot.actuators)
            if kind == "position" and joints[i].bodyid[0] in own
        ]
        position, velocity = (
            np.array([getattr(joints[i], at)[0] for i in moved]) for at in ("qposadr", "dofadr")
        )
        for level in (0.3, 0.0):  # m: what an error of 1 rad counts as
            data.qpos[list(default)] = list(default.values())
            mujoco.mj_kinematics(model, data)
            target, upright = (
                body.xpos + np.array((0.0, 0.0, height)),
                body.xmat.reshape(3, 3).copy(),
            )
            for _ in range(_STEPS):
                mujoco.mj_comPos(model, data)
                mujoco.mj_jacBody(model, data, jacobian[:3], jacobian[3:], body.id)
                turn = 0.5 * np.cross(body.xmat.reshape(3, 3), upright, axis=0).sum(1)
                leg = jacobian[:, velocity] * np.repeat((1.0, level), 3)[:, None]
                error = np.linalg.solve(
                    leg @ leg.T + _DAMPING * np.eye(6), [*(target - body.xpos), *(level * turn)]
                )
                data.qpos[position] += _GAIN * leg.T @ error
                mujoco.mj_kinematics(model, data)
            if abs(body.xpos - target).max() <= 0.1 * height:
                break
        else:
            raise ValueError(f"robot {robot.name!r} cannot lift {name!r} by {height:g} m")
        result[foot, moved] = [data.qpos[at] - default[at] for at in position]
    return result
