"""Registration of tasks with Gymnasium, and the functions that Gymnasium calls to make them.

PyTorch and MuJoCo are imported only when an environment is made.
"""

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
from gymnasium.envs.registration import WrapperSpec
from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs.checks import LARGEST_COUNT, did_you_mean, whole_number
from legged_envs.tasks import TASKS, TRAININGS, make_task_cfg

if TYPE_CHECKING:
    from legged_envs.envs import CoreVectorEnv
    from legged_envs.envs.cfg import TaskCfg
    from legged_envs.tasks.training_defaults import TrainingDefaults

ENTRY_POINTS = "legged_envs.tasks"
"""Group of Python entry points by which other installed packages register their tasks."""
NO_TIME_LIMIT = -1
"""Value of ``max_episode_steps`` that leaves out ``TimeLimit``, as in ``gymnasium.make``."""
_SINGLE_ARGUMENTS = (
    "device",
    "sim",
    "observations",
    "render_mode",
    "cfg",
    "max_episode_steps",
)
_VECTOR_ARGUMENTS = (
    *_SINGLE_ARGUMENTS,
    "first_env",
    "array",
    "info",
    "autoreset_mode",
    "statistics",
)


class SingleWrappers(tuple[WrapperSpec, ...]):
    """Wrappers of a specification that concern single environments only.

    ``gymnasium.make`` applies these wrappers. ``gymnasium.make_vec`` refuses a specification with
    wrappers, and a batch of environments does not need these wrappers, so their number is 0.
    """

    def __len__(self) -> int:
        return 0


# gymnasium.make does not pass max_episode_steps to an environment. It applies the wrappers of a
# specification last, so that this one sees the time limit.
_KEEP_LIMIT = SingleWrappers((WrapperSpec("keep_time_limit", f"{__name__}:keep_time_limit", {}),))
"""Function that ``gymnasium.make`` calls with a single environment and its other wrappers."""


def register(
    task_id: str,
    *task: "str | Callable[[], Any]",
    training: "str | Callable[[], TrainingDefaults] | None" = None,
) -> None:
    """Register a task, so that ``gymnasium.make_vec`` and the command line know its id.

    Call ``register(task_id, cfg)`` for a task of this package. Call ``register(task_id, cls, cfg)``
    for a task that is written for another framework, with its task class (see
    :mod:`legged_envs.compat`). A second call with an id replaces the first registration.

    Args:
        task_id: Id of the form ``[namespace/]Name-v0``.
        task: ``cfg``, or ``cls`` and ``cfg``. ``cfg`` is a function or class that returns a new
            configuration. Each may be a string ``"module:name"``, which is imported when the task
            is made.
        training: Function that returns the training defaults of the task, or a string
            ``"module:name"``. None: the defaults for this kind of task, see
            :mod:`legged_envs.tasks.training_defaults`.

    Raises:
        TypeError: If ``task`` or ``training`` has a wrong type or length.
        ValueError: If the id is registered for an environment of another package.
        gymnasium.error.Error: If the id does not have the form ``[namespace/]Name-v0``.
    """
    if len(task) == 1:
        _check_factory("cfg", task[0], "a function that makes a configuration")
        make_cfg = task[0]
    elif len(task) == 2:
        cls, own_cfg = task
        _check_factory("a class of legged_envs.compat", cls, "a class of legged_envs.compat")
        _check_factory("cfg", own_cfg, "a function that makes a configuration")
        if not isinstance(cls, str) and not hasattr(cls, "task_cfg"):
            raise TypeError(
                f"the class must be of legged_envs.compat, such as DirectRLEnv, got {cls!r}"
            )
        make_cfg = partial(_translated_cfg, cls, own_cfg)
    else:
        raise TypeError(
            f"register takes an id and cfg, or an id, a class and cfg; got {len(task)} arguments "
            "after the id"
        )
    if training is not None:
        _check_factory("training", training, "a function that makes TrainingDefaults")
    single = f"{__name__}:make_env"
    vector = f"{__name__}:make_vector_env"
    if task_id not in gym.registry:
        kwargs = {"task_id": task_id}
        gym.register(
            task_id,
            single,
            additional_wrappers=_KEEP_LIMIT,
            vector_entry_point=vector,
            kwargs=kwargs,
        )
    elif gym.registry[task_id].entry_point != single:
        raise ValueError(
            f"the id {task_id!r} belongs to another environment: {gym.registry[task_id]}"
        )
    TASKS[task_id] = make_cfg
    if training is not None:
        TRAININGS[task_id] = training
    else:
        # A task that is registered again must not keep the defaults of an earlier one.
        TRAININGS.pop(task_id, None)


def _check_factory(name: str, given: Any, expected: str) -> None:
    is_valid = given.count(":") == 1 if isinstance(given, str) else callable(given)
    if not is_valid:
        raise TypeError(
            f"{name} must be {expected}, or its name as 'module:function', got {given!r}"
        )


def _translated_cfg(cls: Any, make_cfg: "str | Callable[[], Any]") -> "TaskCfg":
    """Return the configuration of a task in the words of another framework."""
    user_class = resolve_name(cls) if isinstance(cls, str) else cls
    make = resolve_name(make_cfg) if isinstance(make_cfg, str) else make_cfg
    cfg: TaskCfg = user_class.task_cfg(make())
    return cfg


def register_tasks() -> None:
    """Register the tasks of this package and the tasks of other installed packages.

    Other packages list their tasks as entry points of the group ``legged_envs.tasks``, with lines
    ``id = "module:function"``. A task that cannot be registered gives a warning.
    """
    for task_id, cfg in TASKS.items():
        register(task_id, cfg, training=TRAININGS.get(task_id))
    # Few machines have such a package, and importing importlib.metadata takes a fifth of the time
    # of importing this one.
    if not any(_names_tasks(folder) for folder in sys.path):
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


def _names_tasks(folder: str) -> bool:
    """Return True if the metadata of a package in ``folder``, one of ``sys.path``, names tasks."""
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
    """Make the vector environment of a registered task. ``gymnasium.make_vec`` calls this function.

    The environment has the wrappers ``TimeLimit``, ``EpisodeStatistics`` and ``AutoReset``. The
    autoreset mode ``DISABLED`` leaves out ``AutoReset``.

    Args:
        task_id: Registered id.
        num_envs: Number of environments.
        cfg: Configuration that replaces the registered one, or changes of the registered one:
            dotted path of a field → new value.
        autoreset_mode: Time of the reset after an episode: in the same step, in the next step, or
            never (disabled).
        max_episode_steps: Time limit of an episode in control steps. None: the task's time limit.
            -1: no ``TimeLimit``.
        statistics: True to report return and length of finished episodes in ``info["episode"]``.
        kwargs: ``first_env``, ``device``, ``sim``, ``array``, ``observations``, ``info`` and
            ``render_mode``: see :class:`~legged_envs.envs.CoreVectorEnv`.

    Returns:
        Environment with all wrappers.

    Raises:
        TypeError: If a keyword is not known.
        ValueError: If an argument has an invalid value.
    """
    _check_keywords(kwargs, _VECTOR_ARGUMENTS, f"gymnasium.make_vec({task_id!r}, num_envs=…)")
    mode = _autoreset_mode(autoreset_mode)
    if max_episode_steps is not None and max_episode_steps != NO_TIME_LIMIT:
        max_episode_steps = whole_number("max_episode_steps", max_episode_steps)
    from legged_envs.wrappers import AutoReset, EpisodeStatistics, TimeLimit

    task_cfg = _with_time_limit(_resolve_cfg(task_id, cfg), max_episode_steps)
    core = make_core(task_cfg, num_envs, **kwargs)
    core.registered_cfg = partial(make_task_cfg, task_id)
    env: VectorEnv = core
    limit = core.max_episode_length
    steps = limit if max_episode_steps is None else max_episode_steps
    if steps is not None and steps != NO_TIME_LIMIT:
        # A limit below the task's own cuts episodes off; only the task's own can end them.
        is_own = limit is not None and steps >= limit
        is_finite_horizon = core.cfg.is_finite_horizon and is_own
        env = TimeLimit(env, steps, is_finite_horizon=is_finite_horizon)
    if statistics:
        env = EpisodeStatistics(env)
    if mode is not AutoresetMode.DISABLED:
        env = AutoReset(env, mode)
    return env


def make_env(
    task_id: str,
    *,
    cfg: "TaskCfg | Mapping[str, Any] | None" = None,
    max_episode_steps: int | None = None,
    **kwargs: Any,
) -> gym.Env:
    """Make a registered task with one robot as a plain ``gymnasium.Env``.

    ``gymnasium.make`` calls this function.

    Args:
        task_id: Registered id.
        cfg: Configuration that replaces the registered one, or changes of the registered one:
            dotted path of a field → new value. ``{"episode_length_s": …}`` sets the time limit.
        max_episode_steps: Time limit of an episode in control steps. None: the task's time limit.
            ``gymnasium.make`` does not pass this argument on: see :func:`keep_time_limit`.
        kwargs: ``device``, ``sim``, ``observations`` and ``render_mode``: see
            :class:`~legged_envs.envs.CoreVectorEnv`.

    Raises:
        TypeError: If a keyword is not known, or only ``gymnasium.make_vec`` accepts it.
        ValueError: If an argument has an invalid value.
    """
    if "num_envs" in kwargs:
        raise TypeError(
            "gymnasium.make makes one environment; for a batch call "
            f"gymnasium.make_vec({task_id!r}, num_envs={kwargs['num_envs']})"
        )
    _check_keywords(kwargs, _SINGLE_ARGUMENTS, f"gymnasium.make({task_id!r})")
    if max_episode_steps is not None:
        max_episode_steps = whole_number("max_episode_steps", max_episode_steps)
    from legged_envs.envs import EpisodeLimit, LeggedEnv

    task_cfg = _with_time_limit(_resolve_cfg(task_id, cfg), max_episode_steps)
    env = LeggedEnv(task_cfg, **kwargs)
    env.registered_cfg = partial(make_task_cfg, task_id)
    if max_episode_steps is not None:
        env.task_limit = max_episode_steps
    if env.task_limit is None:
        return env
    return EpisodeLimit(env, env.task_limit)


def keep_time_limit(env: gym.Env) -> gym.Env:
    """Set the length of episodes to ``max_episode_steps`` of ``gymnasium.make``.

    Args:
        env: Environment from :func:`make_env` with the wrappers of ``gymnasium.make``.

    Returns:
        ``env``.

    Raises:
        ValueError: If the methods of a user's task end the episodes earlier.
    """
    from legged_envs.envs import EpisodeLimit

    limits = []
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        # Gymnasium has read the specification already, and keeps it.
        layer._cached_spec = None
        if isinstance(layer, gym.wrappers.TimeLimit):
            limits.append(layer)
        layer = layer.env
    # From outside: the limit that gymnasium.make was given, and the task's limit.
    if len(limits) == 2 and isinstance(limits[1], EpisodeLimit):
        steps = limits[0]._max_episode_steps
        if steps > limits[1]._max_episode_steps:
            limits[1].extend(steps)
    # An environment that is made from this specification keeps its limit too.
    layer.spec.additional_wrappers = _KEEP_LIMIT
    return env


def make_core(cfg: "TaskCfg", num_envs: int, **arguments: Any) -> "CoreVectorEnv":
    """Make the vector environment of a configuration, without any wrapper.

    The environment has no time limit, no statistics of episodes and no autoreset.

    Args:
        cfg: Configuration of the task.
        num_envs: Number of environments.
        arguments: Keyword arguments of :class:`~legged_envs.envs.CoreVectorEnv`.
    """
    from legged_envs import envs

    return envs.make_core(cfg, num_envs, **arguments)


def _resolve_cfg(task_id: str, cfg: Any) -> "TaskCfg":
    """Return the configuration that ``cfg`` stands for."""
    from legged_envs.envs.cfg import TaskCfg, override

    if isinstance(cfg, TaskCfg):
        return cfg
    registered = make_task_cfg(task_id)
    if cfg is None:
        return registered
    if isinstance(cfg, Mapping):
        return override(registered, cfg)
    return registered.from_own_cfg(cfg)


def _with_time_limit(cfg: "TaskCfg", steps: int | None) -> "TaskCfg":
    """Return a configuration with episodes that a time limit of ``steps`` can end.

    The methods of a user's task end an episode themselves when it has ``max_episode_length`` steps.
    A longer limit around such a task would have no effect, so the task gets it too.
    """
    if cfg.is_reconfigurable or steps is None:
        return cfg
    own_steps = cfg.max_episode_length
    if own_steps is None or steps <= own_steps:
        return cfg
    # Such tasks count the steps of an episode in 32 bits.
    whole_number("max_episode_steps", steps, most=LARGEST_COUNT)
    from legged_envs.envs.changes import apply_changes

    # Not with_changes, which would change the user's own configuration.
    longer: TaskCfg = apply_changes(cfg, {"episode_length_s": steps * cfg.sim.step_dt})
    return longer


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
            # TorchRL's GymEnv tries keywords, and continues without the keywords that a TypeError
            # of Python refuses.
            raise TypeError(
                f"{call} has no keyword {name!r}; {did_you_mean(name, known)}"
                f"it takes: {', '.join(known)} (unexpected keyword argument {name!r})"
            )
