"""Tasks of mink for the arms of a robot, which leave base and torso alone."""

import mink
import mujoco
import numpy as np

from legged_envs.motions.limbs import Limb
from legged_envs.robots import RobotCfg

DAMPING = 0.1
"""Levenberg-Marquardt damping of each task. Without it, stretched limbs jump."""


class ArmTask(mink.FrameTask):
    """Task of an elbow or a hand, which only the joints of the arm work on.

    The target moves with the shoulder. If the base or the torso could move for an arm that does not
    reach, they would turn away a little in every frame.

    Args:
        model: Model of the robot.
        limb: The arm.
        frame: Name of the frame that has a target.
        kind: Kind of the frame: ``"body"`` or ``"site"``.
        position: Cost of an error of the position, 1/m.
        orientation: Cost of an error of the orientation, 1/rad.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        limb: Limb,
        frame: str,
        kind: str,
        position: float,
        orientation: float,
    ):
        super().__init__(
            frame,
            kind,
            position_cost=position,
            orientation_cost=orientation,
            lm_damping=DAMPING,
        )
        self.is_arm = np.zeros(model.nv)
        """1 for each velocity of a joint of the arm, 0 for the others. Shape: (6 + J,)."""
        self.is_arm[limb_velocities(model, limb)] = 1.0

    def compute_qp_objective(self, configuration: mink.Configuration) -> mink.Objective:
        """Return the objective of this task for the velocities of the arm alone.

        Neither its error nor its damping reaches the other joints.
        """
        whole = super().compute_qp_objective(configuration)
        both = np.outer(self.is_arm, self.is_arm)
        return mink.Objective(whole.H * both, whole.c * self.is_arm)


def model_to_solve(robot: RobotCfg, limbs: dict[str, Limb]) -> mujoco.MjModel:
    """Return the model of a robot with a site, named after its limb, at each hand.

    Knees bend to one side only, the side of the default pose. Some can bend 15° to the other side,
    and a leg that was stretched would stay there.
    """
    spec = mujoco.MjSpec.from_file(str(robot.path))
    default = dict(zip(robot.joint_names, robot.default_joint_pos, strict=True))
    for role, limb in limbs.items():
        if any(limb.hand):
            spec.body(limb.end).add_site(name=role, pos=limb.hand)
        if role.endswith("arm"):
            continue
        for joint in spec.body(limb.middle).joints:
            low, high = joint.range
            if default[joint.name] > 0.0:
                low = max(low, 0.0)
            if default[joint.name] < 0.0:
                high = min(high, 0.0)
            joint.range = [low, high]
    return spec.compile()


def limb_velocities(model: mujoco.MjModel, limb: Limb) -> list[int]:
    """Return the places of a limb's joints, its root's included, in the velocities ``qvel``."""
    indices: list[int] = []
    root = model.body(limb.root).id
    body = model.body(limb.end).id
    # A parent has a smaller number than its children.
    while body >= root:
        first = int(model.body_dofadr[body])
        indices += range(first, first + int(model.body_dofnum[body]))
        body = int(model.body_parentid[body])
    return indices


def hand_frame(limb: Limb) -> tuple[str, str]:
    """Return the name of the frame at the hand, and its kind."""
    if any(limb.hand):
        return limb.role, "site"
    return limb.end, "body"
