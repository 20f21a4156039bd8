"""Ranges of the states in which robots started their training: facts for users of a policy."""

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import EventTermCfg
from legged_envs.mdp import events

Facts = dict[str, Any]
"""Entries of a contract by name."""


def start_facts(cfg: TaskCfg) -> Facts | None:
    """Return the ranges of the states in which robots start the episodes of a training.

    Each range [low, high] belongs to a uniform random draw. In a task without reset events, robots
    start in their default pose, at rest.

    Args:
        cfg: Task that the policy is trained on.

    Returns:
        The entry `training.start` of a policy's metadata. Its entry `other` names reset events that
        are not known here. None: the task's own code places the robots, so the ranges are unknown.
    """
    if not cfg.is_reconfigurable:
        return None
    height = cfg.robot.base_height
    facts: Facts = {
        "base_height": [height, height],
        "roll_pitch": [0.0, 0.0],
        "yaw": [0.0, 0.0],
        "base_lin_vel": [0.0, 0.0],
        "base_ang_vel": [0.0, 0.0],
        "joint_offset": [0.0, 0.0],
        "joint_vel": [0.0, 0.0],
    }
    for term in cfg.events.values():
        if term.mode != "reset" or term.purpose == "randomize":
            continue
        add_ranges = PLACES.get(term.func)
        if add_ranges is None:
            facts.setdefault("other", []).append(qualified_name(term.func))
        else:
            add_ranges(facts, _arguments(term))
    return facts


def _arguments(term: EventTermCfg) -> Facts:
    """Return the parameters of an event by name, with the defaults of its function."""
    arguments = {}
    for name, parameter in signature(term.func).parameters.items():
        if parameter.default is not parameter.empty:
            arguments[name] = parameter.default
    return {**arguments, **term.params}


def qualified_name(function: object) -> str:
    """Return a name that does not change between processes, unlike the `repr` of an object."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{function.__module__}.{name}"


def _both_sides(bound: float) -> list[float]:
    return [-bound, bound]


def _add_root(facts: Facts, given: Facts) -> None:
    height = facts["base_height"][0]
    low, high = given["height"]
    facts["base_height"] = [height + low, height + high]
    facts["yaw"] = list(given["yaw"])
    facts["base_lin_vel"] = _both_sides(given["velocity"])
    facts["base_ang_vel"] = _both_sides(given["velocity"])


def _add_joints(facts: Facts, given: Facts) -> None:
    facts["joint_offset"] = _both_sides(given["range"])
    facts["joint_vel"] = _both_sides(given["velocity"])


def _add_crouch(facts: Facts, given: Facts) -> None:
    facts["crouch"] = {
        "fraction": given["fraction"],
        "joint_pos": dict(given["joint_pos"]),
        "lower": given["depth"],
    }


def _add_drop(facts: Facts, given: Facts) -> None:
    facts["drop"] = {
        "fraction": given["fraction"],
        "distance": given["distance"],
        "height": list(given["height"]),
    }


def _add_reference(facts: Facts, given: Facts) -> None:
    facts["reference"] = {
        "joint_offset": _both_sides(given["joint_pos"]),
        "base_velocity": _both_sides(given["velocity"]),
    }


PLACES: dict[Callable[..., None], Callable[[Facts, Facts], None]] = {
    events.reset_root: _add_root,
    events.reset_joints: _add_joints,
    events.crouch: _add_crouch,
    events.drop: _add_drop,
    events.reset_to_reference: _add_reference,
}
"""Event that places robots → function that adds facts from its parameters."""
