"""How a robot lifts its feet, from its model."""

from functools import lru_cache

import mujoco
import numpy as np

from legged_envs.robots import RobotCfg

_STEPS, _GAIN, _DAMPING = 200, 0.5, 1e-4


@lru_cache
def lifted(robot: RobotCfg, height: float) -> np.ndarray:
    """How far from the default pose the joints of each leg lift its foot by ``height``, m, straight up, and keep it
    level where they can, rad: the least change, by damped least squares. Shape: (num_feet, num_joints). ValueError if a
    leg is too short for that."""
    model = mujoco.MjModel.from_xml_path(str(robot.path))
    data, moved = mujoco.MjData(model), [kind == "position" for kind in robot.actuators]
    joints = [model.joint(name) for name, is_moved in zip(robot.joint_names, moved, strict=True) if is_moved]
    position, velocity = (np.array([getattr(joint, kind)[0] for joint in joints]) for kind in ("qposadr", "dofadr"))
    default = np.array(robot.default_joint_pos)[moved]
    result, jacobian = np.zeros((len(robot.foot_names), robot.num_joints)), np.zeros((6, model.nv))
    for foot, name in enumerate(robot.foot_names):
        body = data.body(name)
        for level in (0.3, 0.0):  # m: what an error of 1 rad counts as
            data.qpos[position] = default
            mujoco.mj_kinematics(model, data)
            target, upright = body.xpos + (0.0, 0.0, height), body.xmat.reshape(3, 3).copy()
            for _ in range(_STEPS):
                mujoco.mj_comPos(model, data)
                mujoco.mj_jacBody(model, data, jacobian[:3], jacobian[3:], body.id)
                turn = 0.5 * np.cross(body.xmat.reshape(3, 3), upright, axis=0).sum(1)
                leg = jacobian[:, velocity] * np.repeat((1.0, level), 3)[:, None]
                error = np.linalg.solve(leg @ leg.T + _DAMPING * np.eye(6), [*(target - body.xpos), *(level * turn)])
                data.qpos[position] += _GAIN * leg.T @ error
                mujoco.mj_kinematics(model, data)
            if abs(body.xpos - target).max() < 0.1 * height:
                break
        else:
            raise ValueError(f"robot {robot.name!r} cannot lift {name!r} by {height:g} m")
        result[foot, moved] = data.qpos[position] - default
    return result
