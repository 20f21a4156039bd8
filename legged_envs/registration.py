"""Register the tasks with Gymnasium, and build the default wrapper stack. Torch and MuJoCo load when one is made."""

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from glob import iglob
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs.checks import did_you_mean
from legged_envs.tasks import TASKS, TRAININGS, make_task_cfg

if TYPE_CHECKING:
    from legged_envs.envs import LeggedVectorEnv
    from legged_envs.envs.cfg import TaskCfg
    from legged_envs.tasks.training_defaults import TrainingDefaults

ENTRY_POINTS = "legged_envs.tasks"
_SINGLE_ARGUMENTS = (
    "device",
    "sim",
    "observations",
    "render_mode",
    "compile",
    "cfg",
    "max_episode_steps",
)
_VECTOR_ARGUMENTS = (*_SINGLE_ARGUMENTS, "array", "autoreset_mode", "statistics")


def register(
    task_id: str,
    *task: "str | Callable[[], Any]",
    training: "str | Callable[[], TrainingDefaults] | None" = None,
) -> None:
    """Make a task known to ``gymnasium.make``, ``gymnasium.make_vec`` and the command line: ``register(id, cfg)`` or,
    with a class of :mod:`legged_envs.compat`, ``register(id, cls, cfg)``. ``cfg`` is a function or class that makes
    a fresh configuration; both may be names, ``module:function``, imported when the task is made. Registered again, an
    id has the new configuration. ``training`` makes the training defaults of the task, by default those of its kind,
    see :mod:`legged_envs.tasks.training_defaults`. ValueError if the id is that of another package's environment, TypeError if ``task``
    is not of these, ``gymnasium.error.Error`` if the id is not of the form ``[namespace/]Name-v0``."""
    for given, kind in zip(
        task, ("a class of legged_envs.compat", "cfg")[-len(task) :], strict=False
    ):
        if not (given.count(":") == 1 if isinstance(given, str) else callable(given)):
            what = "a function that makes a configuration" if kind == "cfg" else kind
            raise TypeError(
                f"{kind} must be {what}, or its name as 'module:function', got {given!r}"
            )
    if len(task) not in (1, 2):
        raise TypeError(
            f"register takes an id and cfg, or an id, a class and cfg, got {len(task)} beside the id"
        )
    if len(task) == 2 and not isinstance(task[0], str) and not hasattr(task[0], "task_cfg"):
        raise TypeError(
            f"the class must be of legged_envs.compat, such as DirectRLEnv, got {task[0]!r}"
        )
    if training is not None:
        _check_training(training)
    cfg = task[0] if len(task) == 1 else partial(_translated, *task)
    single, vector = f"{__name__}:make_env", f"{__name__}:make_vector_env"
    if task_id not in gym.registry:
        gym.register(task_id, single, vector_entry_point=vector, kwargs={"task_id": task_id})
    elif gym.registry[task_id].entry_point != single:
        raise ValueError(
            f"the id {task_id!r} is that of another environment: {gym.registry[task_id]}"
        )
    TASKS[task_id] = cfg
    if training is not None:
        TRAININGS[task_id] = training
    else:
        # A task that is registered again is not trained as the task was that had the id before.
        TRAININGS.pop(task_id, None)


def _check_training(training: object) -> None:
    is_name = isinstance(training, str) and training.count(":") == 1
    if not is_name and not callable(training):
        raise TypeError(
            "training must be a function that makes TrainingDefaults, or its name as "
            f"'module:function', got {training!r}"
        )


def _translated(workflow: Any, cfg: "str | Callable[[], Any]") -> "TaskCfg":
    cls = resolve_name(workflow) if isinstance(workflow, str) else workflow
    return cls.task_cfg((resolve_name(cfg) if isinstance(cfg, str) else cfg)())


def register_tasks() -> None:
    """Register the tasks of this package, and those of installed ones, their entry points of the group
    ``legged_envs.tasks``, id = "module:function"; one that cannot be registered is a warning."""
    for task_id, cfg in TASKS.items():
        register(task_id, cfg, training=TRAININGS.get(task_id))
    # Few have such a package, and to import importlib.metadata takes a fifth of the time of importing this one.
    if not any(map(_has_tasks, sys.path)):
        return
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        try:
            if TASKS.get(point.name, point.value) != point.value:
                raise ValueError("there is another task with its id")
            register(point.name, point.value)
        except (TypeError, ValueError, gym.error.Error) as error:
            package = point.dist.name if point.dist else "a package"
            warnings.warn(
                f"the task {point.name!r} of {package} is left out: {error}", stacklevel=2
            )


def _has_tasks(folder: str) -> bool:
    """Whether the metadata of a package in ``folder``, one of ``sys.path``, names tasks."""
    for name in iglob("*-info/entry_points.txt", root_dir=folder or "."):
        with suppress(OSError), open(os.path.join(folder, name), errors="replace") as file:
            if f"[{ENTRY_POINTS}]" in file.read():
                return True
    return False


def make_vector_env(
    task_id: str,
    num_envs: int,
    *,
    cfg: "TaskCfg | Mapping[str, Any] | None" = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    max_episode_steps: int | None = None,
    statistics: bool = True,
    **kwargs: Any,
) -> VectorEnv:
    """The environment with ``TimeLimit``, ``EpisodeStatistics`` and, unless it is DISABLED, ``AutoReset``.

    ``cfg`` is a task configuration in place of the registered one, or changes to that, such as
    ``{"rewards.torques.weight": 0.0}``. ``max_episode_steps`` is the time limit in control steps; None takes the task's
    ``episode_length_s``. ``statistics=False`` leaves room for Gymnasium's ``RecordEpisodeStatistics``, which has the
    same key of ``info``, ``"episode"``. ``kwargs``, else TypeError, are ``device``, ``sim``, ``array``,
    ``observations``, ``render_mode`` and ``compile``: see :class:`~legged_envs.envs.LeggedVectorEnv`."""
    _check_keywords(kwargs, _VECTOR_ARGUMENTS, f"gymnasium.make_vec({task_id!r}, num_envs=…)")
    mode = _autoreset_mode(autoreset_mode)
    from legged_envs.wrappers import AutoReset, EpisodeStatistics, TimeLimit

    core = make_core(_resolve_cfg(task_id, cfg), num_envs, **kwargs)
    steps = core.max_episode_length if max_episode_steps is None else max_episode_steps
    env: VectorEnv = core
    if steps is not None:
        own = core.max_episode_length is not None and steps >= core.max_episode_length
        env = TimeLimit(core, steps, is_finite_horizon=core.cfg.is_finite_horizon and own)
    if statistics:
        env = EpisodeStatistics(env)
    return env if mode is AutoresetMode.DISABLED else AutoReset(env, mode)


def make_env(
    task_id: str, *, cfg: "TaskCfg | Mapping[str, Any] | None" = None, **kwargs: Any
) -> gym.Env:
    """One robot as a plain ``gymnasium.Env`` with the time limit of its task; ``max_episode_steps`` can only shorten
    it, while ``cfg={"episode_length_s": …}`` sets it. TypeError for a keyword of ``make_vec`` alone."""
    if "num_envs" in kwargs:
        call = f"gymnasium.make_vec({task_id!r}, num_envs={kwargs['num_envs']})"
        raise TypeError(f"gymnasium.make makes one environment; for a batch call {call}")
    _check_keywords(kwargs, _SINGLE_ARGUMENTS, f"gymnasium.make({task_id!r})")
    from legged_envs.envs import EpisodeLimit, LeggedEnv

    env = LeggedEnv(_resolve_cfg(task_id, cfg), make_core, **kwargs)
    return (
        env if env.cfg.max_episode_length is None else EpisodeLimit(env, env.cfg.max_episode_length)
    )


def make_core(task: "TaskCfg", num_envs: int, **arguments: Any) -> "LeggedVectorEnv":
    """The vector environment of a configuration, without time limit and without autoreset."""
    from legged_envs.envs import LeggedVectorEnv

    cls: Any = task.workflow[0] if task.workflow else LeggedVectorEnv
    core: LeggedVectorEnv = cls.make_core(task, num_envs, **arguments)
    return core


def _resolve_cfg(task_id: str, cfg: Any) -> "TaskCfg":
    from legged_envs.envs.cfg import TaskCfg, override

    if isinstance(cfg, TaskCfg):
        return cfg
    registered = make_task_cfg(task_id)
    if cfg is None or isinstance(cfg, Mapping):
        return override(registered, cfg) if cfg else registered
    workflow: Any = registered.workflow
    if workflow is None or not isinstance(cfg, type(workflow[1])):
        kind = "a TaskCfg" if workflow is None else f"a {type(workflow[1]).__name__}, a TaskCfg"
        raise TypeError(f"cfg must be {kind} or a mapping of changes, got {type(cfg).__name__}")
    task: TaskCfg = workflow[0].task_cfg(cfg)
    return task


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        values = ", ".join(repr(m.value) for m in AutoresetMode)
        raise ValueError(
            f"autoreset_mode must be an AutoresetMode or one of {values}; got {mode!r}"
        ) from None


def _check_keywords(given: Mapping[str, Any], known: tuple[str, ...], call: str) -> None:
    for name in given:
        if name not in known:
            # TorchRL's GymEnv tries keywords, and goes on without those that Python's own words refuse.
            refused = f"unexpected keyword argument {name!r}"
            wrong = f"{call} has no keyword {name!r}; {did_you_mean(name, known)}it takes: {', '.join(known)}"
            raise TypeError(f"{wrong} ({refused})")
