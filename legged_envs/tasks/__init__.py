"""Registry of tasks: the functions that make each task's configuration and training defaults."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, TypeVar

from legged_envs.checks import check_known
from legged_envs.system_checks import import_named
from legged_envs.tables import shorten

if TYPE_CHECKING:
    from legged_envs.envs.cfg import TaskCfg
    from legged_envs.tasks.training_defaults import TrainingDefaults

T = TypeVar("T")

# Names instead of functions: registration in Gymnasium must not import PyTorch, which takes long.
TASKS: "dict[str, str | Callable[[], TaskCfg]]" = {
    "Legged/Go2-Flat-v0": "legged_envs.tasks.velocity:go2_flat",
    "Legged/G1-Flat-v0": "legged_envs.tasks.biped:g1_flat",
    "Legged/Go1-Flat-v0": "legged_envs.tasks.velocity:go1_flat",
    "Legged/A1-Flat-v0": "legged_envs.tasks.velocity:a1_flat",
    "Legged/AnymalC-Flat-v0": "legged_envs.tasks.velocity:anymal_c_flat",
    "Legged/H1-Flat-v0": "legged_envs.tasks.biped:h1_flat",
    "Legged/K1-Flat-v0": "legged_envs.tasks.biped:k1_flat",
    "Legged/T1-Flat-v0": "legged_envs.tasks.biped:t1_flat",
    "Legged/Tron1-PF-Flat-v0": "legged_envs.tasks.biped:tron1_pf_flat",
    "Legged/Tron1-SF-Flat-v0": "legged_envs.tasks.biped:tron1_sf_flat",
    "Legged/Tron1-WF-Flat-v0": "legged_envs.tasks.biped:tron1_wf_flat",
    "Legged/Go2-Rough-v0": "legged_envs.tasks.rough:go2_rough",
    "Legged/Go2-Blind-v0": "legged_envs.tasks.rough:go2_blind",
    "Legged/Go2-Robust-v0": "legged_envs.tasks.robust:go2_robust",
    "Legged/Go1-Rough-v0": "legged_envs.tasks.rough:go1_rough",
    "Legged/A1-Rough-v0": "legged_envs.tasks.rough:a1_rough",
    "Legged/AnymalC-Rough-v0": "legged_envs.tasks.rough:anymal_c_rough",
    "Legged/G1-Rough-v0": "legged_envs.tasks.rough:g1_rough",
    "Legged/K1-Rough-v0": "legged_envs.tasks.rough:k1_rough",
    "Legged/Tron1-PF-Rough-v0": "legged_envs.tasks.rough:tron1_pf_rough",
    "Legged/Go2-Gaits-v0": "legged_envs.tasks.gaits:go2_gaits",
    "Legged/Go2-Nav-v0": "legged_envs.tasks.rough:go2_nav",
    "Legged/Go2-Pair-v0": "legged_envs.tasks.go2_pair:go2_pair_task",
    "Legged/Go2-Mimic-v0": "legged_envs.tasks.mimic:go2_mimic",
    "Legged/G1-Mimic-v0": "legged_envs.tasks.mimic:g1_mimic",
    "Legged/Go2-Legs-v0": "legged_envs.tasks.go2_legs:go2_legs_task",
}
"""Functions that make a new configuration of each task, by registered id.

A function may be given by its name as ``module:function``. It is then imported on first use.
"""

TRAININGS: "dict[str, str | Callable[[], TrainingDefaults]]" = {
    "Legged/Go2-Flat-v0": "legged_envs.tasks.velocity:go2_flat_training",
    "Legged/G1-Flat-v0": "legged_envs.tasks.biped:g1_flat_training",
    "Legged/Go1-Flat-v0": "legged_envs.tasks.velocity:go1_flat_training",
    "Legged/A1-Flat-v0": "legged_envs.tasks.velocity:a1_flat_training",
    "Legged/AnymalC-Flat-v0": "legged_envs.tasks.velocity:anymal_c_flat_training",
    "Legged/H1-Flat-v0": "legged_envs.tasks.biped:h1_flat_training",
    "Legged/K1-Flat-v0": "legged_envs.tasks.biped:k1_flat_training",
    "Legged/T1-Flat-v0": "legged_envs.tasks.biped:t1_flat_training",
    "Legged/Tron1-PF-Flat-v0": "legged_envs.tasks.biped:tron1_pf_flat_training",
    "Legged/Tron1-SF-Flat-v0": "legged_envs.tasks.biped:tron1_sf_flat_training",
    "Legged/Tron1-WF-Flat-v0": "legged_envs.tasks.biped:tron1_wf_flat_training",
    "Legged/Go2-Rough-v0": "legged_envs.tasks.training_defaults:quadruped_rough_training",
    "Legged/Go2-Blind-v0": "legged_envs.tasks.training_defaults:quadruped_rough_training",
    "Legged/Go2-Robust-v0": "legged_envs.tasks.training_defaults:quadruped_rough_training",
    "Legged/Go1-Rough-v0": "legged_envs.tasks.training_defaults:quadruped_rough_training",
    "Legged/A1-Rough-v0": "legged_envs.tasks.training_defaults:quadruped_rough_training",
    "Legged/AnymalC-Rough-v0": "legged_envs.tasks.training_defaults:quadruped_rough_training",
    "Legged/G1-Rough-v0": "legged_envs.tasks.training_defaults:biped_rough_training",
    "Legged/K1-Rough-v0": "legged_envs.tasks.training_defaults:biped_rough_training",
    "Legged/Tron1-PF-Rough-v0": "legged_envs.tasks.training_defaults:biped_rough_training",
    "Legged/Go2-Gaits-v0": "legged_envs.tasks.gaits:go2_gaits_training",
    "Legged/Go2-Nav-v0": "legged_envs.tasks.rough:go2_nav_training",
    "Legged/Go2-Pair-v0": "legged_envs.tasks.training_defaults:quadruped_flat_training",
    "Legged/Go2-Mimic-v0": "legged_envs.tasks.training_defaults:mimic_training",
    "Legged/G1-Mimic-v0": "legged_envs.tasks.mimic:g1_mimic_training",
    "Legged/Go2-Legs-v0": "legged_envs.tasks.training_defaults:quadruped_flat_training",
}
"""Functions that make the default training options of each task, by registered id.

A function may be given by its name as ``module:function``. A task without an entry is trained with
the defaults of its kind.
"""


def plain_id(task_id: str) -> str:
    """Return the registered id of a task, without a module before it.

    The module of ``module:Id`` is imported first, so that it registers the task, as in Gymnasium.

    Args:
        task_id: A registered id, or ``module:Id`` of a task that another package registers.

    Raises:
        ValueError: If no task has that id.
    """
    module, _, name = task_id.rpartition(":")
    if ":" in task_id:
        import_named(module, task_id)
    check_known("unknown task", (name,), TASKS, "tasks (another package's are module:Id)")
    return name


def registered_id(recorded: object, file: str) -> str:
    """Return the registered id of a task that a file names. No module is imported.

    Args:
        recorded: Id of the task in the file, which may be ``module:Id``.
        file: The file, for the error.

    Raises:
        ValueError: If no task has that id.
    """
    # The file may be a stranger's: importing the module that it names would run its code.
    name = recorded.rpartition(":")[2] if isinstance(recorded, str) else recorded
    if isinstance(name, str) and name in TASKS:
        return name
    raise ValueError(
        f"{file} names the task {shorten(str(recorded), 100)!r}, which is not registered, and no "
        "file makes this program import a module; if you trust its module, add to the command: "
        f"--import {_module_of(recorded)}"
    )


def _module_of(recorded: object) -> str:
    module = str(recorded).rpartition(":")[0]
    return shorten(module, 100) if module else "MODULE"


def make_task_cfg(task_id: str) -> "TaskCfg":
    """Make a new configuration of a registered task, to change and pass to ``make`` as ``cfg=``.

    Args:
        task_id: A registered id, or ``module:Id`` of a task that another package registers.

    Raises:
        ValueError: If no task has that id.
    """
    factory = TASKS[plain_id(task_id)]
    return _resolved(factory)()


def make_training_defaults(task_id: str) -> "TrainingDefaults":
    """Make the default training options of a registered task: its own defaults, or the defaults of
    its kind.

    Args:
        task_id: A registered id, or ``module:Id`` of a task that another package registers.

    Raises:
        ValueError: If no task has that id.
    """
    factory = TRAININGS.get(plain_id(task_id))
    if factory is not None:
        return _resolved(factory)()
    # These import PyTorch, which Gymnasium's registration does not need.
    from legged_envs.tasks.kind import kind_of
    from legged_envs.tasks.training_defaults import training_defaults_of

    return training_defaults_of(kind_of(make_task_cfg(task_id)))


def _resolved(factory: str | Callable[[], T]) -> Callable[[], T]:
    """Return a function that is given as itself or as ``module:function``."""
    if isinstance(factory, str):
        function: Callable[[], T] = resolve_name(factory)
        return function
    return factory
