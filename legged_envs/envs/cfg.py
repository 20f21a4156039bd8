"""The configuration of a task, and changes to it by name."""

import copy
import dataclasses
import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, TypeVar, Union

from legged_envs import managers
from legged_envs.checks import check_known, check_number
from legged_envs.configuration import Configuration
from legged_envs.mdp.actions import JointActionCfg, JointPositionCfg
from legged_envs.mdp.commands import CommandTermCfg
from legged_envs.robots import RobotCfg
from legged_envs.sim import SceneCfg, SimCfg, ViewerCfg

Cfg = TypeVar("Cfg")


@dataclass
class TaskCfg(Configuration):
    """Everything that defines a task. The dicts are name → term; add or delete entries freely."""

    robot: RobotCfg
    sim: SimCfg = field(default_factory=SimCfg)
    scene: SceneCfg = field(default_factory=SceneCfg)
    """What is in every environment beside ``robot``."""
    viewer: ViewerCfg = field(default_factory=ViewerCfg)
    episode_length_s: float = 20.0
    """Time limit of an episode, s; infinity for none."""
    is_finite_horizon: bool = False
    """Whether the time limit is part of the task, so that its end is a termination and no truncation (Isaac Lab)."""
    actions: dict[str, JointActionCfg] = field(
        default_factory=lambda: {"joint_position": JointPositionCfg()}
    )
    action_limit: float = 1.0
    """Actions are clipped to ±this, the bounds of their space."""
    max_action_delay: int = 0
    """An episode's actions act 0 to this many control steps late (0 or 1)."""
    commands: dict[str, CommandTermCfg] = field(default_factory=dict)
    observations: dict[str, managers.ObservationGroupCfg] = field(default_factory=dict)
    rewards: dict[str, managers.RewardTermCfg] = field(default_factory=dict)
    only_positive_rewards: bool = True
    """Whether the sum of the rewards is floored at 0 (LeggedGym-Ex ``only_positive_rewards``)."""
    costs: dict[str, managers.CostTermCfg] = field(default_factory=dict)
    terminations: dict[str, managers.TerminationTermCfg] = field(default_factory=dict)
    events: dict[str, managers.EventTermCfg] = field(default_factory=dict)
    curriculum: dict[str, managers.CurriculumTermCfg] = field(default_factory=dict)
    advance_first: bool = False
    """Whether commands and pushes advance before the evaluation (LeggedGym-Ex ``_post_physics_step_callback``)."""
    workflow: tuple[Any, Any] | None = None
    """The class, of :mod:`legged_envs.compat`, and the configuration of another framework that this is made from."""

    @property
    def max_episode_length(self) -> int | None:
        """Time limit of an episode, control steps; None without one."""
        return (
            None
            if math.isinf(self.episode_length_s)
            else math.ceil(self.episode_length_s / self.sim.step_dt - 1e-6)
        )

    def check(self) -> None:
        """Raise a ValueError or TypeError that names the field that is wrong."""
        for part in (self.sim, self.scene, self.viewer):
            part.check()
        check_number("TaskCfg.action_limit", self.action_limit, above=0.0)
        if not self.episode_length_s > 0.0:
            raise ValueError(
                f"TaskCfg.episode_length_s must be positive, got {self.episode_length_s!r}"
            )


def override(cfg: TaskCfg, changes: Mapping[str, Any]) -> TaskCfg:
    """A copy of ``cfg`` with fields replaced, e.g. ``{"rewards.torques.weight": 0.0, "sim.dt": 0.004}``; None removes a
    term: ``{"events.push": None}``. A term's ``params`` can be any of its function's. Of a task in the words of another
    framework, its own fields come first. TypeError if a path is no string or a value not of its field's type,
    ValueError if there is no such field or term."""
    if cfg.workflow is not None:
        workflow, own = cfg.workflow
        names, ours = (
            {path: str(path).partition(".")[0] for path in changes},
            [f.name for f in dataclasses.fields(cfg)],
        )
        words = [name for name in dir(own) if not name.startswith("_")]
        check_known("cfg: the task has no", names.values(), [*words, *ours], "it has")
        if changed := {path: value for path, value in changes.items() if names[path] in words}:
            changes = {path: value for path, value in changes.items() if path not in changed}
            cfg = workflow.task_cfg(replaced(own, changed))
    return replaced(cfg, changes)


def replaced(cfg: Cfg, changes: Mapping[str, Any]) -> Cfg:
    """A copy of a configuration with fields replaced, with the errors of :func:`override`: a TypeError
    or a ValueError."""
    cfg = copy.deepcopy(cfg)
    for path, value in changes.items():
        if not isinstance(path, str):
            raise TypeError(
                f"cfg paths must be strings such as 'rewards.torques.weight', got {path!r}"
            )
        cfg = _replaced(cfg, path.split("."), value, path, "the task", type(cfg))
    return cfg


def _replaced(node: Any, names: list[str], value: Any, path: str, where: str, hint: Any) -> Any:
    if not names:
        if isinstance(value, float) and value != value:
            raise ValueError(f"cfg path {path!r} needs a number, got {value}")
        if not _fits(value, hint):
            expected = hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
            raise TypeError(f"cfg path {path!r} needs {expected}, got {value!r}")
        return value
    name, *rest = names
    if isinstance(node, dict):
        children, hints = (
            node,
            dict.fromkeys(node, typing.get_args(hint)[1] if typing.get_args(hint) else Any),
        )
    elif dataclasses.is_dataclass(node) and not isinstance(node, type):
        children = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
        hints = typing.get_type_hints(type(node))
    elif hasattr(node, "__dict__"):
        children = {name: getattr(node, name) for name in dir(node) if not name.startswith("_")}
        hints = dict.fromkeys(children, Any)
    else:
        raise ValueError(f"cfg path {path!r}: {where!r} has no fields")
    check_known(f"cfg path {path!r}: {where} has no", (name,), children, "it has")
    child = children[name]
    if name == "params" and rest and callable(getattr(node, "func", None)):
        parameters = inspect.signature(node.func).parameters.values()
        child = {**{p.name: p.default for p in parameters if p.default is not p.empty}, **child}
    if (
        value is None and not rest and where != "the task" and dataclasses.is_dataclass(child)
    ):  # a term is removed
        if isinstance(node, dict):
            return {key: term for key, term in node.items() if key != name}
        setattr(node, name, None)
        return node
    below = name if where == "the task" else f"{where}.{name}"
    new = _replaced(child, rest, value, path, below, hints[name])
    if isinstance(node, dict):
        return {**node, name: new}
    if dataclasses.is_dataclass(node) and getattr(node, "__dataclass_params__").frozen:  # noqa: B009
        return dataclasses.replace(node, **{name: new})  # type: ignore[type-var]
    setattr(node, name, new)
    return node


def _fits(value: Any, hint: Any) -> bool:
    """Whether ``value`` is of the annotated type. An int is a float too, and a list serves as a tuple."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in arguments)
    if origin is tuple:
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            return False
        if arguments[-1] is Ellipsis:
            arguments = arguments[:1] * len(value)
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    if origin is dict:
        return isinstance(value, dict) and all(_fits(item, arguments[1]) for item in value.values())
    if origin is Callable:
        return callable(value)
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    if hint in (bool, str, types.NoneType) or dataclasses.is_dataclass(hint):
        return isinstance(value, hint)
    return True
