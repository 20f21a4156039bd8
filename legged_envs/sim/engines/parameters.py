"""The fields of a MuJoCo model that have the parameters of a robot, such as friction and gains."""

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
"""Fields of ``MjModel`` that ``Simulation.set_parameter`` changes in every engine."""
CHANGES_CONSTANTS = ("body_mass", "com", "armature")
"""Parameters on which constants of ``MjModel`` depend, such as the inverse inertias.

After a change of one of them the engine must compute the constants again (``mj_setConst``).
"""


@dataclass(frozen=True, eq=False)
class ModelField:
    """The place of a robot's parameter in a field of ``MjModel``.

    The field has a copy per environment, with the environment as first dimension.
    """

    name: str
    """Name of the field, one of `MODEL_FIELDS` or, on the CPU, of the damping or friction."""
    part: tuple[slice | int, ...]
    """Index of the parameter in the field."""
    sign: float = 1.0
    """Factor of the parameter in the field: −1 in MuJoCo's bias −kp q − kd q̇, otherwise 1."""
    joints: Tensor | None = None
    """True for joints with the parameter in this field. Shape: (num_joints,), bool. None: all
    joints."""


def find_model_fields(
    view: RobotView, has_servo: Tensor, follows_velocity: Tensor
) -> dict[str, tuple[ModelField, ...]]:
    """Return the places in ``MjModel`` of each parameter of a robot, by the parameter's name.

    Parameters are read from their first place, which has the values of all joints. They are written
    to all of their places.

    Args:
        view: Indices of the robot's parts in the model.
        has_servo: True for joints with a position actuator. Shape: (num_joints,), bool.
        follows_velocity: True for joints with a velocity actuator. Shape: (num_joints,), bool.
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
        "joint_damping": (ModelField("dof_damping", (ALL, view.joint_qvel)),),
        "joint_friction": (ModelField("dof_frictionloss", (ALL, view.joint_qvel)),),
        "kp": (
            ModelField("actuator_biasprm", bias_of_position, sign=-1.0),
            ModelField("actuator_gainprm", gain, joints=has_servo),
        ),
        "kd": (
            ModelField("actuator_biasprm", bias_of_velocity, sign=-1.0),
            ModelField("actuator_gainprm", gain, joints=follows_velocity),
        ),
    }
