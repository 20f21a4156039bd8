"""Joint positions that put a robot's feet in their places, solved leg by leg by Newton's method."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from legged_envs.motions.kinematics import robot_model
from legged_envs.motions.motion import MotionError
from legged_envs.robots import RobotCfg

TOLERANCE = 1e-10
"""Largest error of a solved foot, m and rad."""
MAX_ITERATIONS = 100
"""Most iterations for a frame."""
DAMPING = 1e-8
"""Added to the squared Jacobian: keeps the step finite where a leg is straight."""
LONGEST_STEP = 0.3
"""Largest change of a joint in one iteration, rad."""


class FootIK:
    """Solves for legs of three joints (foot position) or six (foot position and orientation).

    Joints that move no foot stay as they are given: arms and waist follow their own plan.

    Args:
        robot: The robot.

    Raises:
        ValueError: If the legs do not all have three or all have six joints.
    """

    def __init__(self, robot: RobotCfg):
        self.robot = robot
        """The robot."""
        self._model = robot_model(robot)
        self._data = mujoco.MjData(self._model)
        self._feet = [self._model.body(name).id for name in robot.foot_names]
        legs = [self._joints_above(foot) for foot in self._feet]
        sizes = [len(leg) for leg in legs]
        if sizes[0] not in (3, 6) or len(set(sizes)) > 1:
            raise ValueError(
                f"robot {robot.name!r} has legs of {sizes} joints, expected all 3 or all 6"
            )
        self._num_rows = sizes[0]
        joints = np.array(legs)  # (num_feet, rows)
        self._dofs = self._model.jnt_dofadr[joints]
        self._qpos = self._model.jnt_qposadr[joints]

    def solve(
        self,
        root_pos_w: torch.Tensor,
        root_quat_w: torch.Tensor,
        foot_pos_w: torch.Tensor,
        foot_quat_w: torch.Tensor,
        joint_pos: torch.Tensor,
    ) -> torch.Tensor:
        """Return joint positions that put the feet in their places.

        Args:
            root_pos_w: Positions of the base, m. Shape: (T, 3).
            root_quat_w: Orientations of the base. Shape: (T, 4).
            foot_pos_w: Wanted foot origins, m. Shape: (T, num_feet, 3).
            foot_quat_w: Wanted foot orientations, not used for legs of three joints.
                Shape: (T, num_feet, 4).
            joint_pos: Positions of the other joints. Those of the legs are where the first frame
                starts its search; later frames start at the one before. Shape: (T, num_joints).

        Returns:
            Shape: (T, num_joints), float64.

        Raises:
            MotionError: If a leg does not reach its foot.
        """
        roots = torch.cat((root_pos_w, root_quat_w), dim=1).numpy()
        positions = foot_pos_w.numpy()
        orientations = foot_quat_w.numpy()
        solved = joint_pos.clone().numpy()
        for i in range(len(roots)):
            self._data.qpos[:7] = roots[i]
            self._data.qpos[7:] = solved[i]
            if i > 0:
                self._data.qpos[self._qpos] = solved[i - 1][self._qpos - 7]
            self._solve_frame(i, positions[i], orientations[i])
            solved[i] = self._data.qpos[7:]
        return torch.from_numpy(solved)

    def _solve_frame(self, frame: int, pos: np.ndarray, quat: np.ndarray) -> None:
        """Move the legs until the feet are at ``pos`` (num_feet, 3) and ``quat`` (num_feet, 4)."""
        for _ in range(MAX_ITERATIONS):
            mujoco.mj_kinematics(self._model, self._data)
            mujoco.mj_comPos(self._model, self._data)  # the Jacobian needs it
            error = self._error(pos, quat)
            if abs(error).max() < TOLERANCE:
                return
            step = self._newton_step(error)
            self._data.qpos[self._qpos] += step.clip(-LONGEST_STEP, LONGEST_STEP)
        foot = int(abs(error).max(1).argmax())
        distance = abs(error[foot, :3]).max()
        raise MotionError(
            f"robot {self.robot.name!r}: frame {frame}: {self.robot.foot_names[foot]!r} does not "
            f"reach {pos[foot].round(3).tolist()}, it stays {distance:.2g} m away"
        )

    def _newton_step(self, error: np.ndarray) -> np.ndarray:
        """Return the change of each leg's joints that removes ``error``, damped least squares."""
        jacobian = self._jacobian()
        transposed = jacobian.swapaxes(1, 2)
        squared = jacobian @ transposed + DAMPING * np.eye(self._num_rows)
        solution = np.linalg.solve(squared, error[..., None])
        step = transposed @ solution
        return step[..., 0]

    def _error(self, pos: np.ndarray, quat: np.ndarray) -> np.ndarray:
        """Return wanted minus present poses: positions, then rotation vectors in the world.

        Shape: (num_feet, rows).
        """
        error = np.zeros((len(self._feet), self._num_rows))
        error[:, :3] = pos - self._data.xpos[self._feet]
        if self._num_rows == 6:
            present = self._data.xquat[self._feet]
            for i, row in enumerate(error):
                mujoco.mju_subQuat(row[3:], quat[i], present[i])  # in the foot's frame
                row[3:] = _rotated(row[3:], present[i])
        return error

    def _jacobian(self) -> np.ndarray:
        """Return the Jacobian of each foot's pose by the joints of its leg.

        Shape: (num_feet, rows, rows).
        """
        both = np.zeros((2, 3, self._model.nv))  # of position, then of rotation
        jacobian = np.zeros((len(self._feet), self._num_rows, self._num_rows))
        for i, foot in enumerate(self._feet):
            mujoco.mj_jacBody(self._model, self._data, both[0], both[1], foot)
            rows = both.reshape(6, -1)[: self._num_rows]
            jacobian[i] = rows[:, self._dofs[i]]
        return jacobian

    def _joints_above(self, body: int) -> list[int]:
        """Return the joints between the base and ``body``, the base's first."""
        joints: list[int] = []
        while self._model.body(body).name != self.robot.base_body:
            first = self._model.body_jntadr[body]
            end = first + self._model.body_jntnum[body]
            joints = [*range(first, end), *joints]
            body = self._model.body_parentid[body]
        return joints


def _rotated(vector: np.ndarray, quat: np.ndarray) -> np.ndarray:
    rotated = np.zeros(3)
    mujoco.mju_rotVecQuat(rotated, vector, quat)
    return rotated
