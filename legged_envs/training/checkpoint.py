"""Choice of the run folder of a training, and of the checkpoint that it resumes."""

import datetime
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from legged_envs.checks import check_number, whole_number
from legged_envs.envs.changes import fits
from legged_envs.motion_reading import MotionReading
from legged_envs.runs.checkpoint_file import CHECKPOINT, ENTRY_TYPES, read_checkpoint_file
from legged_envs.system_checks import check_output
from legged_envs.tables import shorten
from legged_envs.training import processes
from legged_envs.training.learner_options import (
    AmpCfg,
    ConstraintCfg,
    LagrangeCfg,
    OnPolicyCfg,
    RndCfg,
)
from legged_envs.training.mimic_options import DaggerCfg, MimicDistillationCfg, MimicPPOCfg
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.scheme_options import SCHEME_CONFIGS, LSTMCfg, SchemeCfg

FREE_OPTIONS = (
    "minutes",
    "iterations",
    "threads",
    "checkpoint_minutes",
    "keep",
    "episodes",
    "video",
    "video_seconds",
    "tracker",
    "imports",
)
"""Names of the fields of ``TrainCfg`` that may change when a run is resumed.

``run_dir`` and ``resume`` may change too. All other fields define what is learnt.
"""

OPTION_CLASSES: dict[str, type] = {
    "TrainCfg": TrainCfg,
    "PPOCfg": PPOCfg,
    "MimicPPOCfg": MimicPPOCfg,
    "MimicDistillationCfg": MimicDistillationCfg,
    "AmpCfg": AmpCfg,
    "DaggerCfg": DaggerCfg,
    "RndCfg": RndCfg,
    "LagrangeCfg": LagrangeCfg,
    "ConstraintCfg": ConstraintCfg,
    "MotionReading": MotionReading,
    "LSTMCfg": LSTMCfg,
    **{options.__name__: options for options in SCHEME_CONFIGS.values()},
}
"""Classes of the options that a checkpoint file can hold, by class name.

A checkpoint holds only plain data, so its options are written as a class name and field values.
"""

MINUTES_TOLERANCE = 0.99
"""Tolerance of ``--minutes`` on resuming, as a fraction of the time that the run has taken.

The last update of a run ends a little after its time. Without a tolerance, the same ``--minutes``
would be rejected on resuming.
"""


def read_checkpoint(place: Path, task_id: str | None = None) -> dict[str, Any]:
    """Read a checkpoint of a training, with ``cfg`` as a :class:`TrainCfg`.

    Args:
        place: A checkpoint file, or a run folder with one.
        task_id: Id of the task that the checkpoint must have been trained on. None: any task.

    Returns:
        The state that the trainer saved, by name: see ``Trainer.checkpoint_state``.

    Raises:
        FileNotFoundError: If there is no checkpoint at ``place``.
        ValueError: If the file is damaged, holds anything but plain data, or was trained on
            another task.
    """
    checkpoint = read_checkpoint_file(place, task_id, OPTION_CLASSES)
    if "cfg" in checkpoint and "actor_state_dict" in checkpoint["algorithm"]:
        # Earlier versions had only rsl_rl's PPO, and no option for it.
        checkpoint["cfg"].learner = "rsl_rl"
    algo = getattr(checkpoint.get("cfg"), "algo", None)
    if isinstance(algo, OnPolicyCfg) and not hasattr(algo, "constraint"):
        # Earlier versions had no constraint methods, and their critics of costs used all steps.
        algo.constraint = ConstraintCfg(critic_stride=1)
    if isinstance(algo, PPOCfg) and algo.symmetry is None:
        # Earlier versions only mirrored mini-batches, unless the option "mirror" was False.
        algo.symmetry = "batches" if getattr(algo, "mirror", True) else "off"
    if isinstance(algo, PPOCfg) and checkpoint["cfg"].learner == "rsl_rl":
        # Earlier versions accepted options that rsl_rl's PPO does not have, and ignored them.
        algo.symmetry = "off"
        if algo.schedule == "adaptive":
            algo.schedule = "fixed"
            algo.final_learning_rate = algo.learning_rate
    if isinstance(algo, SchemeCfg) and "encoder_epochs" not in vars(algo):
        # In earlier versions, the encoder learned in all passes.
        algo.encoder_epochs = algo.epochs
    if isinstance(algo, SchemeCfg) and "encoder_final_learning_rate" not in vars(algo):
        # In earlier versions, the learning rate of the encoder was constant.
        algo.encoder_final_learning_rate = algo.encoder_learning_rate
    return checkpoint


def run_folder(cfg: TrainCfg) -> Path:
    """Return the folder that a training writes to.

    This is ``cfg.run_dir``, or the folder of the run to resume, or a new folder named after task
    and date.

    Raises:
        FileExistsError: If the folder already holds another run.
        ValueError: If the folder cannot be written to.
    """
    folder = _requested_folder(cfg)
    is_resumed = cfg.resume is not None and folder.resolve() == cfg.resume.resolve()
    if (folder / CHECKPOINT).exists() and not is_resumed:
        raise FileExistsError(
            f"there is a run in {str(folder)!r}: choose another --run-dir, or --resume it"
        )
    # Now and not at the first checkpoint, two minutes later.
    check_output("--run-dir", folder, "folder")
    return folder


def _requested_folder(cfg: TrainCfg) -> Path:
    if cfg.run_dir is not None:
        return cfg.run_dir
    # A run that continues from a numbered checkpoint, a file, gets a new folder.
    if cfg.resume is not None and not cfg.resume.is_file():
        return cfg.resume
    task_name = cfg.task_id.split("/")[-1].split(":")[-1]
    first = Path("runs", task_name, f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}")
    # Another training may have started in the same second.
    folder = first
    number = 2
    while folder.exists():
        folder = first.with_name(f"{first.name}_{number}")
        number += 1
    return folder


def resuming_after_failure(cfg: TrainCfg) -> TrainCfg:
    """Return the options with which ``torchrun --max-restarts`` continues after a failure.

    After a restart, ``resume`` is the run folder if it has a checkpoint. Otherwise ``cfg`` is
    returned unchanged.

    Raises:
        ValueError: If ``torchrun`` may restart, and no run folder is given that a restarted process
            can find.
    """
    if not processes.can_restart():
        return cfg
    # A numbered checkpoint begins a new run, whose folder the restarted processes would not know.
    is_numbered = cfg.resume is not None and cfg.resume.is_file() and cfg.resume.name != CHECKPOINT
    if cfg.run_dir is None and (cfg.resume is None or is_numbered):
        raise ValueError(
            "torchrun --max-restarts needs --run-dir, from which the training continues after a "
            "failure"
        )
    folder = cfg.run_dir or cfg.resume
    assert folder is not None
    if processes.is_restarted() and (folder / CHECKPOINT).exists():
        return replace(cfg, resume=folder)
    return cfg


def resolve_resume(cfg: TrainCfg) -> tuple[TrainCfg, dict[str, Any] | None]:
    """Merge the given options with the options of the run to resume, and read its checkpoint.

    An option counts as given if it differs from its default. Given options that are in
    ``FREE_OPTIONS`` replace the options of the resumed run. All others must be equal to the run's;
    of ``changes``, those that are given.

    Args:
        cfg: The options as given.

    Returns:
        ``cfg`` and None if ``cfg.resume`` is None. Otherwise the merged options and the checkpoint.

    Raises:
        FileNotFoundError: If there is no checkpoint to resume.
        ValueError: If a given option contradicts the resumed run, or the run already has the
            requested number of updates or minutes.
    """
    if cfg.resume is None:
        return cfg, None
    # The unnumbered checkpoint is the latest state of a folder, so the folder itself is resumed.
    resume = cfg.resume.parent if cfg.resume.name == CHECKPOINT else cfg.resume
    cfg = replace(cfg, resume=resume)
    checkpoint = read_checkpoint(resume, cfg.task_id)
    _check_resumable(checkpoint, resume)
    usual = TrainCfg(cfg.task_id)
    given = _given_free_options(cfg, usual)
    if "minutes" in given:
        # A number of updates takes precedence over minutes, so the run's own must be dropped.
        given.setdefault("iterations", None)
    _check_continues(checkpoint, given)
    # The id of the command and not of the file, which may name a stranger's module.
    run: TrainCfg = checkpoint["cfg"]
    merged = replace(
        run.with_absolute_paths(),
        task_id=cfg.task_id,
        run_dir=cfg.run_dir,
        resume=resume,
        **given,
    )
    _check_same(cfg, merged, usual)
    return merged, checkpoint


def _check_resumable(checkpoint: Mapping[str, Any], place: Path) -> None:
    """Raise a ValueError if a checkpoint lacks what a resumed run needs, or has wrong options."""
    if "cfg" not in checkpoint:
        raise ValueError(
            f"the checkpoint {str(place)!r} cannot be resumed, because it is of an older version, "
            "which did not write the options of its run; --warm-start starts a new run with its "
            "networks"
        )
    missing = [name for name in ENTRY_TYPES if name not in checkpoint]
    if missing:
        raise ValueError(
            f"the checkpoint {str(place)!r} has no {', '.join(missing)}, and cannot be resumed; "
            "--warm-start starts a new run with its networks"
        )
    whole_number(f"iteration of the checkpoint {str(place)!r}", checkpoint["iteration"], least=0)
    check_number(f"seconds of the checkpoint {str(place)!r}", checkpoint["seconds"], least=0.0)
    _check_options(checkpoint["cfg"], TrainCfg, f"cfg of the checkpoint {str(place)!r}")
    for row in checkpoint["curve"]:
        if not isinstance(row, dict) or "steps_per_second" not in row:
            raise ValueError(
                f"curve of the checkpoint {str(place)!r} must have rows with steps_per_second, "
                f"got {shorten(repr(row), 100)}; resume another checkpoint"
            )


def _check_options(options: Any, expected: type[Any], where: str) -> None:
    """Raise a ValueError if an object is not of a class of options, or a field is of no such type.

    Args:
        options: Options as they were in a file.
        expected: Dataclass of the options.
        where: Name of the options for the error.
    """
    if not isinstance(options, expected):
        raise ValueError(
            f"{where} must be a {expected.__name__}, got {shorten(repr(options), 100)}; "
            "resume another checkpoint"
        )
    hints = get_type_hints(expected)
    for field in fields(options):
        value = getattr(options, field.name, None)
        name = f"{where}: {field.name}"
        if is_dataclass(value) and not isinstance(value, type):
            # The class of the algorithm's options is checked by the union of the classes below.
            _check_options(value, type(value), name)
        if not fits(value, hints[field.name]):
            raise ValueError(
                f"{name} must be {hints[field.name]}, got {shorten(repr(value), 100)}; "
                "resume another checkpoint"
            )


def _given_free_options(cfg: TrainCfg, usual: TrainCfg) -> dict[str, Any]:
    given = {}
    for name in FREE_OPTIONS:
        value = getattr(cfg, name)
        if value != getattr(usual, name):
            given[name] = value
    return given


def _check_continues(checkpoint: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Check that the requested updates or minutes exceed what the run already has."""
    done = checkpoint["iteration"]
    minutes = checkpoint["seconds"] / 60.0
    iterations = given.get("iterations")
    too_few_updates = iterations is not None and iterations < done
    too_few_minutes = "minutes" in given and given["minutes"] < MINUTES_TOLERANCE * minutes
    if too_few_updates or too_few_minutes:
        raise ValueError(
            "--iterations and --minutes count from the start of the run, which has completed "
            f"{done} and {minutes:.1f}: give more, or leave both out to continue as planned"
        )


def _check_same(given: Any, run: Any, default: Any, prefix: str = "--") -> None:
    """Check that every option that was given is the run's.

    Args:
        given: Options as given.
        run: Options of the run.
        default: Options as they are when they are not given.
        prefix: Prefix of an option's name in the error.
    """
    for field in fields(given):
        asked = getattr(given, field.name)
        has = getattr(run, field.name)
        usual = getattr(default, field.name)
        option = prefix + field.name.replace("_", "-")
        if is_dataclass(asked) and type(asked) is type(has):
            if usual is None:
                options_class: Any = type(asked)
                usual = options_class()
            # On the command line, options of the algorithm have no prefix: --gamma, not
            # --algo.gamma.
            _check_same(asked, has, usual, prefix if field.name == "algo" else f"{option}.")
        elif _differs(asked, has, usual):
            raise ValueError(
                f"{option} is {has} in the run to resume, got {asked}; leave it out, or train a "
                "new run"
            )


def _differs(asked: Any, has: Any, usual: Any) -> bool:
    """Return True if an option was given, and the run has another value."""
    if isinstance(asked, dict):
        # The run may have more changes, such as those of its training scheme.
        return any(path not in has or has[path] != value for path, value in asked.items())
    return asked not in (has, usual)


def check_changes(changes: Any, path: str = "changes") -> None:
    """Check that the changes to a task are plain data, which a checkpoint can hold.

    Args:
        changes: The option ``--changes``, or in recursive calls a value nested in it.
        path: Path of ``changes`` within the option, for the error.

    Raises:
        ValueError: If a value is not a number, bool, string, None, tuple, list or dict.
    """
    if isinstance(changes, dict):
        for key, value in changes.items():
            check_changes(value, f"{path}[{key!r}]")
    elif isinstance(changes, (list, tuple)):
        for i, value in enumerate(changes):
            check_changes(value, f"{path}[{i!r}]")
    # The exact type, because a checkpoint can hold no subclass, such as NumPy's float64.
    elif type(changes) not in (str, int, float, bool, type(None)):
        raise ValueError(
            f"{path} = {changes!r}: changes must be values that a checkpoint can hold: numbers, "
            "strings, None, and tuples, lists and dicts of these; for functions and objects, "
            "register a custom task"
        )
