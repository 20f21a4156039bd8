"""Changes to a configuration by dotted path, such as ``"rewards.joint_torque.weight"``."""

import copy
import dataclasses
import inspect
import types
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, Union

from legged_envs.checks import check_known

Cfg = TypeVar("Cfg")

Changes: TypeAlias = Mapping[str, object]
"""Dotted paths mapped to new values, such as ``{"rewards.joint_torque.weight": 0.0}``."""
Node: TypeAlias = Any
"""Part of a configuration: a dataclass, a dict, a plain object or a value."""
Hint: TypeAlias = object
"""Annotated type of a field, such as ``int | None``."""

ROOT = "the task"
"""Name of the whole configuration in errors."""
RENAMED_REWARDS = {
    "torques": "joint_torque",
    "dof_acc": "joint_acc",
    "dof_pos_limits": "joint_pos_limits",
    "dof_pos_stand_still": "joint_pos_stand_still",
    "dof_vel_stand_still": "joint_vel_stand_still",
    "feet_air_time": "foot_air_time",
    "feet_contact_stand_still": "foot_contact_stand_still",
    "feet_slip": "foot_slip",
}
"""Earlier names of reward terms mapped to their present names.

Older policies and runs can have the earlier names in their recorded changes.
"""


def apply_changes(cfg: Cfg, changes: Changes) -> Cfg:
    """Return a copy of a configuration with fields replaced.

    A reward term may have its earlier name; a warning gives the present one.

    Args:
        cfg: A dataclass, which may hold dataclasses, dicts of them, and plain objects.
        changes: Dotted paths mapped to new values, such as
            ``{"rewards.joint_torque.weight": 0.0}``. None removes a term:
            ``{"events.push": None}``. In ``params`` of a term any parameter of its function can be
            set.

    Raises:
        TypeError: If a path is not a string, or a value is not of the type of its field.
        ValueError: If there is no such field or term, or a value is NaN.
    """
    # A copy: the caller's configuration may be the registered one, which later environments use.
    cfg = copy.deepcopy(cfg)
    for path, value in changes.items():
        if not isinstance(path, str):
            raise TypeError(
                f"cfg paths must be strings such as 'rewards.joint_torque.weight', got {path!r}"
            )
        cfg = _set(cfg, path.split("."), value, path=path, where=ROOT, hint=type(cfg))
    return cfg


def _set(node: Node, names: list[str], value: object, *, path: str, where: str, hint: Hint) -> Node:
    """Return ``node`` with the value set that ``names`` lead to.

    Args:
        node: Part of the configuration.
        names: Names that lead from the node to the field.
        value: New value of the field.
        path: The whole path, for errors.
        where: Path of the node, for errors.
        hint: Annotated type of the node.
    """
    if not names:
        _check_value(value, path, hint)
        return value
    name, *rest = names
    # Names are checked on the way down, so that an error names the first missing name.
    children, hints = _children(node, hint, path, where)
    if where == "rewards" and name not in children and RENAMED_REWARDS.get(name) in children:
        present = RENAMED_REWARDS[name]
        warnings.warn(f"cfg path {path!r}: {name!r} is now named {present!r}", FutureWarning, 2)
        name = present
    check_known(f"cfg path {path!r}: {where} has no", (name,), children, "it has")
    child = children[name]
    # ``params`` holds only what the task sets; a parameter that has a default may be changed too.
    if name == "params" and rest:
        child = _with_defaults(node, child)
    # None removes a term only below the root: a field such as ``sim`` must have a value.
    is_term = where != ROOT and dataclasses.is_dataclass(child)
    if value is None and not rest and is_term:
        return _without(node, name)
    below = name if where == ROOT else f"{where}.{name}"
    new = _set(child, rest, value, path=path, where=below, hint=hints[name])
    # Dicts and frozen dataclasses are replaced; everything else is the copy's own and is set.
    if isinstance(node, dict):
        return {**node, name: new}
    if dataclasses.is_dataclass(node):
        return _with_field(node, name, new)
    setattr(node, name, new)
    return node


def carry_changes(old: Cfg, changed: Cfg, new: Cfg) -> Cfg:
    """Return a configuration with the changes of an earlier configuration.

    A field that differs between ``old`` and ``new`` keeps its new value, which was set later.

    Args:
        old: The earlier configuration, without changes.
        changed: The earlier configuration, with changes.
        new: The configuration; only its own parts are set.
    """
    if changed is old:
        return new
    if dataclasses.is_dataclass(new) and type(old) is type(changed) is type(new):
        for field in dataclasses.fields(new):
            before = getattr(new, field.name)
            parts = (getattr(old, field.name), getattr(changed, field.name))
            part = carry_changes(*parts, before)
            if part is not before:
                new = _with_field(new, field.name, part)
        return new
    if isinstance(old, dict) and isinstance(changed, dict) and isinstance(new, dict):
        entries: Cfg = _carry_entries(old, changed, new)
        return entries
    return changed if is_same(old, new) and not is_same(old, changed) else new


def _carry_entries(old: Node, changed: Node, new: Node) -> Node:
    carried = {}
    for name, part in new.items():
        if name not in old:
            carried[name] = part
        # Entries that are missing in ``changed`` were removed.
        elif name in changed:
            carried[name] = carry_changes(old[name], changed[name], part)
    for name, part in changed.items():
        if name not in old and name not in new:
            carried[name] = part
    return carried


def is_same(old: object, new: object) -> bool:
    """Return True if two values of a field are equal.

    Objects that a translation makes again for each configuration, for example wrappers of a task's
    methods, have no equality: two objects of a class count as equal.
    """
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if type(old).__eq__ is object.__eq__ and not inspect.isroutine(old):
        return True
    try:
        return bool(old == new)
    # Arrays compare element by element.
    except (ValueError, RuntimeError):
        return False


def _with_field(node: Node, name: str, value: object) -> Node:
    """Return a dataclass with a field set: a copy if it is frozen."""
    if _is_frozen(node):
        return dataclasses.replace(node, **{name: value})
    setattr(node, name, value)
    return node


def _check_value(value: object, path: str, hint: Hint) -> None:
    if isinstance(value, float) and value != value:  # NaN is the one float unequal to itself
        raise ValueError(f"cfg path {path!r} needs a number, got {value}")
    if not fits(value, hint):
        expected = hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
        raise TypeError(f"cfg path {path!r} needs {expected}, got {value!r}")


def _children(
    node: Node, hint: Hint, path: str, where: str
) -> tuple[dict[str, Node], dict[str, Hint]]:
    """Return the fields of a node by name, and their annotated types."""
    if isinstance(node, dict):
        arguments = typing.get_args(hint)  # of dict[str, SomeTermCfg]
        return node, dict.fromkeys(node, arguments[1] if arguments else Any)
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        fields = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
        return fields, typing.get_type_hints(type(node))
    if hasattr(node, "__dict__"):
        fields = {name: getattr(node, name) for name in dir(node) if not name.startswith("_")}
        return fields, dict.fromkeys(fields, Any)
    raise ValueError(f"cfg path {path!r}: {where!r} has no fields")


def _with_defaults(term: object, params: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters of a term's function: its defaults, and the fields that are set."""
    func = getattr(term, "func", None)
    if not callable(func):
        return dict(params)
    defaults = {}
    for parameter in inspect.signature(func).parameters.values():
        if parameter.default is not parameter.empty:
            defaults[parameter.name] = parameter.default
    return {**defaults, **params}


def _without(node: Node, name: str) -> Node:
    """Return ``node`` without the term ``name``."""
    if isinstance(node, dict):
        return {key: term for key, term in node.items() if key != name}
    setattr(node, name, None)
    return node


def _is_frozen(node: Node) -> bool:
    params = node.__dataclass_params__
    return bool(params.frozen)


def fits(value: object, hint: Hint) -> bool:
    """Return True if a value is of an annotated type.

    An int is a float too, and a list serves as a tuple.

    Args:
        value: The value.
        hint: Type as in an annotation, such as ``int | None`` or ``tuple[str, ...]``.
    """
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in arguments)
    if origin is tuple:
        return _fits_tuple(value, arguments)
    if origin is dict:
        return isinstance(value, dict) and all(fits(x, arguments[1]) for x in value.values())
    if origin is Callable:
        return callable(value)
    # A bool is an int in Python, but True as a number is most likely a mistake.
    if hint in (int, float):
        kind = Integral if hint is int else Real
        return isinstance(value, kind) and not isinstance(value, bool)
    if hint in (bool, str, Path, types.NoneType) or dataclasses.is_dataclass(hint):
        return isinstance(hint, type) and isinstance(value, hint)
    return True


def _fits_tuple(value: object, hints: tuple[Hint, ...]) -> bool:
    # A string is a sequence of strings too, and would pass as a tuple of names.
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        return False
    if hints[-1] is Ellipsis:
        return all(fits(item, hints[0]) for item in value)
    if len(value) != len(hints):
        return False
    return all(fits(item, hint) for item, hint in zip(value, hints, strict=True))
