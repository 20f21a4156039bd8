"""Joint positions that put a robot's feet where they shall be, solved leg by leg by Newton's method."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from legged_envs.motions.kinematics import robot_model
from legged_envs.motions.motion import MotionError
from legged_envs.robots import RobotCfg

_CONVERGED = 1e-10
"""Largest error of a solved foot, m and rad."""
_MAX_ITERATIONS = 100
_DAMPING = 1e-8
"""Added to the squared Jacobian: keeps the step finite where a leg is straight."""
_LONGEST_STEP = 0.3
"""Largest change of a joint in one iteration, rad."""


class FootIK:
    """Solves for legs of three joints (foot position) or six (foot position and orientation).

    Joints that move no foot stay as they are given: arms and waist follow their own plan.
    """

    def __init__(self, robot: RobotCfg):
        self.robot = robot
        self._model = robot_model(robot)
        self._data = mujoco.MjData(self._model)
        self._feet = [self._model.body(name).id for name in robot.foot_names]
        legs = [self._joints_above(foot) for foot in self._feet]
        self._rows = len(legs[0])
        if self._rows not in (3, 6) or any(len(leg) != self._rows for leg in legs):
            raise ValueError(
                f"robot {robot.name!r} has legs of {[len(leg) for leg in legs]} joints, expected all 3 or all 6"
            )
        self._legs = np.array(legs)
        self._dofs = self._model.jnt_dofadr[self._legs]
        self._qpos = self._model.jnt_qposadr[self._legs]

    def solve(
        self,
        root_pos_w: torch.Tensor,
        root_quat_w: torch.Tensor,
        foot_pos_w: torch.Tensor,
        foot_quat_w: torch.Tensor,
        joint_pos: torch.Tensor,
    ) -> torch.Tensor:
        """Joint positions, float64. Shape: (T, num_joints).

        Args:
            root_pos_w: Shape: (T, 3).
            root_quat_w: Shape: (T, 4).
            foot_pos_w: Wanted foot origins. Shape: (T, num_feet, 3).
            foot_quat_w: Wanted foot orientations, not used for legs of three joints. Shape: (T, num_feet, 4).
            joint_pos: Positions of the other joints; those of the legs are where the first frame starts its search,
                later frames start at the one before. Shape: (T, num_joints).

        Raises:
            MotionError: A foot that the leg does not reach.
        """
        roots = torch.cat((root_pos_w, root_quat_w), dim=1).numpy()
        solved = joint_pos.clone().numpy()
        for i, (root, pos, quat) in enumerate(
            zip(roots, foot_pos_w.numpy(), foot_quat_w.numpy(), strict=True)
        ):
            self._data.qpos[:7], self._data.qpos[7:] = root, solved[i]
            if i:
                self._data.qpos[self._qpos] = solved[i - 1][self._qpos - 7]
            self._solve_frame(i, pos, quat)
            solved[i] = self._data.qpos[7:]
        return torch.from_numpy(solved)

    def _solve_frame(self, frame: int, pos: np.ndarray, quat: np.ndarray) -> None:
        for _ in range(_MAX_ITERATIONS):
            mujoco.mj_kinematics(self._model, self._data)
            mujoco.mj_comPos(self._model, self._data)
            error, jacobian = self._error(pos, quat), self._jacobian()
            if abs(error).max() < _CONVERGED:
                return
            squared = jacobian @ jacobian.swapaxes(1, 2) + _DAMPING * np.eye(self._rows)
            step = (jacobian.swapaxes(1, 2) @ np.linalg.solve(squared, error[..., None]))[..., 0]
            self._data.qpos[self._qpos] += step.clip(-_LONGEST_STEP, _LONGEST_STEP)
        foot = int(abs(error).max(1).argmax())
        raise MotionError(
            f"robot {self.robot.name!r}: frame {frame}: {self.robot.foot_names[foot]!r} does not reach "
            f"{pos[foot].round(3).tolist()}, it stays {abs(error[foot, :3]).max():.2g} m away"
        )

    def _error(self, pos: np.ndarray, quat: np.ndarray) -> np.ndarray:
        """Wanted minus present pose: position, then rotation vector in world. Shape: (num_feet, rows)."""
        error = np.zeros((len(self._feet), self._rows))
        error[:, :3] = pos - self._data.xpos[self._feet]
        if self._rows == 6:
            for row, wanted, present in zip(error, quat, self._data.xquat[self._feet], strict=True):
                mujoco.mju_subQuat(row[3:], wanted, present)  # in the foot's frame
                row[3:] = self._rotated(row[3:], present)
        return error

    @staticmethod
    def _rotated(vector: np.ndarray, quat: np.ndarray) -> np.ndarray:
        rotated = np.zeros(3)
        mujoco.mju_rotVecQuat(rotated, vector, quat)
        return rotated

    def _jacobian(self) -> np.ndarray:
        """Of each foot's pose in its own leg's joints. Shape: (num_feet, rows, rows)."""
        both = np.zeros((2, 3, self._model.nv))
        jacobian = np.zeros((len(self._feet), self._rows, self._rows))
        for leg, foot, dofs in zip(jacobian, self._feet, self._dofs, strict=True):
            mujoco.mj_jacBody(self._model, self._data, both[0], both[1], foot)
            leg[:] = both.reshape(6, -1)[: self._rows, dofs]
        return jacobian

    def _joints_above(self, body: int) -> list[int]:
        """The joints between the base and ``body``, the base's first."""
        joints: list[int] = []
        while self._model.body(body).name != self.robot.base_body:
            first = self._model.body_jntadr[body]
            joints = [*range(first, first + self._model.body_jntnum[body]), *joints]
            body = self._model.body_parentid[body]
        return joints
