"""Register the tasks with Gymnasium, and build the default wrapper stack. Torch and MuJoCo load when one is made."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs.checks import did_you_mean
from legged_envs.tasks import TASKS, make_task_cfg

if TYPE_CHECKING:
    from legged_envs.envs.cfg import TaskCfg

_SINGLE_ARGUMENTS = ("device", "sim", "observations", "render_mode", "compile", "cfg", "max_episode_steps")
_VECTOR_ARGUMENTS = (*_SINGLE_ARGUMENTS, "array", "autoreset_mode", "statistics")


def register_tasks() -> None:
    """Make every task known to ``gymnasium.make`` and ``gymnasium.make_vec``."""
    single, vector = f"{__name__}:make_env", f"{__name__}:make_vector_env"
    for task_id in TASKS:
        if task_id not in gym.registry:
            gym.register(task_id, single, vector_entry_point=vector, kwargs={"task_id": task_id})


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
    from legged_envs.envs import LeggedVectorEnv
    from legged_envs.wrappers import AutoReset, EpisodeStatistics, TimeLimit

    core = LeggedVectorEnv(_resolve_cfg(task_id, cfg), num_envs, **kwargs)
    steps = core.max_episode_length if max_episode_steps is None else max_episode_steps
    env: VectorEnv = core if steps is None else TimeLimit(core, steps, is_finite_horizon=core.cfg.is_finite_horizon)
    if statistics:
        env = EpisodeStatistics(env)
    return env if mode is AutoresetMode.DISABLED else AutoReset(env, mode)


def make_env(task_id: str, *, cfg: "TaskCfg | Mapping[str, Any] | None" = None, **kwargs: Any) -> gym.Env:
    """One robot as a plain ``gymnasium.Env`` with the time limit of its task; ``max_episode_steps`` can only shorten
    it, while ``cfg={"episode_length_s": …}`` sets it. TypeError for a keyword of ``make_vec`` alone."""
    if "num_envs" in kwargs:
        call = f"gymnasium.make_vec({task_id!r}, num_envs={kwargs['num_envs']})"
        raise TypeError(f"gymnasium.make makes one environment; for a batch call {call}")
    _check_keywords(kwargs, _SINGLE_ARGUMENTS, f"gymnasium.make({task_id!r})")
    from legged_envs.envs import EpisodeLimit, LeggedEnv

    env = LeggedEnv(_resolve_cfg(task_id, cfg), **kwargs)
    return env if env.cfg.max_episode_length is None else EpisodeLimit(env, env.cfg.max_episode_length)


def _resolve_cfg(task_id: str, cfg: "TaskCfg | Mapping[str, Any] | None") -> "TaskCfg":
    from legged_envs.envs.cfg import TaskCfg, override

    if cfg is None or isinstance(cfg, Mapping):
        return override(make_task_cfg(task_id), cfg or {})
    if not isinstance(cfg, TaskCfg):
        raise TypeError(f"cfg must be a TaskCfg or a mapping of changes, got {type(cfg).__name__}")
    return cfg


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        values = ", ".join(repr(m.value) for m in AutoresetMode)
        raise ValueError(f"autoreset_mode must be an AutoresetMode or one of {values}; got {mode!r}") from None


def _check_keywords(given: Mapping[str, Any], known: tuple[str, ...], call: str) -> None:
    for name in given:
        if name not in known:
            # TorchRL's GymEnv tries keywords, and goes on without those that Python's own words refuse.
            refused = f"unexpected keyword argument {name!r}"
            wrong = f"{call} has no keyword {name!r}; {did_you_mean(name, known)}it takes: {', '.join(known)}"
            raise TypeError(f"{wrong} ({refused})")
