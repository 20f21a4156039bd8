"""Orders in which motion files number the joints of a robot."""

from collections.abc import Collection, Sequence

from legged_envs.checks import check_known
from legged_envs.motion_reading import MotionReading
from legged_envs.motions.kinematics import robot_model
from legged_envs.robots import G1, G1_29, RobotCfg

G1_LIMB_BY_LIMB = G1_29.joint_names
"""Joint order of the G1, depth first, as in MJCF and URDF: Unitree's SDK, its LAFAN1 retargeting,
mjlab and this package."""


def _order_breadth_first(joints: Sequence[str], levels: Sequence[int]) -> tuple[str, ...]:
    """Return ``joints`` sorted by their ``levels``, joints of one level in their present order."""
    pairs = zip(levels, range(len(joints)), strict=True)
    return tuple(joints[index] for _, index in sorted(pairs))


# Number of joints between the base and each joint. The arms continue from the three joints of the
# waist.
_LEG_LEVELS = tuple(range(6))
_WAIST_LEVELS = tuple(range(3))
_ARM_LEVELS = tuple(range(3, 10))
_G1_LEVELS = _LEG_LEVELS + _LEG_LEVELS + _WAIST_LEVELS + _ARM_LEVELS + _ARM_LEVELS

G1_LEVEL_BY_LEVEL = _order_breadth_first(G1_LIMB_BY_LIMB, _G1_LEVELS)
"""Joint order of the G1, breadth first, as PhysX numbers joints: Isaac Lab, and the BeyondMimic
files that were made with it."""

G1_WITHOUT_WRISTS = tuple(joint for joint in G1_LIMB_BY_LIMB if "wrist" not in joint)
"""The 23 joints of the G1 with locked wrists, as ASAP and PBHC number them."""


def known_orders(robot: RobotCfg) -> dict[str, tuple[str, ...]]:
    """Return the orders of a robot's joints that programs write, by the words that name them.

    ``limbs`` is the order of the robot's model, depth first. ``levels`` is breadth first, as PhysX
    numbers joints. ``limbs-by-name`` and ``levels-by-name`` are the same with the limbs in the
    order of their names: models of one quadruped start with the left or with the right leg.
    """
    level_of = _levels(robot)
    joints = list(robot.joint_names)
    # The joint of the lowest level starts a limb; the others follow it.
    limbs: list[list[str]] = []
    for joint in joints:
        if level_of[joint] == 0 or not limbs:
            limbs.append([])
        limbs[-1].append(joint)
    by_name: list[str] = []
    for limb in sorted(limbs):
        by_name += limb
    return {
        "limbs": tuple(joints),
        "levels": _order_breadth_first(joints, [level_of[joint] for joint in joints]),
        "limbs-by-name": tuple(by_name),
        "levels-by-name": _order_breadth_first(by_name, [level_of[joint] for joint in by_name]),
    }


def usual_joints(widths: Collection[int], robot: RobotCfg) -> tuple[str, ...]:
    """Return the names of the joint columns of a file without names, by their number.

    Args:
        widths: Numbers of joint columns that the file can have.
        robot: The robot. Its own joints are returned if no known order has one of these numbers.
    """
    for joints in (robot.joint_names, G1_LIMB_BY_LIMB, G1_WITHOUT_WRISTS, G1.joint_names):
        if len(joints) in widths:
            return joints
    return robot.joint_names


def named_order(order: Sequence[str], robot: RobotCfg) -> tuple[str, ...]:
    """Return the joints that ``MotionReading.order`` names.

    Args:
        order: Names of joints, or one word that names a known order.
        robot: The robot.

    Raises:
        ValueError: The only word is neither a known order nor a joint of the robot.
    """
    if len(order) != 1 or order[0] in robot.joint_names:
        return tuple(order)
    orders = known_orders(robot)
    check_known("--motion.order: unknown order", order, orders, "orders, or all joints by name")
    return orders[order[0]]


def column_joints(
    reading: MotionReading, names: Sequence[str], widths: Collection[int], robot: RobotCfg
) -> tuple[str, ...]:
    """Return the names of the joint columns: names of the user, of the file, or usual names.

    Args:
        reading: Options of the user.
        names: Names in the file. Empty: it has none.
        widths: Numbers of joint columns that a file without names can have.
        robot: The robot.

    Raises:
        ValueError: The user names an order that is not known.
    """
    if reading.order:
        return named_order(reading.order, robot)
    return tuple(names) or usual_joints(widths, robot)


def _levels(robot: RobotCfg) -> dict[str, int]:
    """Return the number of joints between the base and each joint."""
    model = robot_model(robot)
    levels: dict[str, int] = {}
    level_of_body = {0: -1}
    for body in range(1, model.nbody):
        level = level_of_body[int(model.body_parentid[body])]
        first = int(model.body_jntadr[body])
        for joint in range(first, first + int(model.body_jntnum[body])):
            name = model.joint(joint).name
            # The free joint of the base does not count.
            if name in robot.joint_names:
                level += 1
                levels[name] = level
        level_of_body[body] = level
    return levels
