"""The motion that a policy imitates, and the observations that show it to the policy.

It is inside an ONNX file of BeyondMimic, which gives it at any `time_step`: joint positions and
velocities, and poses of bodies in the world; or in a file of motions. Here it starts with every
episode, at the place and with the heading of the robot.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from legged_envs import rotation
from legged_envs.motion_reading import MotionReading
from legged_envs.motions.files import load_file
from legged_envs.motions.limbs import torso_of
from legged_envs.motions.resampling import resample
from legged_envs.policy.foreign.networks import TIME_STEP, open_session
from legged_envs.policy.foreign.onnx_limits import load_graph
from legged_envs.robots import RobotCfg

RATE_TOLERANCE = 1e-4
"""Largest relative difference of frame rates that are taken for the same."""

LONGEST = 100_000
"""Largest number of steps of a motion: half an hour."""

MOTION_QUANTITIES = ("motion_joints", "anchor_pos", "anchor_ori")
"""Quantities of policies that imitate a motion."""

OUTPUTS = ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w")
"""Outputs of the file that are read."""


@dataclass(frozen=True)
class ReferenceMotion:
    """A motion, one row for each control step. Joints are in the order of the file."""

    joints: torch.Tensor
    """Positions, then velocities of joints, rad and rad/s. Shape: (steps, 2 · joints)."""
    anchor_pos: torch.Tensor
    """Position of the anchor body in the world, m. Shape: (steps, 3)."""
    anchor_quat: torch.Tensor
    """Orientation of the anchor body (w, x, y, z). Shape: (steps, 4)."""
    anchor: str
    """Name of the anchor body."""


def gives_motion(path: Path) -> bool:
    """Return True if an ONNX file has outputs for the motion that its policy imitates."""
    outputs = [output.name for output in load_graph(path).graph.output]
    return any(name in outputs for name in OUTPUTS)


def read_motion(path: Path, anchor: str, bodies: tuple[str, ...]) -> ReferenceMotion:
    """Read the motion in an ONNX file.

    Args:
        path: ONNX file.
        anchor: Name of the anchor body.
        bodies: Names of the bodies of the motion.

    Raises:
        ValueError: If the file gives no motion, or the anchor is none of its bodies.
    """
    session = open_session(path)
    given = [output.name for output in session.get_outputs()]
    inputs = {each.name: each for each in session.get_inputs()}
    missing = [name for name in OUTPUTS if name not in given]
    if missing or TIME_STEP not in inputs or anchor not in bodies:
        raise ValueError(
            f"{str(path)!r} observes a motion, and gives no {', '.join(missing) or TIME_STEP} or "
            f"no body {anchor!r}: export it with whole_body_tracking"
        )
    feed = {}
    for name, each in inputs.items():
        feed[name] = np.zeros(_shape(each), np.float32)
    joints = []
    anchor_pos = []
    anchor_quat = []
    body = bodies.index(anchor)
    for step in range(_count_steps(path)):
        feed[TIME_STEP] = np.full_like(feed[TIME_STEP], step)
        joint_pos, joint_vel, body_pos, body_quat = session.run(OUTPUTS, feed)
        joints.append(np.concatenate((joint_pos[0], joint_vel[0])))
        anchor_pos.append(body_pos[0, body])
        anchor_quat.append(body_quat[0, body])
    return ReferenceMotion(
        joints=torch.from_numpy(np.stack(joints)),
        anchor_pos=torch.from_numpy(np.stack(anchor_pos)),
        anchor_quat=torch.from_numpy(np.stack(anchor_quat)),
        anchor=anchor,
    )


def motion_of_file(
    file: Path,
    robot: RobotCfg,
    joints: Sequence[str],
    anchor: str | None,
    control_dt: float,
    reading: MotionReading | None = None,
) -> ReferenceMotion:
    """Read the motion of a policy from a file of motions of any known format.

    Args:
        file: File of the motion.
        robot: Robot with all joints of the policy.
        joints: Joints in the order of the policy.
        anchor: Name of the anchor body. None: the body that carries the arms, or the base without
            arms.
        control_dt: Time from one row to the next, s.
        reading: Settings for reading the file. None: the file is complete.

    Raises:
        ValueError: If the file cannot be used, or the robot has no such body.
    """
    motion = load_file(file, robot, reading)
    rate = 1.0 / control_dt
    if abs(motion.frame_rate - rate) > RATE_TOLERANCE * rate:
        motion = resample(motion, robot, rate)
    body = anchor or torso_of(robot) or robot.base_body
    if body not in motion.body_names:
        raise ValueError(
            f"robot {robot.name!r} has no body {body!r}, the anchor of the policy: "
            "name a task of the policy's robot"
        )
    columns = [motion.joint_names.index(name) for name in joints]
    number = motion.body_names.index(body)
    return ReferenceMotion(
        joints=torch.cat((motion.joint_pos[:, columns], motion.joint_vel[:, columns]), dim=1),
        anchor_pos=motion.body_pos_w[:, number],
        anchor_quat=motion.body_quat_w[:, number],
        anchor=body,
    )


def _shape(each: Any) -> list[int]:
    return [size if isinstance(size, int) else 1 for size in each.shape]


def _count_steps(path: Path) -> int:
    """Return the number of rows of the largest table that the file looks up."""
    graph = load_graph(path).graph
    rows = {each.name: each.dims[0] for each in graph.initializer if each.dims}
    steps = 0
    for node in graph.node:
        if node.op_type == "Constant":
            # Tables stand among the weights or, depending on the exporter, as constants.
            for attribute in node.attribute:
                if attribute.t.dims:
                    rows[node.output[0]] = attribute.t.dims[0]
        elif node.op_type == "Identity":
            rows[node.output[0]] = rows.get(node.input[0], 0)
        elif node.op_type == "Gather":
            steps = max(steps, rows.get(node.input[0], 0))
    if not 0 < steps <= LONGEST:
        raise ValueError(
            f"{str(path)!r} has a motion of {steps} steps, but only 1 to {LONGEST} are supported: "
            "export a shorter motion"
        )
    return steps


class MotionTerm:
    """Observation term that shows a motion: `motion_joints`, `anchor_pos` or `anchor_ori`.

    Args:
        motion: The motion.
        kind: Quantity that it shows.
    """

    def __init__(self, motion: ReferenceMotion, kind: str):
        self._motion = motion
        self._kind = kind
        # Of each robot: start and turn of its motion.
        self._place = torch.zeros(0, 3)
        self._turn = torch.zeros(0, 4)

    def __call__(self, env: Any) -> torch.Tensor:
        """Return the observation of each robot. Shape: (num_envs, size)."""
        motion = self._motion
        last = len(motion.joints) - 1
        step = env.episode_steps.long().clamp(max=last).cpu()
        if self._kind == "motion_joints":
            return motion.joints[step].to(env.device)
        body = env.sim.body_ids((motion.anchor,))[0]
        pos = env.sim.body_pos_w[:, body]
        quat = env.sim.body_quat_w[:, body]
        to_anchor = rotation.conjugate(quat)
        starts = env.episode_steps == 0
        self._begin(starts, pos, quat)
        way = motion.anchor_pos[step] - motion.anchor_pos[0]
        reference_pos = way.to(pos)
        turned = motion.anchor_quat[step].to(pos)
        reference_quat = rotation.multiply(self._turn, turned)
        if self._kind == "anchor_pos":
            moved = rotation.rotate(self._turn, reference_pos) + self._place
            return rotation.rotate(to_anchor, moved - pos)
        relative = rotation.multiply(to_anchor, reference_quat)
        x_axis = _axis(relative, 0)
        y_axis = _axis(relative, 1)
        # The first two columns of the rotation matrix, row by row.
        columns = torch.stack((x_axis, y_axis), dim=2)
        return columns.flatten(1)

    def _begin(self, starts: torch.Tensor, pos: torch.Tensor, quat: torch.Tensor) -> None:
        """Start the motion of robots with a new episode at their place and heading."""
        if len(self._place) != len(pos):
            self._place = torch.zeros_like(pos)
            self._turn = torch.zeros_like(quat)
            starts = torch.ones_like(starts)
        first_pos = self._motion.anchor_pos[0].to(pos)
        first_quat = self._motion.anchor_quat[0].to(pos)
        yaw = rotation.heading(quat) - rotation.heading(first_quat)
        turn = rotation.from_yaw(yaw)
        place = pos.clone()
        # The height is measured in the motion, with its ground at 0.
        place[:, 2] = first_pos[2]
        begins = starts[:, None]
        self._place = torch.where(begins, place, self._place)
        self._turn = torch.where(begins, turn, self._turn)


def _axis(quat: torch.Tensor, number: int) -> torch.Tensor:
    unit = torch.zeros(len(quat), 3, dtype=quat.dtype, device=quat.device)
    unit[:, number] = 1.0
    return rotation.rotate(quat, unit)
