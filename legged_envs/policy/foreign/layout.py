"""Order of the numbers in observations and actions, and the mapping from one order to another."""

from collections.abc import Sequence
from dataclasses import dataclass

from legged_envs.policy.metadata import Contract, policy_inputs

QUANTITIES = {
    "command": ("vx", "vy", "wz"),
    "gravity": ("x", "y", "z"),
    "ang_vel": ("x", "y", "z"),
    "lin_vel": ("x", "y", "z"),
    "clock": ("sin", "cos"),
    "anchor_pos": ("x", "y", "z"),
    "anchor_ori": ("xx", "xy", "yx", "yy", "zx", "zy"),
}
"""Quantities without joints → names of their elements, in order."""

JOINT_QUANTITIES = ("joint_pos", "joint_angle", "joint_vel")
"""Quantities with one element for each joint. `joint_angle` is not relative to a default pose."""

Key = tuple[str, int, str]
"""One number of an observation: quantity, age in control steps, name of the element."""


@dataclass(frozen=True)
class Block:
    """Neighbouring numbers of an observation: the elements of one quantity at one time."""

    quantity: str
    """Name of the quantity, as in the contracts of this package."""
    age: int
    """Age of the value in control steps; 0 is the present."""
    elements: tuple[str, ...]
    """Names of the numbers, in order. Those of joint quantities and actions are joints."""


def keys_of(blocks: Sequence[Block]) -> list[Key]:
    """Return the key of each number of an observation, in order."""
    keys = []
    for block in blocks:
        for element in block.elements:
            keys.append((block.quantity, block.age, element))
    return keys


def elements_of(
    quantity: str, joints: Sequence[str], action_joints: Sequence[str], size: int = 0
) -> tuple[str, ...]:
    """Return the names of the elements of a quantity.

    Args:
        quantity: Name of the quantity.
        joints: Joints in the order of joint quantities.
        action_joints: Joint of each action.
        size: Number of elements of a quantity that has any number, such as `height_scan`.
    """
    if quantity in JOINT_QUANTITIES:
        return tuple(joints)
    if quantity == "motion_joints":
        # In the order of the file everywhere: its elements have numbers.
        return tuple(str(number) for number in range(2 * len(joints)))
    if quantity == "height_scan":
        return tuple(str(number) for number in range(size))
    if quantity == "action":
        return tuple(action_joints)
    return QUANTITIES[quantity]


def own_blocks(contract: Contract) -> list[Block]:
    """Return the blocks of the observation that a policy of this package takes.

    Raises:
        ValueError: If it takes several observations, or an observation that only its own task
            computes. The error names all of these.
    """
    inputs = policy_inputs(contract)
    if len(inputs) != 1:
        raise ValueError(
            f"the policy takes {len(inputs)} observations, {', '.join(inputs)}, but other "
            "frameworks provide one: train a policy with one observation group"
        )
    known = (*QUANTITIES, *JOINT_QUANTITIES, "action")
    entries = contract["observation"]
    strange = []
    for entry in entries:
        name = entry["name"]
        if (name not in known or "own" in entry) and name not in strange:
            strange.append(name)
    if strange:
        raise ValueError(
            f"no other framework observes {', '.join(strange)} as this policy does: "
            "remove these terms from the task, and train a policy without them"
        )
    blocks = []
    for entry in entries:
        elements = elements_of(entry["name"], contract["joint_names"], contract["action_joints"])
        if len(elements) != entry["size"]:
            raise ValueError(
                f"{entry['name']!r} has {entry['size']} numbers in the contract of the policy, "
                f"and {len(elements)} in other frameworks: remove it from the task"
            )
        blocks.append(Block(entry["name"], entry.get("steps_ago", 0), elements))
    return blocks


def columns_of(wanted: Sequence[Key], present: Sequence[Key]) -> list[int]:
    """Return the position in `present` of each key in `wanted`.

    Raises:
        KeyError: If a key is not present.
    """
    positions = {key: column for column, key in enumerate(present)}
    return [positions[key] for key in wanted]


def missing_quantities(wanted: Sequence[Key], present: Sequence[Key]) -> list[str]:
    """Return the names of quantities in `wanted` that are not in `present`, without repetition.

    The name of a past value ends in its age, such as `ang_vel 3 steps ago`.
    """
    known = set(present)
    names: list[str] = []
    for quantity, age, element in wanted:
        if (quantity, age, element) in known:
            continue
        name = quantity if age == 0 else f"{quantity} {age} steps ago"
        if name not in names:
            names.append(name)
    return names
