"""Enumerations and numbers of `isaacgym.gymapi`.

The numbers are the same as in Isaac Gym, because codebases write some of them as numbers. Keys have
the numbers of GLFW.
"""

from enum import IntEnum

from legged_envs.compat.isaac_gym.keys import KeyboardInput


class SimType(IntEnum):
    """Physics engine."""

    SIM_PHYSX = 0
    SIM_FLEX = 1


class UpAxis(IntEnum):
    """Axis that points up. Accepted without effect: the gravity decides."""

    UP_AXIS_Y = 0
    UP_AXIS_Z = 1


class ContactCollection(IntEnum):
    """Substeps with contacts that are collected. Accepted without effect."""

    CC_NEVER = 0
    CC_LAST_SUBSTEP = 1
    CC_ALL_SUBSTEPS = 2


class CoordinateSpace(IntEnum):
    """Frame of a force that is applied to a body."""

    ENV_SPACE = 0
    LOCAL_SPACE = 1
    GLOBAL_SPACE = 2


class IndexDomain(IntEnum):
    """Arrays in which an index counts: indices of an actor, of an environment or of all."""

    DOMAIN_ACTOR = 0
    DOMAIN_ENV = 1
    DOMAIN_SIM = 2


class DofDriveMode(IntEnum):
    """How a joint is driven."""

    DOF_MODE_NONE = 0
    DOF_MODE_POS = 1
    DOF_MODE_VEL = 2
    DOF_MODE_EFFORT = 3


class DofType(IntEnum):
    """Kind of motion of a degree of freedom."""

    DOF_INVALID = 0
    DOF_ROTATION = 1
    DOF_TRANSLATION = 2


class JointType(IntEnum):
    """Kind of a joint."""

    JOINT_INVALID = 0
    JOINT_FIXED = 1
    JOINT_REVOLUTE = 2
    JOINT_PRISMATIC = 3
    JOINT_BALL = 4
    JOINT_PLANAR = 5
    JOINT_FLOATING = 6


class ImageType(IntEnum):
    """Contents of the pixels of a picture."""

    IMAGE_COLOR = 0
    IMAGE_DEPTH = 1
    IMAGE_SEGMENTATION = 2
    IMAGE_OPTICAL_FLOW = 3


class CameraFollowMode(IntEnum):
    """Motion that a camera follows when it is attached to a body."""

    FOLLOW_POSITION = 0
    FOLLOW_TRANSFORM = 1


class MeshType(IntEnum):
    """Shapes of a body of which a color is set."""

    MESH_NONE = 0
    MESH_COLLISION = 1
    MESH_VISUAL = 2
    MESH_VISUAL_AND_COLLISION = 3


class MeshNormalMode(IntEnum):
    """Where the normals of meshes come from. Accepted without effect."""

    FROM_ASSET = 0
    COMPUTE_PER_VERTEX = 1
    COMPUTE_PER_FACE = 2


class StateFlag(IntEnum):
    """Parts of a state that are read or written."""

    STATE_NONE = 0
    STATE_POS = 1
    STATE_VEL = 2
    STATE_ALL = 3


class TransformAxesFlag(IntEnum):
    """Bits of the axes of a transform."""

    AXIS_NONE = 0
    AXIS_X = 1
    AXIS_Y = 2
    AXIS_Z = 4
    AXIS_TRANSLATION = 7
    AXIS_TWIST = 8
    AXIS_SWING_1 = 16
    AXIS_SWING_2 = 32
    AXIS_ROTATION = 56
    AXIS_ALL = 63


class RigidBodyFlag(IntEnum):
    """Bits of the flags of a body."""

    RIGID_BODY_NONE = 0
    RIGID_BODY_DISABLE_GRAVITY = 1
    RIGID_BODY_DISABLE_SIMULATION = 2
    RIGID_BODY_ENABLE_GYROSCOPIC_FORCES = 4


class MouseInput(IntEnum):
    """Buttons and moves of the mouse. MuJoCo's window keeps them for its camera."""

    MOUSE_LEFT_BUTTON = 0
    MOUSE_RIGHT_BUTTON = 1
    MOUSE_MIDDLE_BUTTON = 2
    MOUSE_FORWARD_BUTTON = 3
    MOUSE_BACK_BUTTON = 4
    MOUSE_SCROLL_RIGHT = 5
    MOUSE_SCROLL_LEFT = 6
    MOUSE_SCROLL_UP = 7
    MOUSE_SCROLL_DOWN = 8
    MOUSE_MOVE_RIGHT = 9
    MOUSE_MOVE_LEFT = 10
    MOUSE_MOVE_UP = 11
    MOUSE_MOVE_DOWN = 12


class Limit(IntEnum):
    """Numbers with a name that belong to no enumeration."""

    INVALID_HANDLE = -1
    DEFAULT_VIEWER_WIDTH = 1600
    DEFAULT_VIEWER_HEIGHT = 900


ENUMERATIONS: tuple[type[IntEnum], ...] = (
    SimType,
    UpAxis,
    ContactCollection,
    CoordinateSpace,
    IndexDomain,
    DofDriveMode,
    DofType,
    JointType,
    ImageType,
    CameraFollowMode,
    MeshType,
    MeshNormalMode,
    StateFlag,
    TransformAxesFlag,
    RigidBodyFlag,
    MouseInput,
    KeyboardInput,
    Limit,
)
"""Enumerations with members that `gymapi` has under their own names."""


def list_members() -> list[str]:
    """Return the names of the members of all enumerations."""
    names: list[str] = []
    for enumeration in ENUMERATIONS:
        names.extend(enumeration.__members__)
    return names


def find_member(name: str) -> IntEnum | None:
    """Return the member of an enumeration with a name, or None if there is none."""
    for enumeration in ENUMERATIONS:
        if name in enumeration.__members__:
            return enumeration[name]
    return None
