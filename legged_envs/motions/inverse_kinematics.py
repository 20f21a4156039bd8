"""Solves the joints of a robot for the goals of its parts, frame by frame, with mink."""

from collections.abc import Sequence

import mink
import numpy as np

from legged_envs.motions.arm_tasks import (
    DAMPING,
    ArmTask,
    hand_frame,
    limb_velocities,
    model_to_solve,
)
from legged_envs.motions.goals import Goals
from legged_envs.motions.limbs import Limb
from legged_envs.robots import RobotCfg

FOOT_COST = 20.0
"""Cost of an error of a foot's position, 1/m. Feet come first: they must not slip."""
FOOT_TURN_COST = 4.0
"""Cost of an error of a foot's orientation, 1/rad."""
BASE_COST = 2.0
"""Cost of an error of the base's position, 1/m. It gives way where a leg does not reach."""
BASE_TURN_COST = 1.0
"""Cost of an error of the base's orientation, 1/rad."""
TORSO_COST = 0.5
"""Cost of an error of the torso's orientation, 1/rad."""
ARM_COST = 1.0
"""Cost of an error of elbows and hands, 1/m."""
HAND_TURN_COST = 0.1
"""Cost of an error of a hand's orientation, 1/rad."""
KNEE_COST = 0.1
"""Cost of an error of a knee, 1/m. It only chooses between the ways to bend a leg."""
REST_COST = 1e-3
"""Cost of the distance from the default pose, 1/rad. It decides what nothing else decides."""
SPINE_COST = 0.05
"""Cost of the distance from the default pose of joints of no limb, 1/rad. A waist between base and
legs would turn for knees that a leg of other proportions does not reach."""
FIRST_ITERATIONS = 200
"""Iterations for the first frame."""
ITERATIONS = 12
"""Most iterations for each later frame."""
CONVERGED = 1e-6
"""Largest change of a coordinate in the last iteration, m and rad."""


class FrameSolver:
    """Solves one frame after another, each from the one before.

    Args:
        goals: Where the parts should be.
        robot: The robot.
        limbs: Its limbs by role.
    """

    def __init__(self, goals: Goals, robot: RobotCfg, limbs: dict[str, Limb]):
        self.goals = goals
        """Where the parts should be."""
        self.robot = robot
        """The robot."""
        self.limbs = limbs
        """Limbs by role."""
        self.model = model_to_solve(robot, limbs)
        """Model of the robot, with a site at each hand that is not the origin of a body, and with
        knees that bend to one side."""
        self.configuration = mink.Configuration(self.model)
        """Present coordinates of the robot."""
        self.base = _task(robot.base_body, BASE_COST, BASE_TURN_COST)
        """Task of the base."""
        rest_costs = np.full(self.model.nv, SPINE_COST)
        for limb in limbs.values():
            rest_costs[limb_velocities(self.model, limb)] = REST_COST
        self.posture = mink.PostureTask(self.model, cost=rest_costs)
        """Task of the default pose."""
        self.feet: dict[str, mink.FrameTask] = {}
        """Role of a leg → task of its foot."""
        self.parts: dict[str, tuple[mink.FrameTask, ...]] = {}
        """Role of a limb → tasks of its middle and, for an arm, its end."""
        self.turns: dict[str, mink.FrameTask] = {}
        """Name of a body → task of only its orientation."""
        for role, limb in limbs.items():
            if role in goals.feet:
                turn = FOOT_TURN_COST if limb.end in goals.quats else 0.0
                self.feet[role] = _task(limb.end, FOOT_COST, turn)
                self.parts[role] = (_task(limb.middle, KNEE_COST, 0.0),)
            else:
                turn = HAND_TURN_COST if limb.end in goals.quats else 0.0
                self.parts[role] = (
                    ArmTask(self.model, limb, limb.middle, "body", ARM_COST, 0.0),
                    ArmTask(self.model, limb, *hand_frame(limb), ARM_COST, turn),
                )
        ends = {limb.end for limb in limbs.values()}
        for body in goals.quats:
            if body not in ends:
                self.turns[body] = _task(body, 0.0, TORSO_COST)
        low, high = self.model.jnt_range[1:].T
        is_free = self.model.jnt_limited[1:] == 0

        self.bounds = (np.where(is_free, -np.inf, low), np.where(is_free, np.inf, high))
        """Lowest and highest position of each joint, rad. Shapes: (J,)."""
        speeds = dict(zip(robot.joint_names, robot.velocity_limits, strict=True))

        self.ranges = mink.ConfigurationLimit(self.model)
        """Limits of the joint positions."""
        self.speeds = mink.VelocityLimit(self.model, speeds)
        """Limits of the joint speeds."""

    def start(self, joint_pos: Sequence[float]) -> None:
        """Put the robot at the goal of the base in the first frame.

        Args:
            joint_pos: Joint positions at the start, rad. Length: J.
        """
        base = [*self.goals.base_pos[0], *self.goals.base_quat[0]]
        self.posture.set_target(np.array([*base, *self.robot.default_joint_pos]))
        self.configuration.update(np.array([*base, *joint_pos]))

    def solve(self, frame: int, duration: float | None) -> np.ndarray:
        """Return the coordinates for a frame.

        Args:
            frame: Number of the frame.
            duration: Time since the frame before, s, in which joints keep to their speed limits.
                None: the frame is the first.

        Returns:
            Shape: (7 + J,).
        """
        number = FIRST_ITERATIONS if duration is None else ITERATIONS
        step = (duration or 1.0) / number
        limits = [self.ranges] if duration is None else [self.ranges, self.speeds]
        self._aim(frame)
        tasks = [self.base, self.posture, *self.feet.values(), *self.turns.values()]
        for part in self.parts.values():
            tasks += part
        for _ in range(number):
            self._aim_limbs(frame)
            velocity = mink.solve_ik(
                self.configuration, tasks, step, solver="daqp", damping=1e-9, limits=limits
            )
            self.configuration.integrate_inplace(velocity, step)
            if abs(velocity).max() * step < CONVERGED:
                break
        pose = self.configuration.q.copy()
        # The solver keeps to ranges up to its tolerance.
        pose[7:] = pose[7:].clip(*self.bounds)
        return pose

    def _aim(self, frame: int) -> None:
        """Set the targets that do not depend on the pose of the robot."""
        goals = self.goals
        self.base.set_target(_pose(goals.base_pos[frame], goals.base_quat[frame]))
        for role, task in self.feet.items():
            quat = self._quat_of(self.limbs[role].end, frame)
            task.set_target(_pose(goals.feet[role][frame], quat))
        for body, task in self.turns.items():
            task.set_target(_pose(np.zeros(3), goals.quats[body][frame]))

    def _aim_limbs(self, frame: int) -> None:
        """Set the targets of knees, elbows and hands, which depend on the start of the limb."""
        for role, tasks in self.parts.items():
            limb = self.limbs[role]
            place = self.configuration.data.body(limb.root).xpos.copy()
            for task, vector in zip(tasks, self.goals.parts[role][frame], strict=False):
                place = place + vector
                task.set_target(_pose(place, self._quat_of(limb.end, frame)))

    def _quat_of(self, body: str, frame: int) -> np.ndarray:
        if body in self.goals.quats:
            quat: np.ndarray = self.goals.quats[body][frame]
            return quat
        return np.array([1.0, 0.0, 0.0, 0.0])


def solve_frames(
    goals: Goals, robot: RobotCfg, limbs: dict[str, Limb], frame_rate: float, loop: bool
) -> np.ndarray:
    """Return the coordinates of a robot in all frames.

    Args:
        goals: Where the parts should be.
        robot: The robot.
        limbs: Its limbs by role.
        frame_rate: Frames per second.
        loop: True if the last frame is the first one of the next repetition.

    Returns:
        Shape: (T, 7 + J).
    """
    solver = FrameSolver(goals, robot, limbs)
    frames: list[np.ndarray] = []
    joint_pos: Sequence[float] = robot.default_joint_pos
    # What nothing decides depends on the frame before: a loop is begun again from its end.
    for _ in range(2 if loop else 1):
        solver.start(joint_pos)
        frames = [solver.solve(0, None)]
        for frame in range(1, len(goals.base_pos)):
            frames.append(solver.solve(frame, 1.0 / frame_rate))
        joint_pos = frames[-1][7:].tolist()
    return np.array(frames)


def _task(body: str, position: float, orientation: float) -> mink.FrameTask:
    return mink.FrameTask(
        body,
        "body",
        position_cost=position,
        orientation_cost=orientation,
        lm_damping=DAMPING,
    )


def _pose(position: np.ndarray, quat: np.ndarray) -> mink.SE3:
    return mink.SE3(np.concatenate((quat, position)))
