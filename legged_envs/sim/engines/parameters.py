"""The fields of a MuJoCo model that hold the parameters of a robot."""

from dataclasses import dataclass

from torch import Tensor

from legged_envs.sim.engines.arrays import ALL
from legged_envs.sim.robot_view import RobotView

MODEL_FIELDS = (
    "geom_friction",
    "body_mass",
    "body_ipos",
    "dof_armature",
    "actuator_gainprm",
    "actuator_biasprm",
)
"""Fields of ``MjModel`` that parameters set."""
CHANGES_CONSTANTS = ("body_mass", "com", "armature")
"""Parameters that constants of the model depend on: ``mj_setConst`` must follow."""


@dataclass(frozen=True, eq=False)
class ModelField:
    """The place of a parameter in a field of ``MjModel`` with a first dimension of environments."""

    name: str
    """Name of the field, one of `MODEL_FIELDS`."""
    part: tuple[slice | int, ...]
    """Index of the parameter in the field."""
    sign: float = 1.0
    """Sign of the parameter in the field: MuJoCo's bias −kp q − kd q̇ has negative gains."""
    joints: Tensor | None = None
    """Joints of which the field holds the parameter, (num_joints,) bool; None: all."""


def find_model_fields(
    view: RobotView, has_servo: Tensor, follows_velocity: Tensor
) -> dict[str, tuple[ModelField, ...]]:
    """Return the fields that hold each parameter of a robot.

    The first field of a parameter holds it for every joint and is the one that is read.

    Args:
        view: The robot in the model.
        has_servo: Joints with a position actuator, (num_joints,) bool.
        follows_velocity: Joints with a velocity actuator, (num_joints,) bool.
    """
    # MuJoCo's actuator force is gainprm[0] u + biasprm[0] + biasprm[1] q + biasprm[2] q̇.
    gain = (ALL, view.actuators, 0)
    bias_of_position = (ALL, view.actuators, 1)
    bias_of_velocity = (ALL, view.actuators, 2)
    return {
        # Sliding friction is the first of three, of all shapes from the first that collides.
        "friction": (ModelField("geom_friction", (ALL, view.geoms, 0)),),
        "body_mass": (ModelField("body_mass", (ALL, view.bodies)),),
        "com": (ModelField("body_ipos", (ALL, view.bodies)),),
        "armature": (ModelField("dof_armature", (ALL, view.joint_qvel)),),
        "kp": (
            ModelField("actuator_biasprm", bias_of_position, sign=-1.0),
            ModelField("actuator_gainprm", gain, joints=has_servo),
        ),
        "kd": (
            ModelField("actuator_biasprm", bias_of_velocity, sign=-1.0),
            ModelField("actuator_gainprm", gain, joints=follows_velocity),
        ),
    }
