"""The specification of an environment, which becomes JSON also where it holds a ``TaskCfg``."""

import copy
import dataclasses
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import EnvSpec

if TYPE_CHECKING:
    from legged_envs.envs.cfg import TaskCfg

JSON_LEAVES = (str, int, float, bool, type(None))
"""Types of the values that JSON has."""


class TaskSpec(EnvSpec):
    """A specification of Gymnasium that writes a ``TaskCfg`` as changes of the registered task.

    The JSON of one robot is for ``gymnasium.make``, the JSON of a batch for ``gymnasium.make_vec``.
    Changes are dotted paths of fields, each with its value, as ``gymnasium.make(…, cfg=…)`` takes
    them. An environment that is made from the JSON has the same configuration.
    """

    registered_cfg: "Callable[[], TaskCfg] | None" = None
    """Function that makes the registered configuration. None: the task is not registered."""
    task_limit: int | None = None
    """Time limit of a single environment, control steps. None: there is no limit."""
    _max_episode_steps: int | None = None

    @property
    def max_episode_steps(self) -> int | None:
        """Time limit of an episode, control steps: at most the environment's limit.

        A ``TimeLimit`` sets this number to its own limit. A warning follows if the environment ends
        its episodes earlier: an environment that is wrapped later does not learn of a longer limit.
        """
        return self._max_episode_steps

    @max_episode_steps.setter
    def max_episode_steps(self, steps: int | None) -> None:
        limit = self.task_limit
        if limit is not None and steps is not None and steps > limit:
            warnings.warn(
                f"max_episode_steps={steps} has no effect: the environment ends its episodes after "
                f"{limit} steps. Make it by its id, gymnasium.make(ID, max_episode_steps={steps})",
                stacklevel=2,
            )
            steps = limit
        self._max_episode_steps = steps

    def to_json(self) -> str:
        """Return the specification as JSON.

        Raises:
            ValueError: If the ``TaskCfg`` differs from the registered configuration in a value that
                JSON cannot hold, such as a function. The message names the field.
        """
        from legged_envs.envs.cfg import TaskCfg

        cfg = self.kwargs.get("cfg")
        plain = copy.copy(self)
        # gymnasium.make needs its wrapper for a longer time limit, gymnasium.make_vec refuses it.
        if "vectorization_mode" in self.kwargs:
            plain.additional_wrappers = ()
        if isinstance(cfg, TaskCfg) and self.registered_cfg is not None:
            changes: dict[str, object] = {}
            _collect_changes(self.registered_cfg(), cfg, "", changes)
            plain.kwargs = {**self.kwargs, "cfg": changes}
        return EnvSpec.to_json(plain)


class HasTaskSpec:
    """Gives an environment the attribute ``spec``, which Gymnasium sets when it makes the
    environment."""

    registered_cfg: "Callable[[], TaskCfg] | None" = None
    """Function that makes the registered configuration. None: the task is not registered."""
    task_limit: int | None = None
    """Time limit of a single environment, control steps. None: there is no limit."""
    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:
        """Specification with which Gymnasium made the environment. None: made without Gymnasium."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = spec
        if spec is not None and not isinstance(spec, TaskSpec):
            fields = {}
            for field in dataclasses.fields(spec):
                if field.init:
                    fields[field.name] = getattr(spec, field.name)
            self._spec = TaskSpec(**fields)
            self._spec.registered_cfg = self.registered_cfg
            self._spec.task_limit = self.task_limit


def _collect_changes(old: Any, new: Any, path: str, changes: dict[str, object]) -> None:
    """Add what differs between two configurations to ``changes``, by dotted path."""
    if dataclasses.is_dataclass(old) and type(old) is type(new):
        for field in dataclasses.fields(old):
            name = f"{path}.{field.name}".strip(".")
            _collect_changes(getattr(old, field.name), getattr(new, field.name), name, changes)
    elif isinstance(old, dict) and isinstance(new, dict) and new.keys() <= old.keys():
        for key, part in old.items():
            name = f"{path}.{key}".strip(".")
            if key in new:
                _collect_changes(part, new[key], name, changes)
            elif dataclasses.is_dataclass(part):
                # None removes a term.
                changes[name] = None
            else:
                raise _no_json(path, new)
    elif not _is_equal(old, new):
        if not _is_json(new):
            raise _no_json(path, new)
        changes[path] = new


def _is_equal(old: Any, new: Any) -> bool:
    if old is new:
        return True
    try:
        return bool(type(old) is type(new) and old == new)
    # Arrays compare element by element.
    except ValueError:
        return False


def _is_json(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_is_json, value.values()))
    return type(value) in JSON_LEAVES


def _no_json(path: str, value: object) -> ValueError:
    return ValueError(
        f"cfg.{path} = {str(value)[:80]} differs from the registered task, and is not a value of "
        "JSON: register a task with this configuration, and make it by its id"
    )
