"""Comparison of the contract of a policy with an environment."""

from math import isclose
from typing import Any, NamedTuple

from legged_envs.policy.metadata import (
    ACTION_ENTRIES,
    LATER_ENTRIES,
    Contract,
    Inputs,
    finite_bounds,
    is_earlier_version,
    policy_inputs,
)

COMPARED_ENTRIES = (
    "robot",
    "joint_names",
    "default_joint_pos",
    "control_dt",
    "reference",
    "gait",
    "scan",
)
"""Contract entries that must be equal for a policy and an environment.

The entries of actions and observations are compared separately.
"""


SCAN_REMARKS = ("cell", "rule")
"""Parts of the entry `scan` that explain it, and that earlier versions did not write."""


class Difference(NamedTuple):
    """A contract entry with different values in a policy and in an environment."""

    entry: str
    """Name of the contract entry that differs."""
    trained: object
    """Value that the policy was trained with."""
    present: object
    """Value of the entry in the environment."""


def find_difference(trained: Contract, present: Contract) -> Difference | None:
    """Return the first contract entry that differs. None: the policy fits the environment.

    Args:
        trained: Contract of the policy.
        present: Contract that a policy of the environment would have.
    """
    earlier = is_earlier_version(trained)
    expected = _compared_entries(trained, earlier)
    found = _compared_entries(present, earlier)
    for name, value in expected.items():
        other = found.get(name)
        if nearly_equal(value, other):
            continue
        # Earlier versions described action terms also where a task does not act by them.
        if earlier and other is None and name in ACTION_ENTRIES:
            continue
        return Difference(name, value, other)
    return None


def _compared_entries(entries: Contract, earlier: bool) -> Contract:
    compared: Contract = {name: entries.get(name) for name in COMPARED_ENTRIES}
    if compared["scan"] is not None:
        scan = compared["scan"]
        compared["scan"] = {key: scan[key] for key in scan if key not in SCAN_REMARKS}
    for name in (*ACTION_ENTRIES, *LATER_ENTRIES):
        # The wording of the formula changed between versions.
        reworded = earlier and name == "action"
        if name in entries and not reworded:
            compared[name] = entries[name]
    compared["observation"] = comparable_inputs(policy_inputs(entries), earlier)
    return compared


def comparable_inputs(inputs: Inputs, earlier: bool = False) -> dict[str, list[list[Any]]]:
    """Return name, size, scale and clip of each term of each group, to compare them.

    Args:
        inputs: Observation groups and their terms.
        earlier: True to compare with a contract of an earlier version. These had infinite bounds,
            and the angles of wheels had the scale of other joints.
    """
    compared = {}
    for group, terms in inputs.items():
        rows = []
        for term in terms:
            scale = _scale_without_wheels(term["scale"]) if earlier else term["scale"]
            rows.append([term["name"], term["size"], scale, finite_bounds(term.get("clip"))])
        compared[group] = rows
    return compared


def _scale_without_wheels(scale: Any) -> Any:
    """Return the one scale of all joints that are not wheels, or `scale` if they have several."""
    if not isinstance(scale, list):
        return scale
    scales = set(scale) - {0.0}
    if len(scales) != 1:
        return scale
    return scales.pop()


def nearly_equal(one: object, other: object) -> bool:
    """Return True if two JSON values agree except for the last digits of numbers.

    Lengths and angles that follow from a model are rounded differently by each kind of processor.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return False
        return all(nearly_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        return all(nearly_equal(value, twin) for value, twin in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return isclose(one, other, rel_tol=1e-5, abs_tol=1e-7)
    return bool(one == other)
